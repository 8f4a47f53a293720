"""The life of a task that works on feeds: it ends when it is not needed for a while, is old, cannot
read the lake's definitions for want of a newer release, or is asked to stop.

What it has read and not committed is committed then, by the worker; another task goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lakebed.errors import LakebedError, NewerFormatError
from lakebed.feeds.pacing.elasticity import SPARE_SECONDS
from lakebed.feeds.pacing.wanted_tasks import Need
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.tasks.task_loop import Ending


class FeedTaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits after which a task ends.

    age_seconds: after so long, whatever it does: so that no task is older than a day's releases.
    idle_seconds: after it was not needed for so long.
    spare_seconds: after others could do what there was to do for so long.
    look_seconds: between two looks whether it is.
    """

    age_seconds: float = 12 * 3_600.0
    idle_seconds: float = 300.0
    spare_seconds: float = SPARE_SECONDS
    look_seconds: float = 15.0


class FeedTaskLife:
    """Says when a task is to end, and why.

    need: whether there is any, by what the lake defines and what workers say that live. While that
        cannot be asked, the task goes on with what it has.
    """

    def __init__(
        self, *, clock: Clock, need: Callable[[], Need], limits: FeedTaskLimits | None = None
    ) -> None:
        self._clock = clock
        self._ask = need
        self._limits = limits or FeedTaskLimits()
        self._began = clock.monotonic()
        self._needed = self._looked = self._began
        self._need: Need = "needed"
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
        is_spare = self._need == "spare"
        patience = self._limits.spare_seconds if is_spare else self._limits.idle_seconds
        if now - self._needed < patience:
            return None
        return "outdated" if self._is_outdated else "idle"

    def _look(self, now: float) -> None:
        try:
            self._need, self._is_outdated = self._ask(), False
        except NewerFormatError:
            self._need, self._is_outdated = "unneeded", True
        except LakebedError as error:
            events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))
            self._need = "needed"
        if self._need == "needed":
            self._needed = now
