"""Tasks of ECS, each a process of this machine with what its image would hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from localcloud.programs import checked_requests, shifted_time, task_process
from localcloud.runner.workers import PRIVATE_FOLDER
from localcloud.services.amazon import Amazon
from localcloud.services.cloud_clock import CloudClock
from localcloud.services.emulator import Emulator
from localcloud.templates.images import python_command
from localcloud.templates.running import TaskSpec

INHERITED = ("PATH", "LD_LIBRARY_PATH")
KILLED = 137
"""Exit code that Docker reports of a container that was killed."""


class Task:
    """A process. ends: when it is killed, if it was told to stop."""

    def __init__(
        self, arn: str, spec: TaskSpec, process: subprocess.Popen[bytes], log: Path
    ) -> None:
        self.arn = arn
        self.spec = spec
        self.process = process
        self.log = log
        self.ends: float | None = None


class RunningTasks:
    """Starts what was asked of ECS, and reports to ECS how it ended. said: gets what tasks
    print."""

    def __init__(
        self,
        specs: Mapping[str, TaskSpec],
        clusters: list[str],
        amazon: Amazon,
        emulator: Emulator,
        *,
        clock: CloudClock,
        said: Callable[[bytes], None],
    ) -> None:
        self._specs = specs
        self._clusters = clusters
        self._amazon = amazon
        self._emulator = emulator
        self._clock = clock
        self._said = said
        self._running: dict[str, Task] = {}
        self._numbers = count(1)

    @property
    def running(self) -> list[Task]:
        """Return those that run."""
        return list(self._running.values())

    def look(self) -> None:
        """Start tasks that were asked for, stop those that are to stop, report what ended."""
        if not self._specs:
            return
        wanted = self._wanted()
        for arn, described in wanted.items():
            if arn not in self._running:
                self._running[arn] = self._started(arn, described)
        for arn, task in list(self._running.items()):
            if arn not in wanted:
                self._stop(task)
            code = task.process.poll()
            if code is not None:
                self._ended(task, code)

    def close(self) -> None:
        """Kill what runs."""
        for task in self._running.values():
            task.process.kill()
            task.process.wait()
        self._running.clear()

    def _wanted(self) -> dict[str, dict[str, Any]]:
        ecs = self._amazon.client("ecs")
        found = {}
        for cluster in self._clusters:
            arns = ecs.list_tasks(cluster=cluster, desiredStatus="RUNNING")["taskArns"]
            if arns:
                for task in ecs.describe_tasks(cluster=cluster, tasks=arns)["tasks"]:
                    found[task["taskArn"]] = task
        return found

    def _started(self, arn: str, described: Mapping[str, Any]) -> Task:
        spec = self._specs[described["taskDefinitionArn"]]
        overrides: Mapping[str, Any] = {}
        for override in described.get("overrides", {}).get("containerOverrides", []):
            if override["name"] == spec.container:
                overrides = override
        other = tuple(overrides.get("command", ())) or spec.command
        command = python_command(spec.image, other) if other else spec.image.command
        added = {e["name"]: e["value"] for e in overrides.get("environment", [])}
        private = self._emulator.folder / "private" / f"{spec.family}-{next(self._numbers)}"
        private.mkdir(parents=True, exist_ok=True)
        log = self._emulator.folder / "logs" / f"{private.name}.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the user's own image
                [*_python(spec), str(self._clock.ahead_seconds), *command],
                cwd=spec.image.folder,
                env={
                    **{name: os.environ[name] for name in INHERITED if name in os.environ},
                    **self._amazon.environment(),
                    **self._amazon.session_of(spec.role).variables,
                    "HOME": str(private),
                    "TMPDIR": str(private),
                    **_here(spec, spec.image.environment | spec.environment | added, private),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Task(arn, spec, process, log)

    def _stop(self, task: Task) -> None:
        """Ask it to stop, and kill it when it does not: as Fargate does."""
        if task.ends is None:
            task.ends = self._clock.monotonic() + task.spec.stop_seconds
            task.process.send_signal(signal.SIGTERM)
        elif self._clock.monotonic() > task.ends:
            task.process.kill()

    def _ended(self, task: Task, code: int) -> None:
        del self._running[task.arn]
        self._said(task.log.read_bytes())
        exit_code = KILLED if code < 0 else code
        self._emulator.ask("task_ended", arn=task.arn, code=exit_code)


def _python(spec: TaskSpec) -> list[str]:
    alone = [] if spec.image.packages else ["-S"]
    programs = (shifted_time.__file__, checked_requests.__file__, task_process.__file__)
    return [sys.executable, "-I", *alone, *programs, str(spec.image.folder)]


def _here(spec: TaskSpec, variables: Mapping[str, str], private: Path) -> dict[str, str]:
    """Return variables with the folders that stand for those of the image."""
    folders = {spec.image.home: str(spec.image.folder), PRIVATE_FOLDER: str(private)}
    found = dict(variables)
    for name, value in variables.items():
        for inside, outside in folders.items():
            if value == inside or value.startswith(f"{inside.rstrip('/')}/"):
                found[name] = outside + value.removeprefix(inside)
    return found
