"""A world: one seed, one time, true stores, machines that meet them through faulty doors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lakebed.backends.faulty import Crash, CrashPlan
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.backends.memory import (
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryTableRegistry,
    VirtualClock,
)
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    TableMissingError,
)
from lakebed.model.names import MICROS_PER_SECOND, CommitId, JobId, TableId
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.ports.object_store import ObjectFacts
from lakebed.statestore.log_clock import LEAP_MAX
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.state import TableState
from tests.simulation.actors import ACTORS, THEMES, THEMES_OF_TWINS, WHILE_OTHERS_STALL, Actor
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_rows, check_world, end_in_peace
from tests.simulation.faults.damaged_cache import make_states_large
from tests.simulation.faults.lies import IDLE_CHANCE, IDLE_CHANCES, LYING_EVERY, Lies
from tests.simulation.faults.rolled_back import check_rolled_back
from tests.simulation.faults.weather import HARSHER, Mishap, Weather
from tests.simulation.machine import Machine, Parts, Shared, sorted_files
from tests.simulation.new_state import state_in
from tests.simulation.observed import ObservedLogs, ObservedObjects
from tests.simulation.queued import Sent
from tests.simulation.rows import (
    AGE_SECONDS,
    AGING,
    AGING_SCHEMA,
    SCHEMAS,
    Request,
    Row,
    RowMaker,
    processing_of,
)
from tests.simulation.scheduler import ScheduledClock, Scheduler
from tests.simulation.stored_rows import StoredRows
from tests.simulation.truth import Asked, Truth
from tests.simulation.violation import Violation

MACHINES = (2, 3, 3, 4)
TASKS, TASKS_LONG, LONG_EVERY = 40, 120, 10
OFFSETS_SECONDS = (0, 0, 0, 300, -300, 580, -3_600, -1_800, 3_600)
PARQUET_EVERY = 50


class World:
    """All that one seed decides."""

    may_use_parquet = True
    ends_at_rest = False
    """Whether housekeeping ends once nothing is left that must go."""
    tasks, tasks_long = TASKS, TASKS_LONG
    while_others_stall: Sequence[Actor] = WHILE_OTHERS_STALL

    def __init__(
        self,
        seed: int,
        scratch: Path,
        parts: Parts | None = None,
        *,
        theme: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.parquet = self.may_use_parquet and seed % PARQUET_EVERY == PARQUET_EVERY - 1
        self.clock = VirtualClock()
        self.scheduler = Scheduler(self.clock, self.rng)
        self.weather = Weather(self.rng, pause=self.scheduler.pause, advance=self.clock.advance)
        lying = theme in IDLE_CHANCES or (not theme and seed % LYING_EVERY == LYING_EVERY - 1)
        self.ages = lying and (theme is not None or seed % 2 == 0)
        self.schema, self.processing = self.some_rows(theme)
        self.row_maker = RowMaker(self.schema, self.rng, self.clock.now)
        self.auditors: dict[TableId, Auditor] = {}
        self.truth = Truth(self.auditors)
        self.sent: list[Sent] = []
        self._requests: dict[Any, Request] = _Requests(self.truth)
        idle_chance = IDLE_CHANCES.get(theme or "", IDLE_CHANCE)
        self.lies = Lies(self.rng, self.weather, idle_chance=idle_chance)
        self.shared = self._made_of(parts or Parts(), scratch, own_time=lying)
        self.actors: Sequence[Actor] = list(ACTORS)
        self.theme = theme or self.rng.choice(list(THEMES))
        self.pending_seconds = self.rng.choice((3_600, 7_200, 48 * 3_600))
        self.garbage_seconds: tuple[int, ...] = (0, 3_600, 3 * 86_400) if lying else (0, 0, 3_600)
        if theme is not None:
            self._hurt_twins(theme)
        make_states_large(large=self.rng.random() < 0.3)
        self.weights = self._drawn_weights()
        self._latest = self.actors[0]
        self.machines: list[Machine] = []
        with self.weather.none():
            self.main = self.calm_machine().catalog.create(
                "main",
                self.schema,
                split_points=self.some_points(),
                settings=self.some_settings() | dict(settings or {}),
                processing=self.processing,
            )
        self.machines += [self.new_machine() for _ in range(self.rng.choice(MACHINES))]
        self.lies.liar = self.machines[0].clock if lying else None

    def some_rows(self, theme: str | None) -> tuple[Schema, Processing | None]:
        """Return which rows the tables have, and what they do with them."""
        if self.ages:
            return AGING_SCHEMA, AGING
        schema = self.rng.choice(SCHEMAS)
        return schema, processing_of(self.seed, schema) if theme in (None, "values") else None

    def _made_of(self, parts: Parts, scratch: Path, *, own_time: bool) -> Shared:
        return Shared(
            logs=ObservedLogs(self.clock, self.auditor_of, parts.log),
            objects=ObservedObjects(self.clock, self.auditor_of, self.weather.spoils),
            queues=MemoryJobQueues(self.clock),
            tracker=MemoryJobTracker(),
            registry=MemoryTableRegistry(),
            weather=self.weather,
            scratch=scratch,
            parts=parts,
            parquet=self.parquet,
            own_time=own_time,
            doubtful=[],
        )

    def _hurt_twins(self, theme: str) -> None:
        """Let what hurts the twin that the world is made for come often."""
        self.weather.stall_chance, self.pending_seconds = 0.04, 3_600
        self.weather.spoil_chance = 0.4
        self.weather.cache_chance = 0.2 * (theme == "caches")
        if theme == "leaps":
            self.garbage_seconds = (3 * 86_400,)
        if theme in {"idle", "claims"}:  # entries get no answers, messages come twice
            self.weather.rates = HARSHER

    def _drawn_weights(self) -> list[int]:
        weights = [
            w * self.rng.choice((0, 1, 1, 2)) + 40 * (actor in THEMES_OF_TWINS[self.theme])
            for actor, w in ACTORS.items()
        ]
        return [max(20, weights[0]), *weights[1:]]

    def auditor_of(self, table: TableId) -> Auditor:
        """Return a table's auditor."""
        if table not in self.auditors:
            made = Auditor(table, self.clock, self._requests, self._facts)
            files = sorted_files(self.shared, self.shared.objects)
            made.stored = StoredRows(table, files, self.schema)
            self.auditors[table] = made
        return self.auditors[table]

    def _facts(self, path: str) -> ObjectFacts | None:
        return self.shared.objects.facts(path)

    def some_points(self) -> list[object]:
        """Return values at which a new table is split, or none."""
        some: set[Any] = {self.row_maker.key() for _ in range(self.rng.choice((0, 0, 1, 3)))}
        if len(self.schema.row_keys) > 1 and self.rng.random() < 0.5:
            some = {(key, self.rng.choice("abc")) for key in some}
        return sorted(some)

    def some_settings(self) -> dict[str, object]:
        """Return settings with small numbers, so that little data does a lot."""
        choice = self.rng.choice
        return {
            "compaction_strategy": choice(("basic", "size_ratio")),
            "job_files_max": choice((2, 3, 4)),
            "size_ratio": choice((1, 2)),
            "leaf_rows_max": choice((8, 20, 60)),
            "leaf_files_max": choice((4, 100, 100, 100)),
            "shared_file_rows_max": choice((0, 2, 10)),
            "garbage_seconds_min": choice(self.garbage_seconds),
            "pending_seconds_max": self.pending_seconds,
            "job_id_seconds_min": choice((5 * 86_400, 30 * 86_400)),
            "redispatch_seconds": choice((0, 900)),
        }

    # machines

    def calm_machine(self, *, informed: bool = False, crashes: CrashPlan | None = None) -> Machine:
        """Return a machine whose clock is right and that is never killed, unless told.

        informed: it begins with the newest states; else it reads snapshots and logs.
        """
        states = {
            table: state_in(auditor.state.connection.serialize())
            for table, auditor in self.auditors.items()
            if informed
        }
        return self._machine(0, crashes or CrashPlan(), states)

    def killed_machine(self, *, effect: int, moment: Moment = "before") -> Machine:
        """Return a machine whose clock is right and that is killed at its n-th effect."""
        return self._machine(0, CrashPlan(effect, moment), {})

    def new_machine(
        self, states: dict[TableId, TableState] | None = None, clock: ScheduledClock | None = None
    ) -> Machine:
        """Return a machine with some clock, that is killed at some effect, or never. clock: that of
        the process whose place it takes."""
        offset = self.rng.choice(OFFSETS_SECONDS)
        if self.shared.own_time:  # nobody tells a machine that it is more than ten minutes ahead
            offset = min(offset, 580)
        if offset:
            ahead = offset > 0
            self.weather.happened[Mishap.CLOCK_AHEAD if ahead else Mishap.CLOCK_BEHIND] += 1
        at = self.rng.randrange(1, 15) if self.rng.random() < 0.5 else None
        crashes = CrashPlan(at, self.rng.choice(("before", "after")))
        return self._machine(offset, crashes, states, clock)

    def _machine(
        self,
        offset: int,
        crashes: CrashPlan,
        states: dict[TableId, TableState] | None,
        clock: ScheduledClock | None = None,
    ) -> Machine:
        own = ScheduledClock(self.clock, offset * MICROS_PER_SECOND, self.scheduler)
        return Machine(
            self.shared,
            clock=clock or own,
            rng=random.Random(self.rng.getrandbits(64)),
            crashes=crashes,
            states=states,
        )

    def replace(self, machine: Machine) -> None:
        """Another process starts in the place of one that ended: with its caches, or without."""
        if self.rng.random() < 0.7:
            self.weather.happened[Mishap.CACHE_KEPT] += 1
            states = machine.states
        else:
            self.weather.happened[Mishap.CACHE_LOST] += 1
            machine.close()
            states = {}
        clock = machine.clock if machine.clock is self.lies.liar else None
        self.machines[self.machines.index(machine)] = self.new_machine(states, clock)

    # steps

    def run(self) -> None:
        """Let things happen; for longer in one seed of ten."""
        left = self.tasks if self.seed % LONG_EVERY else self.tasks_long
        while left:
            self.clock.advance(self.rng.choice((0.01, 1.0, 5.0)))
            if self.rng.random() < 0.01:
                self.clock.advance(self.rng.choice((1_000, 10_000, 200_000)))
            if self.shared.own_time and (seconds := self.lies.idle_seconds()):
                self.clock.advance(seconds)
            idle = [m for m in self.machines if not m.is_busy]
            if idle and (not self.scheduler.tasks or self.rng.random() < 0.2):
                left -= 1
                self._begin(self.rng.choice(idle))
            else:
                self.scheduler.step()

    def _begin(self, machine: Machine) -> None:
        if self.rng.random() < 0.03:
            self.replace(machine)
            return
        if machine.states and self.rng.random() < self.weather.cache_chance:
            machine.damage_cache()
        drawn = self.rng.random()
        if self.weather.stalled and drawn < 0.4:
            self._latest = self.rng.choice(self.while_others_stall)
        elif drawn < 0.7:  # else two do the same at once
            (self._latest,) = self.rng.choices(self.actors, self.weights)
        actor = self._latest
        self.lies.maybe(machine.clock)
        machine.is_busy = True
        self.scheduler.start(actor.__name__, partial(self._act, actor, machine))

    def _act(self, actor: Actor, machine: Machine) -> None:
        try:
            actor(self, machine)
        except Crash as crash:
            moment, name = str(crash).split(" effect ")
            self.weather.happened[f"killed {moment} {name.partition(', ')[2]}"] += 1
            self.replace(machine)
        except TableMissingError:
            pass
        except (CorruptError, InvalidError, NewerFormatError) as error:
            raise Violation("no work is refused for ever", f"{actor.__name__}: {error}") from error
        except LakebedError as error:
            self.weather.happened[f"told {error.code()}"] += 1
        machine.is_busy = False

    def end(self) -> None:
        """Let the weather clear up and all work come to its end."""
        end_in_peace(self)

    def check(self) -> None:
        """Look at everything with fresh eyes."""
        check_world(self)
        check_rolled_back(self)

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Look at the rows of a table as a fresh reader."""
        check_rows(self, machine, table, auditor)

    def counts(self) -> Counter[str]:
        """Return how often each thing happened."""
        both = self.weather.fired + self.weather.happened
        return Counter({str(kind): count for kind, count in both.items()})

    def close(self) -> None:
        """Forget the world."""
        make_states_large(large=False)
        self.scheduler.stop()
        for machine in self.machines:
            machine.close()
        for auditor in self.auditors.values():
            auditor.close()

    # for actors

    def ask(self, table: TableId, id_: str | None = None, *, rows_max: int = 14) -> Asked:
        """Return a new request. id_: of the user's choice; None: a fresh one."""
        name = CommitId(id_ or f"job-{len(self.truth.asked)}")
        asked = Asked(self.row_maker.request(name, rows_max=rows_max), table, JobId(name))
        self.truth.asked[asked.request.digest] = asked
        return asked

    def some_table(self, machine: Machine) -> OpenTable:
        """Return a table, mostly the main one."""
        name = "main" if self.rng.random() < 0.85 else "other"
        return machine.catalog.find(name)

    def is_remembered(self, asked: Asked) -> bool:
        """Whether the id of a request is still known, by true time: sent again, it is done once."""
        landing = self.truth.landing(asked)
        if landing is None:
            return True
        kept = self.auditors[asked.table].state.settings().job_id_seconds_min * MICROS_PER_SECOND
        return landing.at + kept > self.clock.now() + LEAP_MAX

    def is_due_to(self, machine: Machine, row: Row) -> bool:
        """Whether a reader must be given a row, that is in the table: it is young by true time. A
        clock that lies shows what it likes, but to nobody else."""
        if not self.ages:
            return True
        if machine.clock is self.lies.liar:
            return False
        born = row[self.schema.fields.index(self.schema.field("born"))]
        age_max = AGE_SECONDS * MICROS_PER_SECOND - LEAP_MAX
        return bool(born > self.clock.now() - age_max)

    @contextmanager
    def expected_errors(self, *kinds: type[LakebedError]) -> Iterator[None]:
        """What users may be told as well."""
        try:
            yield
        except kinds as error:
            self.weather.happened[f"told {error.code()}"] += 1


class _Requests(dict[Any, Request]):
    """The requests of a world by digest, whoever made them."""

    def __init__(self, truth: Truth) -> None:
        super().__init__()
        self._truth = truth

    def __missing__(self, digest: Any) -> Request:  # noqa: ANN401 - a digest
        return self._truth.asked[digest].request
