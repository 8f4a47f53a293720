"""A quarantine as a source: records of which no row could be made are taken once more.

A replay of a source split takes what is left of it, up to a position: what the replay before it
could make no row of either, then what came to the quarantine since. What it can make no row of is
quarantined under its own name. So each record is in the quarantine of the newest replay that took
it, or in the table, whenever a process ends (protocol R2, R13).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.landing.kept_records import KeptRecords
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.replays import ReplayName, end_of, replay_of, resume_of
from lakebed.model.names import ConnectionId
from lakebed.model.ranges import Range
from lakebed.ports.record_source import SourceSplit
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable


class PlannedReplay(msgspec.Struct, frozen=True):
    """A replay, and what it takes if no commit has fixed that yet.

    earlier_end: behind the last position that an earlier replay took; 0: there is none.
    end: behind the last position that it takes.
    """

    replay: ReplayName
    earlier_end: int
    end: int


def unfinished_replays(positions: Mapping[str, Position]) -> list[PlannedReplay]:
    """Return the newest replay of each source split: it may have records left.

    positions: of a connection in its table, by source split, replays among them.

    Raises:
        CorruptError: an earlier replay has no position.
    """
    newest = _newest(positions)
    return [
        PlannedReplay(
            one, _end_of(positions, one.number - 1, split), _end_of_replay(positions, one)
        )
        for split, one in sorted(newest.items())
    ]


def next_replays(
    positions: Mapping[str, Position], finished: Sequence[PlannedReplay]
) -> list[PlannedReplay]:
    """Return the replays behind those that are finished. Another process may have begun them by
    now: then it is helped.

    positions: as `unfinished_replays`.
    finished: the newest replays that there were, of which nothing is left.

    Raises:
        CorruptError: as `unfinished_replays`.
    """
    numbers = {one.replay.split: one.replay.number for one in finished}
    planned = list[PlannedReplay]()
    for split, position in sorted(positions.items()):
        if replay_of(split) is None and isinstance(position.next, int):
            number = numbers.get(split, 0)
            earlier_end = _end_of(positions, number, split)
            end = max(position.next, earlier_end)
            planned.append(PlannedReplay(ReplayName(number + 1, split), earlier_end, end))
    return planned


class KeptRange(msgspec.Struct, frozen=True):
    """The range of rows of the quarantine that count, of those under one name.

    begin: position of the first one.
    end: behind the last one; None: there is no bound.
    """

    begin: int
    end: int | None = None


def kept_ranges(positions: Mapping[str, Position]) -> dict[str, KeptRange]:
    """Return which rows of the quarantine count, by the source split or replay that they are of:
    each record was taken by one replay last. Left out: all.

    positions: as `unfinished_replays`.
    """
    found = dict[str, KeptRange]()
    for name, position in positions.items():
        replay = replay_of(name)
        if replay is None or not isinstance(position.next, int):
            continue
        begin = found[name].begin if name in found else 0
        found[name] = KeptRange(begin, position.next)  # what lies behind is not committed yet
        earlier = (ReplayName(number, replay.split).name for number in range(1, replay.number))
        for kept_as in (replay.split, *earlier):
            known = found.get(kept_as, KeptRange(0))
            found[kept_as] = KeptRange(max(known.begin, position.next), known.end)
    return found


def _newest(positions: Mapping[str, Position]) -> dict[str, ReplayName]:
    found = dict[str, ReplayName]()
    for name in positions:
        one = replay_of(name)
        if one is not None and (one.split not in found or found[one.split].number < one.number):
            found[one.split] = one
    return found


def _end_of(positions: Mapping[str, Position], number: int, split: str) -> int:
    return _end_of_replay(positions, ReplayName(number, split)) if number else 0


def _end_of_replay(positions: Mapping[str, Position], replay: ReplayName) -> int:
    """Return where a replay ends; of one that has only marked its position, where its source split
    is now."""
    position = positions.get(replay.name)
    if position is None:
        hint = "its position was deleted: put it back with `lakebed feed positions reset`"
        raise CorruptError("an earlier replay has no position", replay=replay.name, hint=hint)
    if position.resume:
        return end_of(position)
    taken = positions[replay.split].next if replay.split in positions else 0
    return taken if isinstance(taken, int) else 0


class QuarantineSource:
    """Records of a connection in quarantine, to be replayed."""

    def __init__(
        self,
        quarantine: OpenTable,
        query: RunQuery[pa.RecordBatch],
        connection: ConnectionId,
        planned: Sequence[PlannedReplay],
    ) -> None:
        self._quarantine = quarantine
        self._query = query
        self._connection = connection
        self._planned = {one.replay.name: one for one in planned}

    def splits(self) -> list[SourceSplit]:
        """Return the replays."""
        return [
            SourceSplit(name, f"{self._quarantine.name}: {one.replay.split}")
            for name, one in self._planned.items()
        ]

    def start(self, split: SourceSplit) -> int:
        """Begin with the first record in quarantine."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> KeptRecords:
        """Return a reader of a replay. resume: fixes its end."""
        planned = self._planned[split.name]
        end = end_of(Position(1, begin, resume=resume)) if resume else planned.end
        fixed = resume_of(end)
        return KeptRecords(partial(self._rows, planned), begin, lambda _: end, resume=lambda: fixed)

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self, planned: PlannedReplay, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield what the replay before could make no row of, then what came since."""
        replay, border = planned.replay, min(planned.earlier_end, end)
        self._quarantine.head.follow()
        if begin < border:
            earlier = ReplayName(replay.number - 1, replay.split)
            yield from self._kept_as(earlier.name, begin, border)
        yield from self._kept_as(replay.split, max(begin, border), end)

    def _kept_as(self, split: str, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        ranges = {
            "connection": Range(self._connection, self._connection, max_inclusive=True),
            "source_split": Range(split, split, max_inclusive=True),
            "position": Range(begin, end),
        }
        condition = condition_of(self._quarantine.schema, ranges=ranges)
        return self._query.run(self._quarantine, condition)
