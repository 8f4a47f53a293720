"""A world with a feed: machines take records of one source into a table and its quarantine, while
both are compacted, split, swept and cleared."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakebed.errors import LakebedError, TableBusyError, UnavailableError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.owned_splits import NewestOwners, OwnedSplits
from lakebed.feeds.pacing.congestion import Congestion, CongestionRules, Relief
from lakebed.feeds.pacing.known_items import OldItems
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.quarantine import Quarantine
from lakebed.feeds.rotation import RotationLimits
from lakebed.ingest.stage_rows import StageRows
from lakebed.landing.quarantine_source import PlannedReplay
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import TableId
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.open_table import OpenTable
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_exact, keep_house
from tests.simulation.feeds.fed_actors import FED_ACTORS
from tests.simulation.feeds.fed_auditor import FedAuditor, Taken
from tests.simulation.feeds.fed_checks import check_fed
from tests.simulation.feeds.fed_rows import FED_SCHEMA, QUARANTINE_SCHEMA, ModelRows
from tests.simulation.feeds.model_replays import ModelQuarantine, planned_replays
from tests.simulation.feeds.model_source import ModelDoor, ModelSource, RawRecord
from tests.simulation.machine import Machine, Parts
from tests.simulation.violation import ENDS, Violation
from tests.simulation.world import World

CONNECTION = connection_id("fe" * 16)
ROUNDS_MAX = 400
"""After which a feed in peace has taken all that its source had."""


QUIET_ROUNDS = 12
"""After which nothing is left: the source gives nothing now and then."""


class OwnsAs:
    """A worker that believes to own all, or the first ones, as an owner of this number, whatever
    happens."""

    def __init__(self, owner: int, count: int | None = None) -> None:
        self._owner, self._count = owner, count

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return these source splits."""
        return dict.fromkeys(splits[: self._count], self._owner)

    def release(self, split: str) -> None:
        """Do nothing."""


