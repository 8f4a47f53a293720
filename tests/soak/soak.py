"""A soak: five tables, steady senders, readers that know the answer, a kill each minute, and a look
at everything each quarter of an hour."""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

import lakebed
from lakebed.errors import TableBusyError
from lakebed.lake import Lake
from tests.e2e.worker_processes import WorkerProcess, is_expected_event
from tests.soak.lines import Line, folder_files, folder_mib, handles, memory_mib, table
from tests.soak.tables import Known, job_of, make_tables, problems, rows_of, table_of
from tests.soak.worker import due_at

MODULE = "tests.soak.worker"
STEADY = ("send-a", "keep-a", "read-a")
"""Processes that are never killed: their memory and handles are measured."""
KILLED = ("send-b", "keep-b", "read-b")
SENDERS = ("send-a", "send-b")
FOLDERS = {"log": "logs", "state": "cache", "queues": "queues"}


class Pace(msgspec.Struct, frozen=True):
    """How fast a soak is. rate: jobs a second of each sender."""

    rate: float = 4.0
    kill_seconds: float = 60.0
    look_seconds: float = 900.0


class Soak:
    """A lake in a directory, and its processes. rng: decides who is killed."""

    def __init__(self, folder: Path, rng: random.Random, pace: Pace) -> None:
        self._path, self._acks = folder / "lake", folder / "acks"
        self._acks.mkdir()
        self._rng, self._pace = rng, pace
        self._began = time.time()
        self._processes: dict[str, WorkerProcess] = {}
        self._past: list[WorkerProcess] = []
        self._known = Known()
        self.lines: dict[str, Line] = {}
        self.counts: Counter[str] = Counter()
        with lakebed.connect(self._path) as lake:
            make_tables(lake)

    def run(self, seconds: float, on_progress: Callable[[str], None]) -> None:
        """Work so long. Raises: AssertionError: rows lost or doubled, damage, a process that met
        what it should not, or a size that rises."""
        try:
            self._start((*STEADY, *KILLED))
            self._work(seconds, on_progress)
        finally:
            for name in list(self._processes):
                self._kill(name)
        self._tell()
        risen = [line.name for line in self.lines.values() if line.rises()]
        assert not risen, f"rises: {risen}\n{table(list(self.lines.values()))}"

    def _work(self, seconds: float, on_progress: Callable[[str], None]) -> None:
        ends = time.monotonic() + seconds
        next_kill = time.monotonic() + self._pace.kill_seconds
        next_look = time.monotonic() + self._pace.look_seconds
        while time.monotonic() < ends:
            time.sleep(0.5)
            assert not self.complaints(), self.complaints()
            if time.monotonic() >= next_kill:
                next_kill += self._pace.kill_seconds
                name = self._rng.choice(KILLED)
                self._kill(name)
                self._start((name,))
                self.counts["kills"] += 1
            if time.monotonic() >= next_look:
                next_look += self._pace.look_seconds
                self._measure()
                self._look()
                on_progress(table(list(self.lines.values())))
        self._look()

    def _start(self, names: tuple[str, ...]) -> None:
        for name in names:
            role = name.partition("-")[0]
            arguments = [str(self._path), repr(self._began), str(self._pace.rate)]
            if role != "keep":
                arguments.append(str(self._acks))
            if role == "send":
                arguments.append(name)
            self._processes[name] = WorkerProcess(role, arguments, module=MODULE)
        for name in names:
            self._processes[name].wait_ready()

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        self._past.append(process)

    def _acknowledged(self, sender: str) -> list[str]:
        file = self._acks / sender
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [line.strip() for line in lines if line.endswith("\n")]

    def complaints(self) -> list[str]:
        """Return what no process should meet: errors, warnings, an end of its own."""
        said = [
            line
            for process in (*self._past, *self._processes.values())
            for line in [*process.said("error"), *process.noise]
            if not is_expected_event(line)
        ]
        ended = [name for name, one in self._processes.items() if one.process.poll() is not None]
        return said + [f"{name} ended by itself" for name in ended]

    def _measure(self) -> None:
        """Take the sizes of the processes that are never killed, and of what the lake keeps."""
        for name in STEADY:
            process = self._processes[name].process.pid
            self._add(f"{name} memory", "MiB", memory_mib(process))
            self._add(f"{name} handles", "handles", handles(process))
        for name, folder in FOLDERS.items():
            self._add(f"{name} size", "MiB", folder_mib(self._path / folder))
        self._add("objects", "files", folder_files(self._path / "objects"))

    def _add(self, name: str, unit: str, value: float) -> None:
        self.lines.setdefault(name, Line(name, unit)).values.append(value)

    def _look(self) -> None:
        """Let senders rest, send again what was under way, and compare all rows by key."""
        killed = [name for name in SENDERS if name in self._processes]
        for name in killed:
            self._kill(name)
        jobs: list[str] = []
        for sender in SENDERS:
            done = self._acknowledged(sender)
            jobs += [*done, job_of(sender, len(done))]
        with lakebed.connect(self._path) as lake:
            for sender in SENDERS:
                self._send_again(lake, job_of(sender, len(self._acknowledged(sender))))
            self._known.add(jobs)
            due = {job: self._due(job) for job in self._known.aged}
            wrong = problems(lake, self._known, due=due, now=time.time(), exact=True)
            assert not wrong, wrong
            damage = [f for f in lake.fsck().findings if f.severity == "damage"]
            assert not damage, damage
        self.counts["looks"] += 1
        self._start(tuple(killed))

    def _send_again(self, lake: Lake, job: str) -> None:
        opened = lake.table(table_of(job))
        rows = rows_of(job, self._due(job))
        try:
            opened.ingest(rows, job=job)
        except TableBusyError:
            lake.run()
            opened.ingest(rows, job=job)

    def _due(self, job: str) -> float:
        return due_at(job, self._began, self._pace.rate)

    def _tell(self) -> None:
        for process in self._past:
            self.counts["processes"] += 1
            self.counts["jobs"] += len(process.said("ack"))
            self.counts["reads"] += len(process.said("read"))
            self.counts["compactions"] += sum(map(int, process.said("merged")))
