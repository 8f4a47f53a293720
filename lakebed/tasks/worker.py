"""A worker takes messages from a queue, one at a time, until the queue is empty or it is told to
stop.

A message is deleted when its job has ended, whatever the end; it is left when another try may help,
and comes back when its time out of sight is over. What keeps failing reaches the dead letters.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

import msgspec

from lakebed.errors import LakebedError, NewerFormatError
from lakebed.observe import events
from lakebed.ports.job_queue import JobQueue, Received, upgrade_wait_seconds

Outcome = Literal["done", "refused", "failed", "outdated"]
"""outdated: a newer release wrote what the job needs; its message waits until we are upgraded."""


class JobHandler(Protocol):
    """Runs the job that a message names. A LakebedError means: not now, perhaps later."""

    def __call__(self, message: Received) -> object:
        """Run it."""
        ...


class Visibility(msgspec.Struct, frozen=True, kw_only=True):
    """The visibility timeout of a message that is worked on, and the way it is extended."""

    hidden_seconds: float = 900.0
    keep_hidden: Callable[[Received], AbstractContextManager[object]] = lambda _: nullcontext()


class FailurePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy for messages whose jobs fail.

    refused: after these errors no try can help: the message is a dead letter at once.
    retry_seconds: when others come back; None: when their time out of sight is over.
    bugs: whether the worker goes on after one.
    """

    refused: tuple[type[LakebedError], ...] = ()
    retry_seconds: float | None = None
    bugs: bool = False


class Worker:
    """Works on one queue. job_ended: is called after each job that ended."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        handle: JobHandler,
        visibility: Visibility | None = None,
        failures: FailurePolicy | None = None,
        job_ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._job_ended = job_ended
        self._visibility = visibility or Visibility()
        self._failures = failures or FailurePolicy()

    def run(self, *, jobs_max: int, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Work until the queue gives nothing, `jobs_max` messages were taken, or told to stop; also
        when a job needs a newer release.

        Stops between jobs, never inside one. Returns how many jobs ended.
        """
        done = 0
        for _ in range(jobs_max):
            if should_stop():
                break
            outcome = self.step()
            if outcome is None or outcome == "outdated":
                break
            done += outcome == "done"
        return done

    def step(self, *, wait_seconds: float = 0.0) -> Outcome | None:
        """Take one message and run it. None: there was none, after so long a wait at the most."""
        received = self._queue.receive(
            messages_max=1,
            hidden_seconds=self._visibility.hidden_seconds,
            wait_seconds=wait_seconds,
        )
        if not received:
            return None
        message = received[0]
        try:
            with self._visibility.keep_hidden(message):
                self._handle(message)
        except self._failures.refused as error:
            _log_failed(message, error)
            self._queue.give_up(message)
            return "refused"
        except NewerFormatError as error:
            _log_failed(message, error)
            self._queue.extend(
                message.receipt, hidden_seconds=upgrade_wait_seconds(message.receives)
            )
            return "outdated"
        except LakebedError as error:  # the message comes back, or ends among the dead letters
            _log_failed(message, error)
            return self._failed(message)
        except Exception as error:
            if not self._failures.bugs:
                raise
            events.emit(
                events.TASK_BUG,
                level=logging.ERROR,
                kind=type(error).__name__,
                receives=message.receives,
                where=traceback.format_exc(),
            )
            return self._failed(message)
        self._queue.delete(message.receipt)
        self._job_ended()
        return "done"

    def _failed(self, message: Received) -> Outcome:
        seconds = self._failures.retry_seconds
        if seconds is not None:
            self._queue.extend(message.receipt, hidden_seconds=seconds)
        return "failed"


def _log_failed(message: Received, error: LakebedError) -> None:
    events.emit(events.JOB_FAILED, code=error.code(), reason=error, receives=message.receives)
