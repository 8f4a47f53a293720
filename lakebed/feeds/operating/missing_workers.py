"""Counts how many workers are wanted, as one process hears it from the beats of all."""

from __future__ import annotations

from lakebed.errors import UnavailableError, UnknownOutcomeError
from lakebed.feeds.living_workers import BEAT_SECONDS, LivingWorkers
from lakebed.feeds.operating.worker_reports import reports_in
from lakebed.feeds.pacing.elasticity import Elasticity
from lakebed.feeds.pacing.worker_names import TAKE_PREFIX
from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases

SETTLE_SECONDS = 10.0
"""Seconds after a change until a started worker beats, or one that is to stop has left."""


class MissingWorkers:
    """Listens to the beats of a lake's workers."""

    def __init__(self, leases: Leases, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._living = LivingWorkers()
        self._elasticity = Elasticity()
        self._looked: float | None = None

    def missing(self) -> int:
        """Return how many workers are wanted beside those that live; below zero: so many fewer.
        Nothing changes between two beats, nor while the store is away."""
        now = self._clock.monotonic()
        if self._looked is not None and now - self._looked < BEAT_SECONDS:
            return 0
        self._looked = now
        try:
            beats = self._leases.workers()
        except (UnavailableError, UnknownOutcomeError):
            return 0
        self._living.see(beats, now)
        living = {one for one in self._living.living() if not one.startswith(TAKE_PREFIX)}
        reports = [one for beat in beats if beat.worker in living for one in reports_in(beat)]
        missing = self._elasticity.see(now, reports, len(living)) - len(living)
        if missing:
            self._looked = now + SETTLE_SECONDS
        return missing
