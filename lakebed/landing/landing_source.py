"""A landing table as a source: what one feed landed is read again, in order, by any number of
connections. None of them can hold up what lands, nor what the table's retention takes (protocol
R22). One that is behind is told what it has missed, and never passes over it (R15).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from lakebed.feed_errors import PositionGoneError
from lakebed.landing.kept_records import KeptRecords
from lakebed.landing.landed_ranges import LandedRanges
from lakebed.landing.verify_landing import TakenRange
from lakebed.model.feeds.positions import decode_position, position_name
from lakebed.model.names import ConnectionId
from lakebed.model.ranges import Range
from lakebed.ports.record_source import SourceSplit
from lakebed.ports.transaction_log import TransactionLog
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import (
    connection_of,
    positions_of,
    tally_of_split,
)


class LandingSource:
    """The records of a landing table, by the source splits and positions of what landed them.

    landed_by: the connection that fills the table.
    log: of the table.
    """

    reader: type[KeptRecords] = KeptRecords

    def __init__(
        self,
        table: OpenTable,
        landed_by: ConnectionId,
        query: RunQuery[pa.RecordBatch],
        log: TransactionLog,
    ) -> None:
        self._table = table
        self._landed_by = landed_by
        self._query = query
        self._ranges = LandedRanges(log, landed_by)

    def splits(self) -> list[SourceSplit]:
        """Return the source splits of which something was landed."""
        return [SourceSplit(name, f"{self._table.name}: {name}") for name in self._landed()]

    def start(self, split: SourceSplit) -> int:
        """Begin with the first record that is there."""
        end = self._landed().get(split.name, 0)
        batches = self._rows(split.name, 0, end)
        return next((int(self.reader.positions(rows)[0]) for rows in batches if len(rows)), end)

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> KeptRecords:
        """Return a reader of a source split. resume: says of which landing its position is."""
        landed = _LandedSplit(self, split.name, resume)
        return self.reader(
            partial(self._rows, split.name),
            begin,
            landed.end,
            resume=lambda: landed.resume,
            is_lost=partial(self._is_lost, split.name),
        )

    def close(self) -> None:
        """Nothing is held."""

    def has_before(self, split: str, position: int) -> bool:
        """Return whether the table has records of a source split before a position."""
        return any(len(rows) for rows in self._rows(split, 0, position))

    def end_of(self, split: str) -> tuple[int, bytes]:
        """Return how far a source split was landed, and a name for the landing: another table has
        another one, and a table that was cleared since."""
        self._table.head.follow()
        with self._table.head.reading() as state:
            value, _ = state.position(position_name(self._landed_by, split)) or (None, 0)
            generation = state.head().generation
        end = 0 if value is None else decode_position(value).next
        return end if isinstance(end, int) else 0, f"{self._table.id}/{generation}".encode()

    @property
    def name(self) -> str:
        """That of the table."""
        return self._table.name

    def _is_lost(self, split: str, begin: int, end: int) -> bool:
        """Return whether records were landed at some of these positions, where the table has none
        now.

        A landing has no record where it knew the message already, or where its own source had none.
        What its log does not say any longer is taken for lost: it is told once too often, and never
        passed over.
        """
        if self._landed_all(split):
            return True
        at = begin
        ranges = self._ranges.touching(split, begin, end)
        for one in ranges:
            if one.begin > at:
                return True
            at = max(at, one.end)
        return at < end or any(one.stored > self._count(split, one) for one in ranges if one.stored)

    def _landed_all(self, split: str) -> bool:
        """Return whether each position of a source split was that of a record which was landed."""
        with self._table.head.reading() as state:
            known = connection_of(state, self._landed_by)
            stored = 0 if known is None else tally_of_split(state, known, split).stored
        return stored == self.end_of(split)[0]

    def _count(self, split: str, taken: TakenRange) -> int:
        """Return how many records the table has of those that an entry took."""
        rows = self._rows(split, taken.begin, taken.end)
        return sum(map(len, rows))

    def _rows(self, split: str, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        ranges = {
            "source_split": Range(split, split, max_inclusive=True),
            "position": Range(begin, end),
        }
        return self._query.run(self._table, condition_of(self._table.schema, ranges=ranges))

    def _landed(self) -> dict[str, int]:
        """Return how far each source split was landed."""
        self._table.head.follow()
        with self._table.head.reading() as state:
            return {
                name: position.next
                for name, position, _ in positions_of(state, self._landed_by)
                if isinstance(position.next, int)
            }


class _LandedSplit:
    """The position up to which a source split was landed, for one reader of it.

    resume: says of which landing its position is; b"": of an older release, which did not say it.
    """

    def __init__(self, source: LandingSource, split: str, resume: bytes) -> None:
        self._source = source
        self._split = split
        self.resume = resume

    def end(self, wanted: int) -> int:
        """Return how far it was landed. wanted: the next position that is to be read.

        Raises:
            PositionGoneError: the landing begins again: it has other records at these positions.
        """
        end, resume = self._source.end_of(self._split)
        if end < wanted or (resume != self.resume and self._begins_again(wanted, resume)):
            raise PositionGoneError(
                "the landing table has fewer records than were taken: it was made anew, or cleared"
                " from the start",
                first=wanted,
                end=0,
                table=self._source.name,
                source_split=self._split,
            )
        self.resume = resume
        return end

    def _begins_again(self, wanted: int, resume: bytes) -> bool:
        """Return whether a landing with another name than before counts from the beginning again.
        One that was cleared, and goes on, has nothing of what was taken."""
        if not self.resume or not wanted:
            return False
        table, _, _ = self.resume.partition(b"/")
        return table != resume.partition(b"/")[0] or self._source.has_before(self._split, wanted)
