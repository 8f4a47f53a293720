"""The door to sources of feeds: records by source split and position.

Services pass a batch of records on and never look inside it; `lakebed.decoding.raw_records` says
what it holds.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

BatchT = TypeVar("BatchT")


class SourceSplit(msgspec.Struct, frozen=True):
    """The unit of order and of ownership in a source, such as a file.

    name: the same for as long as its records are the same; one that is made anew has another
        (protocol R16).
    title: for people.
    """

    name: str
    title: str


class Records(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """Whole records of a source split, from one position to another.

    begin: position from which they were read.
    end: position behind the last one.
    count: how many they are; at least one.
    size: bytes of their keys, headers and values.
    batch: the records.
    resume: what the source needs beside `end` to go on there.
    items: of a source without order, names of 16 bytes: of its messages, or of its objects with
        several records each; else empty. An item's records come all at once.
    item_counts: how many of the records each item has, one after the other; empty: one each.
    """

    begin: int
    end: int
    count: int
    size: int
    batch: BatchT
    resume: bytes = b""
    items: tuple[bytes, ...] = ()
    item_counts: tuple[int, ...] = ()


class SplitReader(Protocol[BatchT]):
    """Reads a source split on and on from one position."""

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[BatchT] | None:
        """Return the next records. None: there is none yet.

        bytes_max: of records, at least one of which is returned where there is one.
        wait_seconds: how long to wait for the first one.

        Raises:
            PositionGoneError: the source has no longer what comes next.
            InvalidError: it has fewer records than were taken, or one that is too long.
            DeniedError: our credentials are refused.
            UnavailableError: read again; no record was passed over.
        """
        ...

    def behind(self) -> int | None:
        """Return how many positions there are beyond the last record that was read, as far as the
        last answer of the source said. None: the source does not say."""
        ...

    def acknowledge(self, end: int) -> None:
        """Tell the source that all records before a position are committed: for others to look at,
        or to delete them. What it answers is never read back as truth."""
        ...

    def close(self) -> None:
        """Let go of what reading holds. Closing twice does no harm."""
        ...


class RecordSource(Protocol[BatchT]):
    """A source of records. One that counts them gives the same records at the same position. Every
    implementation passes the checks of `lakebed.source_kit`, in
    `tests/contracts/test_record_source.py`."""

    def splits(self) -> list[SourceSplit]:
        """Return the source splits that there are now. One that has had no record yet may be left
        out.

        Raises:
            InvalidError: the source cannot be asked. DeniedError: our credentials are refused.
            UnavailableError: ask again.
        """
        ...

    def start(self, split: SourceSplit) -> int:
        """Return the position at which a feed begins that has taken nothing of a source split yet.
        It may be another one when it is asked again: the worker commits it.

        Raises:
            As `splits`.
        """
        ...

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SplitReader[BatchT]:
        """Return a reader of a source split's records from a position on.

        resume: what came with the position, when it was the end of records.
        """
        ...

    def close(self) -> None:
        """Let go of connections. Closing twice does no harm."""
        ...
