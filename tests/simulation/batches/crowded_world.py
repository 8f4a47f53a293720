"""A world in which nothing fails, and many do the same at once: submitters, batchers and tasks meet
between any two steps of each other, and tasks hang for longer than their messages are hidden."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lakebed.backends.faulty import Fault
from lakebed.errors import LakebedError
from tests.simulation.batches import batch_actors as ours
from tests.simulation.batches.batched_world import FILES, BatchedWorld
from tests.simulation.machine import Machine

ROUNDS, FILES_PUT = 3, 3
NOTHING_FAILS = {Fault.LATE_DELIVERED: 0.0}
"""Not empty: others come between at doors."""
LATER_SECONDS = (0.0, 0.0, 1_000.0, 2_000.0)
"""When somebody begins: while a task hangs, its message may come to another."""
CROWD: tuple[tuple[ours.BatchActor, int], ...] = (
    (ours.make_batches, 2),
    (ours.make_batches, 2),
    (ours.submit_again, 5),
    (ours.submit_again, 5),
    (ours.take_in, 2),
    (ours.take_in, 2),
    (ours.deny_or_allow, 2),
    (ours.overwrite, 1),
)
"""Who is there, and how often each does it."""


class CrowdedWorld(BatchedWorld):
    """All that a seed decides is who comes between whom, and who hangs."""

    def __init__(self, seed: int, scratch: Path) -> None:
        super().__init__(seed, scratch)
        self.weather.rates = NOTHING_FAILS
        self.weather.stall_chance = self.rng.choice((0.0, 0.02, 0.05))
        self.weather.others_chance = 0.6
        self.item_faults = 0.0

    def some_settings(self) -> dict[str, object]:
        """Return settings by which files are batched at once."""
        return super().some_settings() | {
            "batch_seconds_max": 0,
            "batch_files_max": 3,
            "redispatch_seconds": 60,
        }

    def run(self) -> None:
        """Put files and submit them, then let a crowd do all that may be done."""
        crowd = [self.calm_machine() for _ in CROWD]
        self.machines += crowd
        for _ in range(ROUNDS):
            names = self.rng.sample(FILES, FILES_PUT)
            for name in names:
                self.landing.write(name)
            ours.submit_named(self, crowd[0], names)
            for (actor, times), machine in zip(CROWD, crowd, strict=True):
                self.scheduler.start(actor.__name__, partial(self._done, actor, times, machine))
            self.scheduler.finish()
            self.clock.advance(100)  # jobs are sent again that were not done

    def _done(self, actor: ours.BatchActor, times: int, machine: Machine) -> None:
        self.scheduler.pause(self.rng.choice(LATER_SECONDS))
        for _ in range(times):
            with self.expected_errors(LakebedError):
                actor(self, machine)
