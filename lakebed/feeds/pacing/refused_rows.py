"""Finds the record to blame where a table refuses the rows of a round as a whole.

Such a round is forgotten and read again, half as large, until it is one record: no row is made of
that one. A table that refuses whatever it gets is not searched: its feed stops, and no record is to
blame. All that is remembered may be lost at any moment: it is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import LakebedError
from lakebed.feed_errors import RowsRefusedError, TooManyWindowsError
from lakebed.feeds.committed import FeedConnection, count_of
from lakebed.feeds.rotation import Rotation
from lakebed.feeds.round_changes import SplitRecords
from lakebed.observe import events
from lakebed.ports.record_source import Records

BatchT = TypeVar("BatchT")

First = Callable[[BatchT, int], tuple[BatchT, int, int]]
"""As `MakeRows.first`."""


class Blame(msgspec.Struct, frozen=True):
    """The part of a round's records that a search has found out.

    records: of source splits with one record, whose row the table refused, why.
    is_proven: whether the table is known to take rows, so that none is tried alone.
    """

    records: Mapping[str, str] = {}
    is_proven: bool = False


NO_BLAME = Blame()


class RefusedRows(Generic[BatchT]):
    """The search of one pipeline for the record that made a table refuse a round.

    Rounds are halved by bytes. One read gives as many records as the source likes, so the last one
    is halved by records. Behind the record to blame, rounds double: the next one may be near.

    A record is blamed only while the table is known to take rows: since the one before it a row was
    stored, or some row of a refused round was taken alone. Only a record that comes alone is blamed
    without that, and not two of those in a row.

    first: cuts what one read gave.
    table: its name.
    split: the source split that is to be read before all others, as what one read of it gave is
        cut; empty: none is.
    """

    def __init__(
        self, rotation: Rotation, first: First[BatchT], table: str, connection: FeedConnection
    ) -> None:
        self._rotation = rotation
        self._first = first
        self._table = table
        self._connection = connection
        self._records_max = 0
        self._blamed: tuple[str, int] | None = None
        self._why = ""
        self._is_searching = self._is_proven = False
        self._has_blamed = self._has_widened = False
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

    def blame(self, parts: Sequence[SplitRecords[BatchT]]) -> Blame:
        """Return what is known of a round's records."""
        if self._blamed is None or self._key(parts) != self._blamed:
            return Blame(is_proven=self._is_proven)
        return Blame({self._blamed[0]: self._why}, self._is_proven)

    def refused(self, parts: Sequence[SplitRecords[BatchT]], error: LakebedError) -> bool:
        """Let the next rounds be smaller than one that was refused, or blame its only record.
        Returns whether that may help: other errors are none of a round that is too large, items
        come whole, and who lands records blames none.

        Raises:
            InvalidError: that of the table, which refuses whatever it gets.
        """
        if not isinstance(error, TooManyWindowsError | RowsRefusedError):
            return False
        reads = [records for part in parts for records in part.records]
        if not reads:
            return False
        self._rotation.doubles = False
        if isinstance(error, TooManyWindowsError):
            return self._rotation.divide([records.size for records in reads])
        if self._may_refuse_all(error):
            return self._widen(error)
        sizes = [records.size for records in reads]
        may_help = self._rotation.divide(sizes) or self._divide_records(parts, reads, error)
        if may_help:
            self._begin(error, reads)
        return may_help

    def committed(self, parts: Sequence[SplitRecords[BatchT]], stored: int) -> None:
        """Take more again behind a round that was committed. stored: rows of it."""
        self._has_widened = False
        if self._blamed is not None and self._key(parts) == self._blamed:
            self._blamed, self._has_blamed = None, True
            self._is_searching = self._is_proven = False
            self._records_max, self._rotation.doubles = 2, True
            return
        if stored:
            self._has_blamed, self._is_proven = False, self._is_searching
        if not self.cuts:
            self.split = ""
            if self._rotation.size == self._rotation.limits.size:
                self._is_searching = self._is_proven = False
            return
        most = self._records_max
        taken = sum(records.count for part in parts for records in part.records)
        more = most if self._rotation.doubles else most // 4 + 1
        self._records_max = most + more if taken >= most else 0

    def _may_refuse_all(self, error: RowsRefusedError) -> bool:
        """Return whether nothing says that the table takes any row, and something that it takes
        none."""
        self._is_proven = self._is_proven or bool(error.takes_others)
        if self._is_proven:
            return False
        return self._has_blamed or error.takes_others is False

    def _widen(self, error: RowsRefusedError) -> bool:
        """Look at as many rows as there may be before the table is said to refuse them all."""
        is_small = self.cuts or self._rotation.size < self._rotation.limits.size
        if self._has_widened or not is_small:
            raise error.table_error
        self._rotation.restore()
        self._records_max, self.split, self._has_widened = 0, "", True
        return True

    def _begin(self, error: RowsRefusedError, reads: Sequence[Records[BatchT]]) -> None:
        """Say once that a search begins."""
        if self._is_searching:
            return
        self._is_searching = True
        events.emit(
            events.FEED_ROWS_REFUSED,
            table=self._table,
            connection=self._connection.id,
            records_count=sum(records.count for records in reads),
            reason=error.message,
        )

    def _divide_records(
        self,
        parts: Sequence[SplitRecords[BatchT]],
        reads: Sequence[Records[BatchT]],
        error: RowsRefusedError,
    ) -> bool:
        """Take fewer records of what one read gives, or blame the only one. Returns whether that
        may help."""
        key = self._key(parts)
        if key is not None and key == self._blamed:
            return False
        if len(reads) == 1 and key is None and reads[0].items:
            return False
        if key is not None:
            self._blamed, self._why, self._records_max = key, error.message, 1
        else:
            self._records_max = reads[0].count if len(reads) > 1 else reads[0].count // 2
        with_records = [part.split for part in parts if part.records]
        self.split = with_records[0]
        return True

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