class ByChance(Congestion):
    """Leaves records out now and then, whatever the source does."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(CongestionRules())
        self._rng = rng

    @property
    def relief(self) -> Relief:
        """What the next round leaves out."""
        rng = self._rng
        return Relief(rng.choice((1.0, 1.0, 1.0, 0.5)), rng.choice((0.0, 0.0, 0.0, 0.2)))


class FedWorld(World):
    """All that one seed decides, with a feed."""

    connection = CONNECTION

    may_use_parquet = False
    ends_at_rest = True  # three tables are kept; what housekeeping does to one, others look for
    pipeline = Pipeline
    source_type = ModelSource
    rows_type = ModelRows
    once_seconds: int | None = None
    idle_seconds: float | None = None

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        self._pipelines: dict[Machine, Pipeline[list[Any]]] = {}
        self._versions: dict[Machine, int] = {}
        self._replays: dict[Machine, Pipeline[list[Any]]] = {}
        self._planned: dict[Machine, list[PlannedReplay]] = {}
        self._finished: dict[Machine, list[PlannedReplay]] = {}
        super().__init__(seed, scratch, parts, theme=self.theme_of(seed))
        self.actors = list(FED_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in FED_ACTORS.values()]
        self._latest = self.actors[0]
        self.source = self.source_type(self.rng)
        self.source.grow()
        self.owner = 0
        self.version = 1
        self.width = self.rng.choice((3, 30, 300))
        with self.weather.none():
            catalog = self.calm_machine().catalog
            settings = self.some_settings()
            self.fed = catalog.create("fed", FED_SCHEMA, settings=settings)
            self.quarantine = catalog.create("quarantine", QUARANTINE_SCHEMA, settings=settings)
        self.fed_auditor.records_in = self._records_in

    def theme_of(self, seed: int) -> str:
        """Return what else the world does."""
        return "all"

    def auditor_of(self, table: TableId) -> Auditor:
        """Return a table's auditor."""
        if table not in self.auditors:
            self.auditors[table] = FedAuditor(table, self.clock, self._requests, self._facts)
        return self.auditors[table]

    @property
    def fed_auditor(self) -> FedAuditor:
        """That of the table which the feed fills."""
        found = self.auditors[self.fed.id]
        assert isinstance(found, FedAuditor)
        return found

    def counts(self) -> Counter[str]:
        """Return how often each thing happened, to the source too."""
        return super().counts() + Counter(
            {str(kind): n for kind, n in self.source.happened.items()}
        )

    def some_table(self, machine: Machine) -> OpenTable:
        """Return one of the two tables."""
        return machine.catalog.find("fed" if self.rng.random() < 0.7 else "quarantine")

    def pipeline_of(self, machine: Machine) -> Pipeline[list[Any]]:
        """Return the machine's worker, which may have read ahead long ago. It is a new owner when
        it begins, and believes so for ever."""
        if machine not in self._pipelines:
            self.owner += 1
            splits = self.owned_as(self.owner)
            version = self._versions.pop(machine, self.version)
            self._pipelines[machine] = self._made_pipeline(machine, splits, version)
        return self._pipelines[machine]

    def replay_of(self, machine: Machine) -> Pipeline[list[Any]]:
        """Return the machine's replay of the quarantine: first of what was begun, then a new one;
        it may have read long ago."""
        if machine not in self._replays:
            positions = positions_in(machine.catalog.find("fed"), CONNECTION)
            planned = planned_replays(positions, self._finished.get(machine))
            quarantine = machine.catalog.find("quarantine")
            source = ModelQuarantine(quarantine, machine.query, CONNECTION, planned)
            self._planned[machine] = planned
            made = self._made_pipeline(machine, OwnsAs(0), self.version, source=source)
            self._replays[machine] = made
        return self._replays[machine]

    def end_replay(self, machine: Machine, *, is_whole: bool) -> None:
        """Let a machine's next replay be another one. is_whole: nothing was left of this one."""
        del self._replays[machine]
        was_new = self._finished.pop(machine, None) is not None
        if is_whole and not was_new:
            self._finished[machine] = self._planned[machine]

    def _made_pipeline(
        self,
        machine: Machine,
        splits: OwnedSplits,
        version: int,
        *,
        source: RecordSource[list[Any]] | None = None,
        is_calm: bool = False,
    ) -> Pipeline[list[Any]]:
        stage = StageRows[Any](files=machine.files)
        rounds = CommitRound(
            stage=stage,
            make_rows=self.make_rows(),
            old_items=None if self.once_seconds is None else OldItems(self.once_seconds),
            clock=machine.clock,
            quarantine=Quarantine(
                stage=stage,
                query=machine.query,
                open_table=lambda: machine.catalog.find("quarantine"),
            ),
        )
        made = self.pipeline(
            table=machine.catalog.find("fed"),
            connection=FeedConnection(CONNECTION, version),
            source=source or ModelDoor(self.source, self.rng, is_calm=is_calm),
            rounds=rounds,
            clock=machine.clock,
            rules=PipelineRules(
                limits=RotationLimits(size=self.rng.choice((60, 300)), seconds=100),
                records_gaps=True,
                idle_seconds=self.idle_seconds,
            ),
            splits=splits,
        )
        if not is_calm and source is None and self.once_seconds is None:
            made.flow.congestion = ByChance(self.rng)
        return made

    def make_rows(self) -> ModelRows:
        """Return what makes rows of records."""
        return self.rows_type(CONNECTION, self.rng, width=self.width)

    def owned_as(self, owner: int) -> OwnsAs:
        """Return what a worker believes to own."""
        return OwnsAs(owner)

    def forget_pipeline(self, machine: Machine, *, to_newest: bool = False) -> None:
        """Let a machine begin as a new owner with its next turn. to_newest: by the definition of
        now; else by the one that it knows."""
        gone = self._pipelines.pop(machine, None)
        if gone is not None and not to_newest:
            self._versions[machine] = gone.connection.version

    def records_of(self, taken: Taken) -> list[RawRecord]:
        """Return the records of a range, whatever has become of them in the source."""
        return self.source.between(taken.split, taken.begin, taken.end)

    def _records_in(self, split: str, begin: int, end: int) -> int:
        return len(self.source.between(split, begin, end))

    # the end

    def end(self) -> None:
        """Let the feed take all that there is, in peace, between rounds of housekeeping."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        self.take_rest(machine)
        super().end()

    def take_rest(self, machine: Machine) -> None:
        """Take all that the source has, as a new owner on a machine that meets no fault."""
        self.owner += 1
        pipeline = self._made_pipeline(machine, OwnsAs(self.owner), self.version, is_calm=True)
        take_in_peace(self, pipeline, machine, ("fed", "quarantine"))

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what the feed filled with what its source ever gave."""
        if table.id == self.fed.id:
            check_fed(self, machine, table)
        elif table.id != self.quarantine.id:
            super().check_rows(machine, table, auditor)
        check_exact(machine, table)


def take_in_peace(
    world: World, pipeline: Pipeline[Any], machine: Machine, tables: Sequence[str]
) -> None:
    """Let a pipeline take all that there is, while nothing fails. tables: that are compacted where
    it waits for that.

    Raises:
        Violation: it comes to no end.
    """
    quiet = 0
    for count in range(ROUNDS_MAX):
        if quiet == QUIET_ROUNDS:
            break
        try:
            turn = pipeline.turn(is_draining=count % 3 == 2)
        except TableBusyError:
            for name in tables:
                keep_house(world, machine, machine.catalog.find(name))
            continue
        except UnavailableError:  # the source
            world.clock.advance(60)
            continue
        except LakebedError as error:
            raise Violation(ENDS, f"a feed in peace: {error}") from error
        quiet += 1
        if turn.has_read or turn.committed is not None:
            quiet = 0
        else:
            world.clock.advance(120)
            pipeline.look_again()
