"""An operator starts tasks now, without waiting for what is queued or for the schedule."""

from __future__ import annotations

import random

import msgspec

from lakebed.errors import InvalidError
from lakebed.observe import events
from lakebed.ports.task_runner import TaskRunner


class TasksStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of starting tasks by hand.

    running: tasks of the kind that ran before.
    jobs_done: by processes of this machine, which have ended; None: tasks run on a platform, and
        end by themselves.
    failed: processes of this machine that failed.
    """

    kind: str
    started: int
    running: int = 0
    jobs_done: int | None = None
    failed: int = 0


class StartByHand:
    """Starts tasks of one kind, at most as many at one time as the instance's settings allow.

    tasks_max: at one time; setting: that says so.
    """

    def __init__(
        self, kind: str, *, runner: TaskRunner, tasks_max: int, setting: str, rng: random.Random
    ) -> None:
        self._kind = kind
        self._runner = runner
        self._tasks_max = tasks_max
        self._setting = setting
        self._rng = rng

    def run(self, count: int, *, spot: bool = False) -> TasksStarted:
        """Start so many. spot: on capacity that may be taken back.

        Raises:
            InvalidError: more would run than are allowed; none was started.
            DeniedError, UnavailableError, UnknownOutcomeError: as `TaskRunner.start`; some may run.
        """
        running = self._runner.running()
        if running + count > self._tasks_max:
            hint = f"start fewer, or deploy with `-c {self._setting}=N`"
            raise InvalidError(
                "more tasks would run than the instance's settings allow",
                running=running,
                asked=count,
                allowed=self._tasks_max,
                hint=hint,
            )
        token = f"{self._rng.getrandbits(64):016x}"
        for number in range(count):
            self._runner.start(f"by-hand/{token}/{number}", spot=spot)
        events.emit(
            events.TASKS_STARTED,
            kind=self._kind,
            tasks_count=count,
            running_count=running,
            waiting_count=0,
        )
        return TasksStarted(kind=self._kind, started=count, running=running)
