"""Finds the record to blame where a table refuses the rows of a round as a whole.

Such a round is forgotten and read again, half as large, until it is one record: no row is made of
that one. All that is remembered may be lost at any moment: it is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import LakebedError
from lakebed.feed_errors import RowsRefusedError, TooManyWindowsError
from lakebed.feeds.committed import count_of
from lakebed.feeds.rotation import Rotation
from lakebed.feeds.round_changes import SplitRecords

BatchT = TypeVar("BatchT")

First = Callable[[BatchT, int], tuple[BatchT, int, int]]
"""As `MakeRows.first`."""


class RefusedRows(Generic[BatchT]):
    """The search of one pipeline for the record that made a table refuse a round.

    Rounds are halved by bytes. One read gives as many records as the source likes, so the last one
    is halved by records.

    first: cuts what one read gave.
    split: the source split that is to be read before all others; empty: none is.
    """

    def __init__(self, rotation: Rotation, first: First[BatchT]) -> None:
        self._rotation = rotation
        self._first = first
        self._records_max = 0
        self._blamed: tuple[str, int] | None = None
        self._why = ""
        self.split = ""

    @property
    def cuts(self) -> bool:
        """Return whether a round takes a part of what was read, so the rest is read again."""
        return self._records_max > 0

    def taken(self, parts: list[SplitRecords[BatchT]]) -> list[SplitRecords[BatchT]]:
        """Return what a round takes of what was read."""
        if not self.cuts:
            return parts
        for part in parts:
            if part.records:
                return [self._cut(part)]
        return parts

    def blamed(self, parts: Sequence[SplitRecords[BatchT]]) -> dict[str, str]:
        """Return of which source split a round holds nothing but the record to blame, and why."""
        if self._blamed is None or self._key(parts) != self._blamed:
            return {}
        return {self._blamed[0]: self._why}

    def refused(self, parts: Sequence[SplitRecords[BatchT]], error: LakebedError) -> bool:
        """Let the next rounds be smaller than one that was refused, or blame its only record.
        Returns whether that may help: other errors are none of a round that is too large, items
        come whole, and who lands records blames none."""
        if not isinstance(error, TooManyWindowsError | RowsRefusedError):
            return False
        with_records = [part.split for part in parts if part.records]
        self.split = with_records[0] if len(with_records) == 1 else self.split
        reads = [records for part in parts for records in part.records]
        if self._rotation.divide([records.size for records in reads]):
            return True
        if isinstance(error, TooManyWindowsError):
            return False
        if len(reads) > 1:
            self._records_max = reads[0].count
            return True
        key = self._key(parts)
        if key is not None and key != self._blamed:
            self._blamed, self._why, self._records_max = key, error.message, 1
            return True
        if key is not None or reads[0].items:
            return False
        self._records_max = reads[0].count // 2
        return True

    def committed(self, parts: Sequence[SplitRecords[BatchT]]) -> None:
        """Take more again behind a round that was committed, and all behind the record to blame."""
        if self._blamed is not None and self._key(parts) == self._blamed:
            self._records_max, self._blamed, self.split = 0, None, ""
            self._rotation.restore()
            return
        if self.cuts:
            most = self._records_max
            taken = sum(records.count for part in parts for records in part.records)
            self._records_max = most + most // 4 + 1 if taken >= most else 0
        if self._rotation.size == self._rotation.limits.size:  # all of it is taken now
            self.split = ""

    def _cut(self, part: SplitRecords[BatchT]) -> SplitRecords[BatchT]:
        records, count = part.records[0], self._records_max
        if records.count > count and not records.items:
            batch, end, size = self._first(records.batch, count)
            resume = part.at.position.resume
            records = msgspec.structs.replace(
                records, batch=batch, end=end, size=size, count=count, resume=resume
            )
        return msgspec.structs.replace(part, records=(records,), is_caught_up=False)

    @staticmethod
    def _key(parts: Sequence[SplitRecords[BatchT]]) -> tuple[str, int] | None:
        """Return where the only record of a round begins; None: it has not just one."""
        found = [(part, records) for part in parts for records in part.records]
        if len(found) != 1 or found[0][1].count != 1:
            return None
        part, _ = found[0]
        return part.split, count_of(part.at.position)
