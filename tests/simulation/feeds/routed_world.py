"""A world with a route: machines take records of one source into several tables, each by a chain of
positions of its own, and all of them share one quarantine table."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from lakebed.errors import LakebedError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.quarantine import Quarantine
from lakebed.feeds.reading.read_once import SharedSources
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.quarantine_source import PlannedReplay
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import ConnectionId
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.open_table import OpenTable, start_of
from tests.simulation import actors
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_exact
from tests.simulation.feeds import fed_actors
from tests.simulation.feeds.fed_actors import replay_some, turn_once
from tests.simulation.feeds.fed_auditor import FedAuditor
from tests.simulation.feeds.fed_rows import FED_SCHEMA
from tests.simulation.feeds.fed_world import FedWorld, OwnsAs, take_in_peace
from tests.simulation.feeds.model_replays import ModelQuarantine, planned_replays
from tests.simulation.feeds.model_source import ModelDoor
from tests.simulation.feeds.routed_checks import check_apart, check_lane
from tests.simulation.feeds.routed_rows import ModelRoute, RoutedRows
from tests.simulation.machine import Machine, Parts
from tests.simulation.world import World

LANES = 3


class Lane:
    """One table of the route, with those who work for it.

    pipelines, replays: of each machine. planned, finished: of its replays.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = "fed" if number == 0 else f"fed_{number}"
        self.connection: ConnectionId = connection_id(f"{number + 1:02x}" * 16)
        self.pipelines: dict[Machine, Pipeline[list[Any]]] = {}
        self.versions: dict[Machine, int] = {}
        self.replays: dict[Machine, Pipeline[list[Any]]] = {}
        self.planned: dict[Machine, list[PlannedReplay]] = {}
        self.finished: dict[Machine, list[PlannedReplay]] = {}

    def forget(self, machine: Machine, *, to_newest: bool) -> None:
        """Let a machine begin as a new owner with its next turn. to_newest: by the definition of
        now; else by the one that it knows."""
        gone = self.pipelines.pop(machine, None)
        if gone is not None and not to_newest:
            self.versions[machine] = gone.connection.version

    def end_replay(self, machine: Machine, *, is_whole: bool) -> None:
        """Let a machine's next replay be another one. is_whole: nothing was left of this one."""
        del self.replays[machine]
        was_new = self.finished.pop(machine, None) is not None
        if is_whole and not was_new:
            self.finished[machine] = self.planned[machine]


class RoutedWorld(FedWorld):
    """All that one seed decides, with a route."""

    rows_type: type[RoutedRows] = RoutedRows

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        self.lanes = [Lane(number) for number in range(LANES)]
        self.read_once: dict[Machine, SharedSources[list[Any]]] = {}
        super().__init__(seed, scratch, parts)
        self.actors = list(ROUTED_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in ROUTED_ACTORS.values()]
        self._latest = self.actors[0]
        lanes = self.rng.choice(({0: 0, 1: 1}, {0: 0, 1: 1, 2: 2}, {0: 1, 3: 1}))
        self.route = ModelRoute(lanes, self.rng.choice((None, None, LANES - 1)))
        self.routes = {self.version: self.route}
        with self.weather.none():
            catalog = self.calm_machine().catalog
            for lane in self.lanes[1:]:
                catalog.create(lane.name, FED_SCHEMA, settings=self.some_settings())
            self.tables = [catalog.find(lane.name).id for lane in self.lanes]
        for lane in self.lanes:
            self.auditor_of_lane(lane).records_in = self._records_in

    def auditor_of_lane(self, lane: Lane) -> FedAuditor:
        """Return that of a table of the route."""
        found = self.auditor_of(self.tables[lane.number])
        assert isinstance(found, FedAuditor)
        return found

    def some_table(self, machine: Machine) -> OpenTable:
        """Return one of the tables."""
        names = ["quarantine", *(lane.name for lane in self.lanes)]
        return machine.catalog.find(self.rng.choice(names))

    def route_as_of(self, version: int) -> ModelRoute:
        """Return the route of a definition."""
        return self.routes[max(known for known in self.routes if known <= version)]

    def pipeline_in(self, lane: Lane, machine: Machine) -> Pipeline[list[Any]]:
        """Return a machine's worker on one of the tables: see `pipeline_of`."""
        if machine not in lane.pipelines:
            self.owner += 1
            version = lane.versions.pop(machine, self.version)
            lane.pipelines[machine] = self.pipeline_for(lane, machine, self.owner, version)
        return lane.pipelines[machine]

    def replay_in(self, lane: Lane, machine: Machine) -> Pipeline[list[Any]]:
        """Return a machine's replay of what one of the tables lacks: see `replay_of`."""
        if machine not in lane.replays:
            positions = positions_in(machine.catalog.find(lane.name), lane.connection)
            planned = planned_replays(positions, lane.finished.get(machine))
            quarantine = machine.catalog.find("quarantine")
            source = ModelQuarantine(quarantine, machine.query, lane.connection, planned)
            lane.planned[machine] = planned
            lane.replays[machine] = self.pipeline_for(lane, machine, 0, self.version, source)
        return lane.replays[machine]

    def pipeline_for(
        self,
        lane: Lane,
        machine: Machine,
        owner: int,
        version: int,
        source: RecordSource[list[Any]] | None = None,
        *,
        is_calm: bool = False,
    ) -> Pipeline[list[Any]]:
        """Return what takes records of the source, or of another one, into one of the tables."""
        stage = StageRows[Any](files=machine.files)
        rounds = CommitRound(
            stage=stage,
            make_rows=self.rows_type(
                lane.connection,
                self.rng,
                width=self.width,
                lane=lane.number,
                route=self.route_as_of(version),
            ),
            clock=machine.clock,
            quarantine=Quarantine(
                stage=stage,
                query=machine.query,
                open_table=lambda: machine.catalog.find("quarantine"),
            ),
        )
        return self.pipeline(
            table=machine.catalog.find(lane.name),
            connection=FeedConnection(lane.connection, version),
            source=source or self._door(machine, version, is_calm=is_calm),
            rounds=rounds,
            clock=machine.clock,
            rules=PipelineRules(
                limits=RotationLimits(size=self.rng.choice((60, 300)), seconds=100),
                records_gaps=True,
            ),
            splits=OwnsAs(owner),
        )

    def _door(self, machine: Machine, version: int, *, is_calm: bool) -> RecordSource[list[Any]]:
        """Return the source, which pipelines of a machine read together, for the most."""
        if is_calm or self.rng.random() < 0.2:
            return ModelDoor(self.source, self.rng, is_calm=is_calm)
        if machine not in self.read_once:
            self.read_once[machine] = SharedSources(machine.clock.monotonic)
        return self.read_once[machine].join(("", version), lambda: ModelDoor(self.source, self.rng))

    # the end

    def end(self) -> None:
        """Let each table take all that there is, in peace, one after the other."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        for lane in self.lanes:
            self._take_all(lane, machine)
        World.end(self)

    def _take_all(self, lane: Lane, machine: Machine) -> None:
        self.owner += 1
        pipeline = self.pipeline_for(lane, machine, self.owner, self.version, is_calm=True)
        take_in_peace(self, pipeline, machine, (lane.name, "quarantine"))

    def check(self) -> None:
        """Look at each table, then at all of them together."""
        super().check()
        check_apart(self, self.calm_machine(informed=True))

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what the route filled with what its source ever gave."""
        if table.id in self.tables:
            check_lane(self, self.lanes[self.tables.index(table.id)], machine, table)
        elif table.id != self.quarantine.id:
            World.check_rows(self, machine, table, auditor)
        check_exact(machine, table)


