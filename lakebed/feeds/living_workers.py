"""Watches which workers live, by one watcher's own monotonic clock, and no other.

Who watches for long takes a worker for dead that is silent for some seconds (`LivingWorkers`). Who
looks once and then forgets cannot know how long a worker was silent: it listens for a moment, and
knows of those that beat meanwhile that they live (`listen_to`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases, WorkerBeat, WorkerId

BEAT_SECONDS = 2.0
"""Seconds between two beats of a worker."""
LISTEN_SECONDS = 2 * BEAT_SECONDS
"""Seconds until a worker that lives is heard, as a rule."""
LISTEN_LOOK_SECONDS = 0.2

DEAD_SECONDS = 6.0
"""A worker beats every two seconds; one that does not for so long is taken for dead."""

LOOK_SECONDS_MAX = 3.0
"""Most seconds that one look adds to a worker's silence: while the watcher slept, or the store was
away, no worker could be heard."""

FORGET_SECONDS = 600.0


class _Heard(msgspec.Struct):
    counter: int
    silent_seconds: float
    has_beaten: bool


class LivingWorkers:
    """A watcher's record of the workers that live.

    A worker that is new to the watcher lives, until it was silent for long enough. A worker that
    was taken for dead and beats again lives.
    """

    def __init__(
        self, *, dead_seconds: float = DEAD_SECONDS, forget_seconds: float = FORGET_SECONDS
    ) -> None:
        self._dead_seconds = dead_seconds
        self._forget_seconds = forget_seconds
        self._heard: dict[WorkerId, _Heard] = {}
        self._looked: float | None = None

    def see(self, beats: Iterable[WorkerBeat], now: float) -> None:
        """Take in what the store says. now: of the watcher's monotonic clock."""
        passed = 0.0 if self._looked is None else min(now - self._looked, LOOK_SECONDS_MAX)
        self._looked = now
        known = self._heard
        self._heard = {}
        for beat in beats:
            before = known.get(beat.worker)
            silent, has_beaten = 0.0, before is not None
            if before is not None and before.counter == beat.counter:
                silent = before.silent_seconds + max(passed, 0.0)
                has_beaten = before.has_beaten
            self._heard[beat.worker] = _Heard(beat.counter, silent, has_beaten)

    def living(self) -> list[WorkerId]:
        """Return the workers that live, by name."""
        return sorted(w for w, h in self._heard.items() if h.silent_seconds < self._dead_seconds)

    def undecided(self) -> list[WorkerId]:
        """Return the workers of which it is not known yet, by name: they have not beaten since they
        were first seen, and were not silent for long enough."""
        return [worker for worker in self.living() if not self._heard[worker].has_beaten]

    def forgotten(self) -> list[WorkerId]:
        """Return the workers that were silent for so long that they may be taken from the list."""
        return sorted(w for w, h in self._heard.items() if h.silent_seconds >= self._forget_seconds)


def listen_to(
    leases: Leases, clock: Clock, seconds: float
) -> tuple[list[WorkerBeat], set[WorkerId]]:
    """Return the newest beats, by name, and who beat while we listened: until all have, at the most
    for some seconds. A beat says that its worker lived then, and no clock but ours says when that
    was.

    Raises:
        UnavailableError: ask again.
    """
    first = {beat.worker: beat.counter for beat in leases.workers()}
    beats, lives = leases.workers() if first else [], set[WorkerId]()
    end = clock.monotonic() + seconds
    while True:
        lives |= {beat.worker for beat in beats if first.get(beat.worker) != beat.counter}
        if all(beat.worker in lives for beat in beats) or clock.monotonic() >= end:
            return beats, lives
        clock.sleep(LISTEN_LOOK_SECONDS)
        beats = leases.workers()
