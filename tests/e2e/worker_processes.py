"""Several processes at work on one lake, that a test may kill one by one."""

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.observe import events
from tests.e2e.fast_clock import FastClock
from tests.e2e.rows import SCHEMA, SETTINGS, SPLIT_POINTS

PROJECT = Path(__file__).parents[2]
READY_SECONDS_MAX = 60.0
UNEXPECTED = r"\bcode=(corrupt|invalid|bug)|Error\b"
"""What an event says of work that no waiting mends."""


def is_expected_event(line: str) -> bool:
    """Whether a line of a log tells of work that failed for now: a full disk, a busy store."""
    return line.partition(" ")[0] in events.MEANINGS and not re.search(UNEXPECTED, line)


class WorkerProcess:
    """A process, and what it has said so far. module: its program. environment: variables that it
    has beside ours."""

    def __init__(
        self,
        role: str,
        arguments: list[str],
        *,
        module: str = "tests.e2e.worker",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.role = role
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", module, role, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **(environment or {})},
        )
        self._ready = threading.Event()
        self.noise: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._listeners = [
            threading.Thread(target=self._listen, args=(self.process.stdout, self.lines)),
            threading.Thread(target=self._listen, args=(self.process.stderr, self.noise)),
        ]
        for listener in self._listeners:
            listener.start()

    def _listen(self, stream: IO[str], lines: list[str]) -> None:
        with stream:
            for line in stream:
                if line.endswith("\n"):
                    lines.append(line.strip())
                if line == "ready\n":
                    self._ready.set()
        self._ready.set()

    def wait_ready(self) -> None:
        assert self._ready.wait(READY_SECONDS_MAX), f"{self.role} does not start"
        assert self.lines[:1] == ["ready"], self.noise

    def kill(self) -> None:
        """SIGKILL; returns when all that it said was heard."""
        self.process.kill()
        self.process.wait()
        for listener in self._listeners:
            listener.join()

    def said(self, word: str) -> list[str]:
        words = (line.partition(" ") for line in list(self.lines))
        return [rest for first, _, rest in words if first == word]


class WorkerProcesses:
    """A lake in a directory with workers. rng: decides who is killed and when. settings: of its
    table, where they differ from the usual."""

    def __init__(self, directory: Path, rng: random.Random, **settings: int) -> None:
        self.path = directory / "lake"
        self.acks = directory / "acks"
        self.acks.mkdir()
        self.backup = directory / "backup"
        self.rng = rng
        self._started = repr(time.time())
        self.clock = FastClock(float(self._started))
        self.processes: dict[str, WorkerProcess] = {}
        self.past: list[WorkerProcess] = []
        with self.open() as lake:
            lake.create_table("t", SCHEMA, split_points=SPLIT_POINTS, settings=SETTINGS | settings)

    def open(self) -> Lake:
        """Open the lake in this process."""
        return Lake(open_local(self.path, clock=self.clock))

    def start(self, name: str) -> None:
        """Start a process: ingest-*, keep-*, read-* or backup-*. One that ingests goes on where the
        last one of its name was acknowledged."""
        role = name.partition("-")[0]
        arguments = [str(self.path), self._started]
        if role == "ingest":
            first = str(len([job for job in self.acknowledged() if job.startswith(name + "-")]))
            arguments += [str(self.acks), name, first]
        elif role == "read":
            arguments.append(str(self.acks))
        elif role == "backup":
            arguments.append(str(self.backup))
        self.processes[name] = WorkerProcess(role, arguments)

    def wait_ready(self) -> None:
        for process in self.processes.values():
            process.wait_ready()

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        self.past.append(process)

    def kill_all(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def acknowledged(self) -> list[str]:
        """Return the jobs that any process has said to be done."""
        return [job for process in self.all_processes() for job in process.said("ack")]

    def all_processes(self) -> list[WorkerProcess]:
        return [*self.past, *self.processes.values()]

    def complaints(self) -> list[str]:
        """Return what nobody should have met."""
        return [
            line
            for process in self.all_processes()
            for line in [*process.said("error"), *process.noise]
            if not is_expected_event(line)
        ]
