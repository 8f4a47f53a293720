"""A world with a feed that is landed, and a connection that reads the landing table (protocol R22):
machines land records of one source, others make rows of what was landed, and the landing table
loses rows that nobody has read yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.owned_splits import OwnedSplits
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.kept_records import KeptRecords
from lakebed.landing.landing_source import LandingSource
from lakebed.model.feeds.positions import connection_id
from lakebed.model.ranges import Range
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.record_source import Records, RecordSource
from lakebed.query.conditions import condition_of
from lakebed.statestore.open_table import OpenTable
from tests.simulation import actors
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_exact
from tests.simulation.feeds import fed_actors
from tests.simulation.feeds.fed_actors import turn_once
from tests.simulation.feeds.fed_auditor import FedAuditor, Taken
from tests.simulation.feeds.fed_world import FedWorld, OwnsAs, take_in_peace
from tests.simulation.feeds.model_source import ModelDoor, RawRecord
from tests.simulation.machine import Machine, Parts
from tests.simulation.violation import ENDS, Violation

PARENT = connection_id("1a" * 16)
LANDING_SCHEMA = schema_of(
    row_keys={"source_split": "string", "position": "int64"}, values={"id": "int64"}
)


class LandedRows:
    """Makes a row of each record, as it came."""

    schema: Schema = LANDING_SCHEMA
    windows: None = None

    def concat(self, batches: Sequence[list[Any]]) -> list[Any]:
        """Return several batches as one."""
        return [record for batch in batches for record in batch]

    def first(self, batch: list[Any], count: int) -> tuple[list[Any], int, int]:
        """Return the first records of a batch of more."""
        return batch[:count], batch[count][0], count

    def row(self, rows: list[Any], index: int) -> list[Any]:
        """Return one of some rows."""
        return rows[index : index + 1]

    def __call__(
        self, split: str, records: Records[list[Any]], known: KnownBefore[list[Any]]
    ) -> MadeRows[list[Any]]:
        """Return the rows of some records."""
        rows = [(split, position, id_) for position, id_ in records.batch]
        return MadeRows(rows=rows, rows_count=len(rows), read=records.count, size=records.size)


class KeptTuples(KeptRecords):
    """Reads records of a landing table that are tuples."""

    @staticmethod
    def positions(rows: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401 - a list of tuples
        """Return the positions of some rows."""
        return np.array([position for _, position, _ in rows], np.int64)

    @staticmethod
    def size(rows: Any) -> int:  # noqa: ANN401 - a list of tuples
        """Return how many bytes some rows have."""
        return 10 * len(rows)

    def _records(self, rows: Any) -> Records[Any]:  # noqa: ANN401 - a list of tuples
        begin, self._next = self._next, rows[-1][1] + 1
        return Records(
            begin=begin,
            end=self._next,
            count=len(rows),
            size=self.size(rows),
            batch=[(position, id_) for _, position, id_ in rows],
            resume=self._resume(),
        )


class ModelLanding(LandingSource):
    """A landing table whose records are tuples."""

    reader = KeptTuples


class LandedWorld(FedWorld):
    """All that one seed decides, with a landing table and a child."""

    parent_pipeline: type[Pipeline[list[Any]]] = Pipeline

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        self.parents: dict[Machine, Pipeline[list[Any]]] = {}
        super().__init__(seed, scratch, parts)
        self.actors = list(LANDED_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in LANDED_ACTORS.values()]
        self._latest = self.actors[0]
        with self.weather.none():
            catalog = self.calm_machine().catalog
            self.landing = catalog.create(
                "landing", LANDING_SCHEMA, settings=self.some_settings()
            ).id
        self.landing_auditor.records_in = super()._records_in

    @property
    def landing_auditor(self) -> FedAuditor:
        """That of the landing table."""
        found = self.auditors[self.landing]
        assert isinstance(found, FedAuditor)
        return found

    def some_table(self, machine: Machine) -> OpenTable:
        """Return one of the tables."""
        return machine.catalog.find(self.rng.choice(("fed", "landing", "landing", "quarantine")))

    def records_of(self, taken: Taken) -> list[RawRecord]:
        """Return the records of a range that were landed, whatever has become of them since."""
        landed = [
            one for one in self.landing_auditor.taken if one.split == taken.split and not one.is_gap
        ]
        return [
            record
            for record in super().records_of(taken)
            if any(one.begin <= record[0] < one.end for one in landed)
        ]

    def _records_in(self, split: str, begin: int, end: int) -> int:
        return len(self.records_of(Taken(self.fed_auditor.number, split, begin, end, is_gap=False)))

    def parent_of(self, machine: Machine) -> Pipeline[list[Any]]:
        """Return the machine's worker that lands: see `pipeline_of`."""
        if machine not in self.parents:
            self.owner += 1
            self.parents[machine] = self._made_parent(machine, self.owner)
        return self.parents[machine]

    def forget_parent(self, machine: Machine, *, to_newest: bool = False) -> None:
        """Let a machine begin as a new owner with its next turn, by the definition of now."""
        self.parents.pop(machine, None)

    def _made_parent(
        self, machine: Machine, owner: int, *, is_calm: bool = False
    ) -> Pipeline[list[Any]]:
        return self.parent_pipeline(
            table=machine.catalog.find("landing"),
            connection=FeedConnection(PARENT, self.version),
            source=ModelDoor(self.source, self.rng, is_calm=is_calm),
            rounds=CommitRound[Any](
                stage=StageRows[Any](files=machine.files),
                make_rows=LandedRows(),
                clock=machine.clock,
            ),
            clock=machine.clock,
            rules=PipelineRules(
                limits=RotationLimits(size=self.rng.choice((60, 300)), seconds=100),
                records_gaps=True,
            ),
            splits=OwnsAs(owner),
        )

    def _made_pipeline(
        self,
        machine: Machine,
        splits: OwnedSplits,
        version: int,
        *,
        source: RecordSource[list[Any]] | None = None,
        is_calm: bool = False,
    ) -> Pipeline[list[Any]]:
        landing = machine.catalog.find("landing")
        kept: Any = ModelLanding(landing, PARENT, machine.query, machine.logs.open(landing.id))
        return super()._made_pipeline(machine, splits, version, source=kept, is_calm=is_calm)

    # the end

    def end(self) -> None:
        """Let the landing take all that there is while the child stands still; then the child."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        self.owner += 1
        parent = self._made_parent(machine, self.owner, is_calm=True)
        take_in_peace(self, parent, machine, ("landing",))
        check_landed(self, positions_of_landing(machine))
        super().end()

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what the child filled with what was ever landed."""
        if table.id == self.landing:
            check_exact(machine, table)
        else:
            super().check_rows(machine, table, auditor)


