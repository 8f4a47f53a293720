"""The quarantine of a feed: records of which no row could be made, each there or in the table, and
never in both (protocol R13).

Two logs cannot be changed at once, and a decoder may answer differently the second time. So a
verdict has to stick from the moment at which it can be seen:

1. Before records are added to the quarantine, the table's position is marked as pending, one
   revision later. Whatever another worker has made of these records can not be committed any more.
2. They are added to the quarantine, whose log has a position of the source split, too: each change
   of it names the one that it starts from.
3. The round is committed to the table. It counts them, and the mark is gone.

A worker that meets a mark takes over: it marks the table's position anew, then moves the
quarantine's. Now none of those before it can commit anything to either. What the quarantine holds
beyond the table's position is quarantined, whatever the decoder says now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.feeds.committed import (
    FeedConnection,
    PositionMove,
    SplitAt,
    commit_until_known,
    count_of,
    read_committed,
)
from lakebed.ingest.stage_rows import StageRows, Writer
from lakebed.model.feeds.positions import Position
from lakebed.model.names import CommitId, JobId, digest_of
from lakebed.model.ranges import Range
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.log_entries.feed_changes import Define
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.open_table import OpenTable, Start

BatchT = TypeVar("BatchT")

NOWHERE = SplitAt(None, Position(0, 0))
"""Position of a source split in the log of a quarantine that has none of its records."""


class Held(msgspec.Struct, Generic[BatchT], frozen=True):
    """A source split of which the quarantine may hold records that no commit has counted.

    at: in the table.
    in_quarantine: in the quarantine's log.
    rows: that the quarantine holds behind the table's position.
    """

    at: SplitAt
    in_quarantine: SplitAt
    rows: tuple[BatchT, ...] = ()


class OwnedSplit(msgspec.Struct, frozen=True):
    """A source split with the number of its owner, and where it is in the table."""

    split: str
    owner: int
    at: SplitAt


class Quarantine(Generic[BatchT]):
    """Keeps a feed's bad records. Safe to kill anywhere.

    open_table: gives the quarantine table, which is created where there is none.
    """

    def __init__(
        self,
        *,
        stage: StageRows[BatchT],
        query: RunQuery[BatchT],
        open_table: Callable[[], OpenTable],
    ) -> None:
        self._stage = stage
        self._query = query
        self._open_table = open_table

    def look(self, connection: FeedConnection, splits: Sequence[str]) -> dict[str, SplitAt]:
        """Return where source splits are in the quarantine's log. Ask before `mark`.

        Raises:
            UnavailableError: ask again.
        """
        known = read_committed(self._open_table(), connection, splits).splits
        return {split: known.get(split, NOWHERE) for split in splits}

    def mark(
        self,
        table: OpenTable,
        start: Start,
        connection: FeedConnection,
        splits: Sequence[OwnedSplit],
    ) -> dict[str, SplitAt]:
        """Mark positions of the table as pending. Returns where they are now.

        Raises:
            PositionMovedError, OwnerFencedError: another worker has taken a source split on.
            DefinitionMovedError: the table knows a newer definition (R17).
        """
        moves = [
            one.at.moved(connection.id, one.split, _marked(one.at.position), one.owner)
            for one in splits
        ]
        by = Define(connection.id, connection.version)  # refused, if it is no longer the newest
        commit_until_known(table, _moving(table, start, moves, changes=(by,)))
        return {move.split: move.to for move in moves}

    def take_over(
        self,
        table: OpenTable,
        start: Start,
        connection: FeedConnection,
        splits: Sequence[OwnedSplit],
        ends: Mapping[str, int],
    ) -> dict[str, Held[BatchT]]:
        """Make sure that no other worker adds records of source splits to the quarantine or to the
        table, then return what it holds of them. ends: behind the records that are looked for.

        Raises:
            PositionMovedError, OwnerFencedError: another worker has taken a source split on.
        """
        ats = self.mark(table, start, connection, splits)
        quarantine = self._open_table()
        known = read_committed(quarantine, connection, [one.split for one in splits])
        moves = [
            (at := known.splits.get(one.split, NOWHERE)).moved(
                connection.id,
                one.split,
                _reaching(at.position, 0),
                one.owner,
            )
            for one in splits
        ]
        commit_until_known(quarantine, _moving(quarantine, known.start, moves))
        quarantine.head.follow()
        return {
            move.split: Held(
                ats[move.split],
                move.to,
                self._rows(quarantine, connection, move.split, ats[move.split], ends[move.split]),
            )
            for move in moves
        }

    def add(
        self,
        connection: FeedConnection,
        splits: Sequence[OwnedSplit],
        known: Mapping[str, SplitAt],
        rows: Sequence[BatchT],
        ends: Mapping[str, int],
    ) -> None:
        """Add records. known: where their source splits are in the quarantine's log.

        Raises:
            PositionMovedError, OwnerFencedError: another worker has taken a source split on;
                nothing was added.
            TableBusyError: compaction must catch up first.
        """
        quarantine = self._open_table()
        start = read_committed(quarantine, connection, ()).start
        id_ = quarantine.fresh_id()
        writer = Writer(start.base, JobId(id_), quarantine.fresh_run())
        staged = self._stage.run(quarantine, quarantine.schema, rows, writer=writer)
        moves = [
            known[one.split].moved(
                connection.id,
                one.split,
                _reaching(known[one.split].position, ends[one.split]),
                one.owner,
            )
            for one in splits
        ]
        changes: tuple[Change, ...] = (AddFiles(staged.references),) if staged.references else ()
        commit_until_known(quarantine, _moving(quarantine, start, moves, id_, changes))

    def count(self, batches: Sequence[BatchT]) -> int:
        """Return how many records some batches of rows are."""
        return sum(map(self._query.rows, batches))

    def _rows(
        self, quarantine: OpenTable, connection: FeedConnection, split: str, at: SplitAt, end: int
    ) -> tuple[BatchT, ...]:
        ranges = {
            "connection": Range(connection.id, connection.id, max_inclusive=True),
            "source_split": Range(split, split, max_inclusive=True),
            "position": Range(count_of(at.position), end),
        }
        return tuple(self._query.run(quarantine, condition_of(quarantine.schema, ranges=ranges)))


def _marked(position: Position) -> Position:
    return msgspec.structs.replace(position, revision=position.revision + 1, is_pending=True)


def _reaching(position: Position, end: int) -> Position:
    """Return the next position of the quarantine's log: behind all records that were added."""
    return Position(position.revision + 1, max(count_of(position), end))


def _moving(
    table: OpenTable,
    start: Start,
    moves: Sequence[PositionMove],
    id_: str = "",
    changes: tuple[Change, ...] = (),
) -> Transaction:
    id_ = id_ or table.fresh_id()
    return Transaction(
        CommitId(id_),
        digest_of(id_.encode()),
        start.base,
        start.generation,
        changes,
        tuple(move.change for move in moves),
    )
