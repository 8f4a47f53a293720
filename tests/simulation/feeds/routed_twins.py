"""Twins of routes: each breaks exactly one rule of how tables share a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from lakebed.feeds.committed import read_committed
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.reading import read_once
from lakebed.ports.record_source import SourceSplit
from tests.simulation import violation as v
from tests.simulation.feeds.fed_twins import FedTwin
from tests.simulation.feeds.routed_rows import RoutedRows
from tests.simulation.feeds.routed_world import LANES, ROUTED_ACTORS, Lane, RoutedWorld
from tests.simulation.machine import Machine


class OpenedWhereTheFirstIs(Pipeline[list[Any]]):
    """A pipeline that goes on where the first table of the route has been taken to."""

    first: Pipeline[list[Any]] | None = None

    def _begin(self, splits: list[SourceSplit], owners: Mapping[str, int]) -> None:
        super()._begin(splits, owners)
        if self.first is None:
            return
        names = [split.name for split in splits]
        known = read_committed(self.first.table, self.first.connection, names).splits
        for split in splits:
            if split.name in known:
                one, begin = self._open[split.name], known[split.name].position.next
                position = msgspec.structs.replace(one.at.position, next=begin)
                one.at = msgspec.structs.replace(one.at, position=position)
                one.reader.close()
                one.reader = self._source.open(split, begin)


class OnePosition(RoutedWorld):
    """R7: one position for all tables of a route."""

    pipeline = OpenedWhereTheFirstIs

    def pipeline_for(
        self,
        lane: Lane,
        machine: Machine,
        *given: Any,  # noqa: ANN401 - as worlds have it
        **more: Any,  # noqa: ANN401 - as worlds have it
    ) -> Any:  # noqa: ANN401 - as worlds have it
        """Return a pipeline that knows the one of the first table."""
        made = super().pipeline_for(lane, machine, *given, **more)
        is_replay = len(given) > 2
        if lane.number and not is_replay:
            made.first = super().pipeline_for(self.lanes[0], machine, *given, **more)
        return made


class KeptByTheFirst(RoutedRows):
    """What cannot be read is in the quarantine of the first table, and filtered by all others."""

    quarantines_unreadable = False


class OneQuarantine(RoutedWorld):
    """R13: a record that may belong to any table is kept for one of them only."""

    rows_type = KeptByTheFirst


def move_value(world: RoutedWorld, machine: Machine) -> None:
    """Let a value lead into another table."""
    value = world.rng.choice(sorted(world.route.lanes))
    more = {value: (world.route.lanes[value] + 1) % LANES}
    world.route = msgspec.structs.replace(world.route, lanes=world.route.lanes | more)
    world.version += 1
    world.routes[world.version] = world.route


class MovedValues(RoutedWorld):
    """R17: a value changes its table while the feed runs."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - as a world has it
        super().__init__(*given)
        self.actors.append(move_value)  # type: ignore[arg-type]  # of this world
        self.weights.append(3 * max(ROUTED_ACTORS.values()) // 40)


def reads_on_where_another_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: who shares a reading goes on where the foremost reader is."""
    read = read_once._Reader._read

    def careless(self: Any, bytes_max: int, wait_seconds: float) -> Any:  # noqa: ANN401 - as it is
        if self._share.head is not None:
            self.next = self._share.at
        return read(self, bytes_max, wait_seconds)

    monkeypatch.setattr(read_once._Reader, "_read", careless)


ROUTED_TWINS: dict[str, FedTwin] = {
    "one position for several tables": FedTwin(
        frozenset({v.FED_ROWS, v.FED_LEDGER}), world=OnePosition
    ),
    "reads on where another one stands": FedTwin(
        frozenset({v.FED_ROWS, v.FED_LEDGER}),
        patches=(reads_on_where_another_one_stands,),
        world=RoutedWorld,
    ),
    "kept for one table of a route": FedTwin(frozenset({v.FED_ROWS}), world=OneQuarantine),
    "a value changes its table": FedTwin(frozenset({v.FED_ROUTE}), world=MovedValues),
}
