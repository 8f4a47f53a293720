"""A world that collects: what hangs between its look at the state and the horizon that it commits,
while others put tags and pins on just those versions that it is about to take files of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from lakebed.backends.faulty import CALM
from lakebed.errors import ClockAheadError, InvalidError, LogConflictError, VersionExpiredError
from tests.simulation.actors import collect, send
from tests.simulation.machine import Machine
from tests.simulation.test_crash_points import SETTINGS
from tests.simulation.versions.version_actors import (
    merge,
    read_pinned_late,
    tag,
    tag_what_goes,
    untag,
)
from tests.simulation.versions.versioned_world import VersionedWorld

ROUNDS, REQUESTS_MAX, OTHERS_MAX = 2, 4, 4
OTHERS = (tag_what_goes, tag_what_goes, tag, read_pinned_late, untag)


StalledActor = Callable[["StalledWorld", Machine], None]


class StalledWorld(VersionedWorld):
    """Nothing fails: all that a seed decides is who comes between whom, and what was merged."""

    def __init__(self, seed: int, scratch: Path, *, is_harsh: bool = True) -> None:
        super().__init__(seed, scratch, is_harsh=is_harsh)
        self.weather.rates = CALM

    def some_settings(self) -> dict[str, object]:
        """Return settings by which whatever is merged is due at once."""
        return dict(SETTINGS)

    def run(self) -> None:
        """Merge, then collect while others keep versions, by turns."""
        merging, collecting, *others = (self.calm_machine() for _ in range(OTHERS_MAX + 2))
        self.machines += [merging, collecting, *others]
        for _ in range(ROUNDS):
            self._make_garbage(merging)
            self._start(collect, collecting)
            for other in others[: self.rng.randrange(1, OTHERS_MAX + 1)]:
                self._start(self.rng.choice(OTHERS), other)
            self.scheduler.finish()

    def _make_garbage(self, machine: Machine) -> None:
        """Take rows and merge them, so that older versions need files which the newest has not."""
        for _ in range(self.rng.randrange(2, REQUESTS_MAX)):
            table = self.some_table(machine)
            for _ in range(self.rng.randrange(2, REQUESTS_MAX)):
                send(self, machine, table, self.ask(table.id, rows_max=5))
            merge(self, machine)
        self.clock.advance(4_000)

    def _start(self, actor: StalledActor, machine: Machine) -> None:
        self.scheduler.start(actor.__name__, partial(self._done, actor, machine))

    def _done(self, actor: StalledActor, machine: Machine) -> None:
        with self.expected_errors(
            ClockAheadError, InvalidError, LogConflictError, VersionExpiredError
        ):
            actor(self, machine)
