"""One round: a lake on a small disk, processes that use it, and what is done to them."""

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from lakebed.bootstrap.local import open_local
from lakebed.errors import LakebedError, TableBusyError, UnavailableError, VersionExpiredError
from lakebed.lake import Lake
from tests.adversary.damage import damage_one
from tests.adversary.disk import SmallDisk
from tests.adversary.lying_clocks import ahead, libfaketime
from tests.adversary.tables import (
    landed,
    make_tables,
    problems,
    rows_of,
    table_of,
    writer_of,
)
from tests.e2e.fast_clock import PACE, FastClock
from tests.e2e.worker_processes import WorkerProcess, is_expected_event

ROLES = ("write-a", "write-b", "keep-a", "keep-b", "read-a", "alter-a", "backup-a")
MODULE = "tests.adversary.worker"
HOUR, DAY = 3_600.0, 86_400.0
LIES = (-200 * DAY, -DAY, -HOUR, HOUR, DAY, 200 * DAY)
"""Seconds by which a clock is ahead."""

DELAYS = ("garbage_seconds_min", "pending_seconds_max")
"""Settings that are nothing in some rounds: then files go and workers are fenced at once."""

STEP_SECONDS = (0.2, 1.2)
STOP_SECONDS = (0.5, 6.0)
FULL_SECONDS = (0.5, 2.0)
READ_TRIES_MAX = 20


