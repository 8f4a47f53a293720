"""The door to sources of feeds: records in order, by position."""

from __future__ import annotations

from typing import Protocol

import msgspec


class SourceSplit(msgspec.Struct, frozen=True):
    """What a source orders its records by, such as a file: the unit of order and of ownership.

    name: the same for as long as its records are the same; one that is made anew has another.
    title: for people.
    """

    name: str
    title: str


class RecordLines(msgspec.Struct, frozen=True):
    """Whole records of a source split, from one position to another.

    begin: position of the first record.
    end: position behind the last one.
    lines: the records' bytes, each ended by a line feed.
    """

    begin: int
    end: int
    lines: bytes


class RecordSource(Protocol):
    """Records that can be read again: the same position gives the same records. Every
    implementation passes `tests/contracts/test_record_source.py`."""

    def splits(self) -> list[SourceSplit]:
        """Return the source splits that there are now, those that have had no record yet left out.

        Raises:
            InvalidError: the source cannot be asked. UnavailableError: ask again.
        """
        ...

    def read(self, split: SourceSplit, begin: int, *, bytes_max: int) -> RecordLines | None:
        """Return records from a position on. None: there is none now.

        bytes_max: of records, at least one of which is returned where there is one.

        Raises:
            InvalidError: it has fewer records than were taken, or one that is too long.
            UnavailableError: read again.
        """
        ...
