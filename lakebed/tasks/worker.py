"""A worker takes messages from a queue, one at a time, until the queue is empty or it is told to
stop.

A message is deleted when its job has ended, whatever the end; it is left when another try may help,
and comes back when its time out of sight is over. What keeps failing reaches the dead letters.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

import msgspec

from lakebed.errors import LakebedError
from lakebed.observe import events
from lakebed.ports.job_queue import JobQueue, Received

Outcome = Literal["done", "failed"]


class JobHandler(Protocol):
    """Runs the job that a message names. A LakebedError means: not now, perhaps later."""

    def __call__(self, body: bytes) -> None:
        """Run it."""
        ...


class Visibility(msgspec.Struct, frozen=True, kw_only=True):
    """How long a message stays hidden while it is worked on, and how it is kept so."""

    hidden_seconds: float = 900.0
    keep_hidden: Callable[[Received], AbstractContextManager[object]] = lambda _: nullcontext()


class Worker:
    """Works on one queue. job_ended: is called after each job that ended."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        handle: JobHandler,
        visibility: Visibility | None = None,
        job_ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._job_ended = job_ended
        self._visibility = visibility or Visibility()

    def run(self, *, jobs_max: int, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Work until the queue gives nothing, `jobs_max` messages were taken, or told to stop.

        Stops between jobs, never inside one. Returns how many jobs ended.
        """
        done = 0
        for _ in range(jobs_max):
            if should_stop():
                break
            outcome = self.step()
            if outcome is None:
                break
            done += outcome == "done"
        return done

    def step(self) -> Outcome | None:
        """Take one message and run it. None: there was none."""
        received = self._queue.receive(
            messages_max=1, hidden_seconds=self._visibility.hidden_seconds
        )
        if not received:
            return None
        message = received[0]
        try:
            with self._visibility.keep_hidden(message):
                self._handle(message.body)
        except LakebedError as error:  # the message comes back, or ends among the dead letters
            events.tell(
                events.JOB_FAILED, code=error.code(), reason=error, receives=message.receives
            )
            return "failed"
        self._queue.delete(message.receipt)
        self._job_ended()
        return "done"