class World:
    """A lake and its processes. rng: decides everything that is not the machine's own timing."""

    def __init__(self, disk: SmallDisk, outside: Path, rng: random.Random) -> None:
        self.disk, self.outside, self.rng = disk, outside, rng
        self.lake_path, self.backup_path = disk.folder / "lake", outside / "backup"
        self.acks = outside / "acks"
        self.acks.mkdir()
        self.counts: Counter[str] = Counter()
        self.story: list[str] = []
        """What was done, and when."""
        self._began = time.monotonic()
        self._started = repr(time.time())
        self.clock = FastClock(float(self._started))
        self.processes: dict[str, WorkerProcess] = {}
        self.past: list[WorkerProcess] = []
        self._stopped: dict[str, float] = {}
        with self.open() as lake:
            make_tables(lake, {name: rng.choice([0, 7_200]) for name in DELAYS})

    def open(self, path: Path | None = None) -> Lake:
        """Open the lake, or a copy of it, in this process."""
        return Lake(open_local(path or self.lake_path, clock=self.clock))

    # processes

    def start(self, name: str, *, ahead_seconds: float = 0.0) -> None:
        """Start a process. One that writes goes on behind its last acknowledged job. A clock that
        is ahead is the machine's where libfaketime is installed, else only that of the lake."""
        role = name.partition("-")[0]
        environment: Mapping[str, str] = {}
        if ahead_seconds and (library := libfaketime()):
            environment = ahead(library, ahead_seconds / PACE)
            ahead_seconds = 0.0
            self.counts["clock lies by libfaketime"] += 1
        arguments = [str(self.lake_path), self._started, str(ahead_seconds)]
        if role == "write":
            done = sum(job.rpartition("-")[0] == name for job in self.acknowledged())
            arguments += [str(self.acks), name, str(done)]
        elif role == "read":
            arguments.append(str(self.acks))
        elif role == "alter":
            arguments.append(str(self.rng.getrandbits(32)))
        elif role == "backup":
            arguments.append(str(self.backup_path))
        self.processes[name] = WorkerProcess(
            role, arguments, module=MODULE, environment=environment
        )

    def start_all(self) -> None:
        for name in ROLES:
            if name not in self.processes:
                self.start(name)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        self._stopped.pop(name, None)
        process.kill()
        self.past.append(process)

    def kill_all(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def acknowledged(self) -> list[str]:
        """Return the jobs that were said to be done."""
        return [
            words.split()[0] for process in self.all_processes() for words in process.said("ack")
        ]

    def all_processes(self) -> list[WorkerProcess]:
        return [*self.past, *self.processes.values()]

    def complaints(self) -> list[str]:
        """Return what no process should meet: errors, warnings, an end of its own."""
        said = [
            line
            for process in self.all_processes()
            for line in [*process.said("error"), *process.noise]
            if not is_expected_event(line)
        ]
        ended = [name for name, m in self.processes.items() if m.process.poll() is not None]
        return said + [f"{name} ended by itself" for name in ended]

    # what is done to them

    def step(self) -> None:
        """Do one random thing, and wait a little."""
        actions = self._actions()
        name = self.rng.choices(list(actions), [weight for weight, _ in actions.values()])[0]
        self.counts[name] += 1
        self.story.append(f"{time.monotonic() - self._began:7.2f} {name}")
        actions[name][1]()
        time.sleep(self.rng.uniform(*STEP_SECONDS))
        self._let_go()

    def _actions(self) -> Mapping[str, tuple[int, Callable[[], None]]]:
        return {
            "kill": (30, self._kill_one),
            "stop": (20, self._stop_one),
            "power cut": (5, self._cut_power),
            "cache removed": (4, self._remove_caches),
            "disk full": (8 if self.disk.fillable else 0, self._fill_disk),
            "clock lies": (8, self._lie),
            "copy damaged": (8, self._damage_copy),
            "check": (5, self._check_live),
        }

    def _kill_one(self) -> None:
        name = self.rng.choice(sorted(self.processes))
        self.kill(name)
        self.start(name)

    def _stop_one(self) -> None:
        name = self.rng.choice(sorted(self.processes))
        if name not in self._stopped:
            self.processes[name].process.send_signal(signal.SIGSTOP)
            self._stopped[name] = time.monotonic() + self.rng.uniform(*STOP_SECONDS)

    def _let_go(self) -> None:
        for name, until in list(self._stopped.items()):
            if time.monotonic() >= until:
                self.processes[name].process.send_signal(signal.SIGCONT)
                del self._stopped[name]

    def _cut_power(self) -> None:
        self.kill_all()
        self.check()
        self.start_all()

    def _remove_caches(self) -> None:
        self.kill_all()
        shutil.rmtree(self.lake_path / "cache", ignore_errors=True)  # twice in a row
        self.start_all()

    def _fill_disk(self) -> None:
        self.disk.fill()
        time.sleep(self.rng.uniform(*FULL_SECONDS))
        self.disk.free()

    def _lie(self) -> None:
        """Let one process go on with a wrong clock; one that lied before is honest again."""
        name = self.rng.choice(["write-a", "keep-a", "read-a"])
        ahead = self.rng.choice(LIES)
        self.story.append(f"        {name} is {ahead / HOUR:+.0f} hours wrong")
        self.kill(name)
        self.start(name, ahead_seconds=ahead)

    def _damage_copy(self) -> None:
        """Damage a copy of the backup: each answer of it is right, or an error of ours."""
        backup = self.processes.get("backup-a")
        if backup is None or not backup.said("backed-up"):
            return
        self.kill("backup-a")
        known = self._in_backup()
        copy = self.outside / "damaged"
        shutil.copytree(self.backup_path, copy)
        self.story.append(f"        {damage_one(copy, self.rng)}")
        self.counts["damage"] += 1
        try:
            with self.open(copy) as lake:
                wrong = problems(lake, known)
                assert not wrong, wrong
        except LakebedError as error:
            self.counts[f"damage told: {error.code()}"] += 1
        else:
            self.counts["damage harmless or mended"] += 1
        shutil.rmtree(copy)
        self.start("backup-a")

    def _in_backup(self) -> set[str]:
        """Return the jobs that the whole backup holds."""
        with self.open(self.backup_path) as lake:
            return landed(lake)

    def _check_live(self) -> None:
        acknowledged = self.acknowledged()
        try:
            with self.open() as lake:
                self._hold(lake, acknowledged)
        except UnavailableError:  # one that is stopped holds what this one needs: later, then
            self.counts["check: unavailable"] += 1

    # checks

    def check(self) -> None:
        """The lake is whole, and holds every acknowledged job once."""
        with self.open() as lake:
            damage = [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]
            assert not damage, damage
            self._hold(lake, self.acknowledged())
        assert not self.complaints(), self.complaints()

    def _hold(self, lake: Lake, acknowledged: Collection[str]) -> None:
        for _ in range(READ_TRIES_MAX):
            try:
                wrong = problems(lake, acknowledged)
            except VersionExpiredError:
                continue
            assert not wrong, wrong
            return
        raise AssertionError("every version expires while it is read")

    def _send_again(self, lake: Lake, job: str) -> None:
        """Ingest what may be under way still. Compaction may lie behind: it is done, as users are
        told to."""
        table = lake.table(table_of(job))
        try:
            table.ingest(rows_of(job), job=job)
        except TableBusyError:
            self.counts["again: table-busy"] += 1
            lake.set_online(table_of(job), online=True)
            lake.run()
            table.ingest(rows_of(job), job=job)

    def settle(self) -> None:
        """End all processes, send again what was under way, do all work, and look once more."""
        self.kill_all()
        self.check()
        jobs = set(self.acknowledged())
        for writer in ("write-a", "write-b"):
            jobs.add(f"{writer}-{sum(writer_of(job) == writer for job in jobs)}")
        with self.open() as lake:
            for job in sorted(jobs):
                self._send_again(lake, job)
            lake.set_online("tally", online=True)
            lake.run()
            self._hold(lake, jobs)
            report = lake.fsck(deep=True)
            assert not [f for f in report.findings if f.severity == "damage"], report.findings
        for folder in ("unfinished", "spill"):
            assert not list((self.lake_path / folder).iterdir()), f"{folder} is not empty"