def take_turns(world: RoutedWorld, machine: Machine) -> None:
    """Let a machine's worker on one of the tables read and commit: see `fed_actors.take_turns`."""
    lane = world.rng.choice(world.lanes)
    for _ in range(world.rng.randrange(1, 5)):
        take_turn(world, lane, machine)


def take_turns_on_all(world: RoutedWorld, machine: Machine) -> None:
    """Let a machine work on all tables, one after the other, as a worker does. What one of them
    meets is nothing to the next."""
    for _ in range(world.rng.randrange(1, 5)):
        for lane in world.lanes:
            with suppress(LakebedError):
                take_turn(world, lane, machine)


def take_turn(world: RoutedWorld, lane: Lane, machine: Machine) -> None:
    """Let a machine's worker on a table take a turn. It begins again as a new owner, or with the
    newest definition, where it must."""
    turn_once(world, world.pipeline_in(lane, machine), partial(lane.forget, machine))


def replay(world: RoutedWorld, machine: Machine) -> None:
    """Let an operator take records in quarantine of one of the tables once more."""
    lane = world.rng.choice(world.lanes)
    replay_some(world, world.replay_in(lane, machine), partial(lane.end_replay, machine))


def clear(world: RoutedWorld, machine: Machine) -> None:
    """Clear one of the tables, and no other."""
    table = machine.catalog.find(world.rng.choice(world.lanes).name)
    with table.head.reading() as state:
        start = start_of(state)
    table.head.commit(table.own(start, Clear(())))


def add_value(world: RoutedWorld, machine: Machine) -> None:
    """Let a value lead into a table that led into none before."""
    if values := world.route.without_table():
        more = {world.rng.choice(values): world.rng.randrange(LANES)}
        world.route = msgspec.structs.replace(world.route, lanes=world.route.lanes | more)
        world.version += 1
        world.routes[world.version] = world.route


ROUTED_ACTORS: dict[Any, int] = {
    take_turns: 50,
    take_turns_on_all: 30,
    replay: 20,
    fed_actors.produce: 25,
    fed_actors.grow: 2,
    fed_actors.make_anew: 1,
    fed_actors.forget_old: 2,
    fed_actors.define: 1,
    clear: 1,
    add_value: 2,
    actors.create_jobs: 6,
    actors.work: 8,
    actors.run_any_job: 2,
    actors.give_up: 1,
    actors.split: 5,
    actors.collect: 4,
    actors.sweep: 5,
    actors.snapshot: 2,
    actors.snapshot_twice: 2,
    actors.damage_snapshot: 1,
}
