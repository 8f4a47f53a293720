"""Rows of a route in the simulation: whose a record is follows from it, and now and then a machine
cannot read that."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.model.feeds.replays import origin_of, replay_of
from lakebed.model.names import ConnectionId
from lakebed.ports.record_source import Records
from tests.simulation.feeds.fed_rows import STILL_BAD_CHANCE, ModelRows, is_filtered

VALUES = 5
UNREADABLE_EVERY = 13
UNREADABLE_CHANCE = BAD_CHANCE = 0.1


class ModelRoute(msgspec.Struct, frozen=True):
    """Which table a record belongs to. lanes: number of the table by value. rest: of all others;
    None: there is none."""

    lanes: dict[int, int]
    rest: int | None = None

    def lane_of(self, id_: int) -> int | None:
        """Return the number of a record's table; None: it belongs to none."""
        return self.lanes.get(id_ % VALUES, self.rest)

    def without_table(self) -> list[int]:
        """Return the values that lead nowhere."""
        return [v for v in range(VALUES) if v not in self.lanes and self.rest is None]


class RoutedRows(ModelRows):
    """Makes rows of the records of one table of a route. Whether a record's value can be read, and
    whether it is a row then, is decided anew each time."""

    quarantines_unreadable = True

    def __init__(
        self,
        connection: ConnectionId,
        rng: random.Random,
        *,
        width: int,
        lane: int,
        route: ModelRoute,
    ) -> None:
        super().__init__(connection, rng, width=width)
        self._lane = lane
        self._route = route

    def __call__(
        self, split: str, records: Records[list[Any]], known: KnownBefore[list[Any]]
    ) -> MadeRows[list[Any]]:
        """Return what became of some records."""
        there = {row[2] for batch in known.in_quarantine for row in batch}
        rows, bad, filtered, quarantined = [], [], 0, 0
        for position, id_ in records.batch:
            fate = "bad" if position in there else self._fate(split, position, id_)
            if fate == "row":
                key = (position * 7919 + len(origin_of(split))) % self._width
                rows.append((key, origin_of(split), position, id_))
            elif fate == "filtered":
                filtered += 1
            else:
                quarantined += 1
                if position not in there:
                    bad.append((self._connection, split, position, id_))
        return MadeRows(
            rows=rows or None,
            rows_count=len(rows),
            read=records.count,
            size=records.size,
            filtered=filtered,
            quarantined=quarantined,
            quarantine=bad or None,
        )

    def _fate(self, split: str, position: int, id_: int) -> str:
        is_replay = replay_of(split) is not None
        draw = self._rng.random()
        if is_replay and draw < STILL_BAD_CHANCE:
            return "bad"
        if not is_replay and (position % UNREADABLE_EVERY == 0 or draw < UNREADABLE_CHANCE):
            return "bad" if self.quarantines_unreadable or not self._lane else "filtered"
        lane = self._route.lane_of(id_)
        if lane is None:
            return "bad"
        if lane != self._lane or is_filtered(position):
            return "filtered"
        return "bad" if not is_replay and self._rng.random() < BAD_CHANCE else "row"