def positions_of_landing(machine: Machine) -> Mapping[str, object]:
    """Return how far each source split was landed."""
    found = positions_in(machine.catalog.find("landing"), PARENT)
    return {split: position.next for split, position in found.items()}


def check_landed(world: LandedWorld, at: Mapping[str, object]) -> None:
    """All that the source had was landed, however far the child is behind."""
    for split in world.source.topics.values():
        last = split.offsets[-1] if split.kept < len(split.offsets) else None
        if last is not None and at.get(split.name) != last + 1:
            raise Violation(ENDS, f"{split.name} has records that were never landed")


def land(world: LandedWorld, machine: Machine) -> None:
    """Let a machine land records: see `fed_actors.take_turns`."""
    parent, forget = world.parent_of(machine), partial(world.forget_parent, machine)
    for _ in range(world.rng.randrange(1, 5)):
        turn_once(world, parent, forget)


def lose_landed(world: LandedWorld, machine: Machine) -> None:
    """Let retention take landed records of a source split, whoever has read them: the oldest, or,
    as it goes by time, some between."""
    table, rng = machine.catalog.find("landing"), world.rng
    ends = {split: end for split, end in positions_of_landing(machine).items() if end}
    if not ends:
        return
    split = rng.choice(sorted(ends))
    end = ends[split]
    assert isinstance(end, int)
    first = rng.choice((0, 0, rng.randrange(end)))
    last = rng.randrange(first, end) + 1
    ranges = {
        "source_split": Range(split, split, max_inclusive=True),
        "position": Range(first, last),
    }
    machine.delete.run(table, lambda schema: condition_of(schema, ranges=ranges))


def clear_landing(world: LandedWorld, machine: Machine) -> None:
    """Clear the landing table; what lands goes on behind it."""
    fed_actors.clear_table(machine, "landing")


LANDED_ACTORS: dict[Any, int] = {
    land: 50,
    fed_actors.take_turns: 25,
    lose_landed: 25,
    clear_landing: 1,
    fed_actors.produce: 25,
    fed_actors.grow: 2,
    fed_actors.make_anew: 1,
    fed_actors.forget_old: 2,
    fed_actors.define: 1,
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
