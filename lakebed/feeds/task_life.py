"""The life of a task that works on feeds: it ends when it is not needed for a while, is old, cannot
read the lake's definitions for want of a newer release, or is asked to stop.

What it has read and not committed is committed then, by the worker; another task goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lakebed.errors import LakebedError, NewerFormatError
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.tasks.task_loop import Ending


class FeedTaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a task ends.

    age_seconds: after so long, whatever it does: so that no task is older than a day's releases.
    idle_seconds: after it was not needed for so long.
    look_seconds: between two looks whether it is.
    """

    age_seconds: float = 12 * 3_600.0
    idle_seconds: float = 300.0
    look_seconds: float = 15.0


class FeedTaskLife:
    """Says when a task is to end, and why.

    is_needed: whether it is, by what the lake defines and which workers live. While that cannot be
        asked, the task goes on with what it has.
    """

    def __init__(
        self, *, clock: Clock, is_needed: Callable[[], bool], limits: FeedTaskLimits | None = None
    ) -> None:
        self._clock = clock
        self._is_needed = is_needed
        self._limits = limits or FeedTaskLimits()
        self._began = clock.monotonic()
        self._needed = self._looked = self._began
        self._is_outdated = False

    def ending(self, *, is_stopped: bool) -> Ending | None:
        """Return why the task is to end now; None: it goes on. is_stopped: it was asked to."""
        now = self._clock.monotonic()
        if is_stopped:
            return "stopped"
        if now - self._began >= self._limits.age_seconds:
            return "age"
        if now - self._looked >= self._limits.look_seconds:
            self._looked = now
            self._look(now)
        if now - self._needed < self._limits.idle_seconds:
            return None
        return "outdated" if self._is_outdated else "idle"

    def _look(self, now: float) -> None:
        try:
            is_needed, self._is_outdated = self._is_needed(), False
        except NewerFormatError:
            is_needed, self._is_outdated = False, True
        except LakebedError as error:
            events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))
            is_needed = True
        if is_needed:
            self._needed = now
