"""Days of a lake: every ten minutes each leaf of each table gets a file, and merges it away.

The services are those that are deployed, over tuples in memory, on one virtual clock, through doors
that lose, delay and double requests. Machines are killed and replaced. Work is done by turns, not
at once: what happens between two effects of different processes is for the other worlds, which are
short. Here it is told whether all comes to its end for days, and whether anything grows.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lakebed.backends.faulty import Crash, CrashPlan
from lakebed.backends.faulty.faults import MILD, Fault
from lakebed.backends.memory import (
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryObjectStore,
    MemoryTableRegistry,
    VirtualClock,
)
from lakebed.errors import CorruptError, InvalidError, LakebedError, NewerFormatError
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, TransactionNumber
from lakebed.model.paths import commits_prefix, file_path, files_prefix, snapshots_prefix
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import ReplaceFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.statestore.write_snapshot import WriteSnapshot
from tests.simulation.auditor import Auditor
from tests.simulation.faults.weather import Weather
from tests.simulation.machine import Machine, Parts, Shared
from tests.simulation.observed import ObservedLogs, ObservedObjects
from tests.simulation.rows import TupleRequest, rows_of
from tests.simulation.scheduler import ScheduledClock, Scheduler
from tests.simulation.soak.steady_tables import PROCESSING, SCHEMA, SteadyRows
from tests.simulation.violation import ENDS, LEAKS, ROWS, Violation
from tests.soak.lines import Line, handles, memory_mib

TICK_SECONDS = 600.0
TICKS_A_DAY = 144
HOUSE_EVERY, LOOK_EVERY = 6, 36
"""In ticks: sweeps, snapshots and splits, and looks at everything."""
MACHINES = 2
EFFECTS_OF_A_LIFE = (200, 3_000)
"""A machine is killed at one of its effects out of so many."""
JOBS_AT_ONCE = 100
TURNS_MAX = 1_000
IDLE_TURNS = 3
"""After so many turns without a job nothing waits that may be had now."""
TRIES_MAX = 50
DELETES = (Fault.DELETE_THROTTLED, Fault.DELETE_LATE, Fault.DELETE_UNANSWERED)
RATES = {fault: rate / (500 if fault in DELETES else 10) for fault, rate in MILD.items()}
"""Of one request. Doors take each path of a delete for one; a store takes a thousand together."""
REPORTS_DAYS = 1
SETTINGS: dict[str, object] = {
    "compaction_strategy": "basic",
    "job_files_max": 2,
    "size_ratio": 1,
    "leaf_files_max": 100,
    "shared_file_rows_max": 0,
    "garbage_seconds_min": 3_600,
    "pending_seconds_max": 7_200,
    "job_id_seconds_min": 3 * 3_600,
}


class CountedEntries(Auditor):
    """Counts what lands, and keeps none of it."""

    def __init__(self, table: TableId, clock: VirtualClock) -> None:
        super().__init__(table, clock, {}, lambda _: None)
        self.compactions = 0

    def landed(self, number: TransactionNumber, body: bytes) -> None:
        """Count the jobs that end with an entry."""
        for transaction in decode_entry(body, number).transactions:
            self.compactions += sum(isinstance(c, ReplaceFiles) for c in transaction.changes)


class ForgetfulWeather(Weather):
    """Remembers no path for ever."""

    def note_put(self, path: str, checksum: int) -> None:
        """Listings may not show it at first."""
        self.recent_puts.append(path)


class PlainObjects(ObservedObjects):
    """Remembers no path for ever, and tells no auditor."""

    delete = MemoryObjectStore.delete
    _put = MemoryObjectStore._put


class LongDays:
    """A lake over days. leaves: of each table, which is how many compactions it has in ten
    minutes. parts: what machines are made of."""

    def __init__(
        self, seed: int, scratch: Path, *, leaves: int, parts: Parts | None = None
    ) -> None:
        parts = parts or Parts()
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.scheduler = Scheduler(self.clock, self.rng)
        self.weather = ForgetfulWeather(
            self.rng, pause=self.scheduler.pause, advance=self.clock.advance
        )
        self.weather.rates, self.weather.stall_chance = RATES, 0.0
        self.weather.spoil_chance = 0.0
        self.auditors: dict[TableId, CountedEntries] = {}
        self.counts: Counter[str] = Counter()
        self.lines: dict[str, Line] = {}
        self.shared = Shared(
            logs=ObservedLogs(self.clock, self._auditor_of, parts.log),
            objects=PlainObjects(self.clock, self._auditor_of, lambda _: False),
            queues=MemoryJobQueues(self.clock),
            tracker=MemoryJobTracker(),
            registry=MemoryTableRegistry(),
            weather=self.weather,
            scratch=scratch,
            parts=parts,
            parquet=False,
            own_time=False,
            doubtful=[],
        )
        self.rows = {
            name: SteadyRows(name, leaves=leaves, rng=self.rng, now=self.clock.now)
            for name in PROCESSING
        }
        self._machines: list[Machine] = []
        with self.weather.none():
            maker = self._machine(CrashPlan())
            for name, rows in self.rows.items():
                maker.catalog.create(
                    name,
                    SCHEMA,
                    split_points=rows.points(),
                    settings=SETTINGS,
                    processing=PROCESSING[name],
                )
        self._machines = [maker, *(self._mortal() for _ in range(MACHINES - 1))]

    @property
    def compactions(self) -> int:
        """How many have ended so far."""
        return sum(auditor.compactions for auditor in self.auditors.values())

    def _auditor_of(self, table: TableId) -> CountedEntries:
        return self.auditors.setdefault(table, CountedEntries(table, self.clock))

    def _machine(self, crashes: CrashPlan) -> Machine:
        clock = ScheduledClock(self.clock, 0, self.scheduler)
        rng = random.Random(self.rng.getrandbits(64))
        return Machine(self.shared, clock=clock, rng=rng, crashes=crashes)

    def _mortal(self) -> Machine:
        at = self.rng.randrange(*EFFECTS_OF_A_LIFE)
        return self._machine(CrashPlan(at, self.rng.choice(("before", "after"))))

    def close(self) -> None:
        """Forget the lake."""
        for machine in self._machines:
            machine.close()
        for auditor in self.auditors.values():
            auditor.close()

    # time

    def run(self, days: float, say: Callable[[str], None] = lambda _: None) -> None:
        """Let so much time pass, and look at everything four times a day. say: is told how it goes.

        Raises:
            Violation: rows are lost, doubled or late, work does not end, or something grew.
        """
        for tick in range(1, round(days * TICKS_A_DAY) + 1):
            begun = self.clock.monotonic()
            self._tick(keep_house=tick % HOUSE_EVERY == 0)
            self.clock.advance(max(0.0, begun + TICK_SECONDS - self.clock.monotonic()))
            if tick % LOOK_EVERY == 0:
                self._look()
                say(f"day {tick / TICKS_A_DAY:5.2f}: {self.compactions:>9,} compactions")
        grown = [line.name for line in self.lines.values() if line.rises()]
        if grown:
            raise Violation(LEAKS, f"grew for {days} days: {', '.join(grown)}")

    def _tick(self, *, keep_house: bool) -> None:
        for name in self.rows:
            self._send(name)
        for name in self.rows:
            self._by_one(lambda m, name=name: m.create_jobs.run(m.catalog.find(name)))
        self._work()
        for name in self.rows:
            self._by_one(lambda m, name=name: m.collect.run(m.catalog.find(name)))
        if keep_house:
            self._by_one(lambda m: m.give_up_dead_jobs.run())
            for name in self.rows:
                self._by_one(lambda m, name=name: m.split.run(m.catalog.find(name)))
                self._by_one(lambda m, name=name: m.sweep.run(m.catalog.find(name)))
                self._by_one(lambda m, name=name: self._snapshot(m, name))

    def _snapshot(self, machine: Machine, name: str) -> None:
        write = WriteSnapshot(snapshots=machine.snapshots, logs=machine.logs)
        self.counts["snapshots"] += write.run(machine.catalog.find(name))

    def _send(self, name: str) -> None:
        """Send a request until it is acknowledged."""
        request = self.rows[name].request()
        source, job = TupleRequest(SCHEMA, request), JobId(request.id)
        for _ in range(TRIES_MAX):
            if self._by_one(lambda m: m.ingest.run(m.catalog.find(name), source, job)):
                self.rows[name].landed(request)
                self.counts["requests"] += 1
                return
            self.clock.advance(1.0)
        raise Violation(ENDS, f"{request.id} is sent again and again")

    def _work(self) -> None:
        """Let machines by turns run the jobs that wait, and commit what they queue."""
        idle = 0
        for _ in range(TURNS_MAX):
            before = self.compactions
            self._by_one(lambda m: m.worker.run(jobs_max=JOBS_AT_ONCE))
            self._by_one(lambda m: m.committer.run(batches_max=1_000))
            idle = 0 if self.compactions > before else idle + 1
            if idle == IDLE_TURNS:
                return
        raise Violation(ENDS, "jobs run and run, and none is the last")

    def _by_one(self, work: Callable[[Machine], object]) -> bool:
        """Let one machine do some work. Returns whether it got through. Who is killed meanwhile is
        replaced by another, which begins with its caches or without."""
        place = self.rng.randrange(MACHINES)
        machine = self._machines[place]
        try:
            work(machine)
        except Crash:
            self.counts["kills"] += 1
            successor = self._mortal()
            if self.rng.random() < 0.5:
                successor.states = machine.states
            else:
                machine.close()
            self._machines[place] = successor
        except (CorruptError, InvalidError, NewerFormatError) as error:
            raise Violation("no work is refused for ever", str(error)) from error
        except LakebedError as error:
            self.counts[f"told {error.code()}"] += 1
        else:
            return True
        return False

    def rest(self) -> None:
        """Let nothing fail any more, until all work has come to its end.

        Raises:
            Violation: a job is left, or an object that no table needs.
        """
        self.weather.clear_up()
        for old in self._machines:
            old.close()
        machine = self._machine(CrashPlan())
        self._machines = [machine] * MACHINES
        for _ in range(3):
            self.clock.advance(2 * 3_600)
            for name in self.rows:
                machine.create_jobs.run(machine.catalog.find(name))
            self._work()
            for name in self.rows:
                table = machine.catalog.find(name)
                machine.collect.run(table)
                machine.sweep.run(table)
        self._look()
        for name in self.rows:
            self._check_left(machine.catalog.find(name))

    def _check_left(self, table: OpenTable) -> None:
        with table.head.reading() as state:
            jobs = len(state.jobs())
            known = {file_path(table.id, r.file.name) for r in state.all_references()}
            known |= {file_path(table.id, garbage.file) for garbage in state.garbage()}
        left = set(self.shared.objects.list(files_prefix(table.id))) - known
        left |= set(self.shared.objects.list(commits_prefix(table.id)))
        if jobs or left:
            raise Violation(
                ENDS, f"of table {table.name} {jobs} jobs and {len(left)} files are left"
            )

    # looks

    def _look(self) -> None:
        """Hold all rows against what was given, as a process without a cache sees them, and write
        down how large everything is."""
        self.counts["looks"] += 1
        self.shared.tracker.forget(before=self._ago(REPORTS_DAYS * 86_400))
        with self.weather.none():
            reader = self._machine(CrashPlan())
            for name, rows in self.rows.items():
                self._compare(reader, name, rows)
                self._measure(reader, name)
            reader.close()
        self._note("memory", "MiB", memory_mib(os.getpid()))
        self._note("handles", "handles", handles(os.getpid()))
        queues = [self.shared.queues.open(name) for name in (COMPACTION_QUEUE, COMMIT_QUEUE)]
        self._note("messages", "messages", sum(sum(queue.depth()) for queue in queues))

    def _compare(self, reader: Machine, name: str, rows: SteadyRows) -> None:
        table = reader.catalog.find(name)
        plan = reader.query.plan(table, lambda _: None)
        assert plan.processing is not None, "each table has some"
        seen = Counter(r for batch in reader.query.read(table, plan) for r in rows_of(batch))
        wanted = rows.wanted(plan.processing.at)
        if seen != wanted:
            lost, more = dict(wanted - seen), dict(seen - wanted)
            raise Violation(ROWS, f"table {name} lacks {lost}, has {more} too much")

    def _measure(self, reader: Machine, name: str) -> None:
        table = reader.catalog.find(name)
        entries = self.shared.logs.open(table.id).read_scattered(TransactionNumber(0))
        self._note(f"log of {name}", "entries", sum(1 for _ in entries))
        with table.head.reading() as state:
            ((pages,),) = state.connection.execute("PRAGMA page_count")
        self._note(f"state of {name}", "pages", pages)
        prefixes = (files_prefix(table.id), snapshots_prefix(table.id), commits_prefix(table.id))
        objects = sum(1 for prefix in prefixes for _ in self.shared.objects.list(prefix))
        self._note(f"objects of {name}", "files", objects)

    def _note(self, name: str, unit: str, size: float) -> None:
        self.lines.setdefault(name, Line(name, unit, [])).values.append(size)

    def _ago(self, seconds: float) -> Micros:
        return Micros(round(self.clock.now() - seconds * MICROS_PER_SECOND))
