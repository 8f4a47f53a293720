"""What goes wrong in a world, beyond the faults of single requests: stalls, kills, wrong clocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum

from lakebed.backends.faulty import Fault, Faults
from lakebed.backends.faulty.faults import HARSH, MILD


class Mishap(StrEnum):
    """What happens to machines and stored bytes."""

    STALL_SECONDS = "a task stalls for a minute"
    STALL_HOURS = "a task stalls for hours"
    STALL_DAYS = "a task stalls longer than every delay"
    CLOCK_AHEAD = "a clock is up to an hour ahead"
    CLOCK_BEHIND = "a clock is up to an hour behind"
    CACHE_LOST = "a machine starts without its state"
    CACHE_KEPT = "a machine starts with an old state"
    SNAPSHOT_DAMAGED = "a snapshot is damaged"
    LATE_DROPPED = "a request never arrives"


STALLS: Mapping[Mishap, tuple[float, float]] = {
    Mishap.STALL_SECONDS: (1, 90),
    Mishap.STALL_HOURS: (3_000, 20_000),
    Mishap.STALL_DAYS: (49 * 3_600, 80 * 3_600),
}


class Weather(Faults):
    """The ill luck of one world. pause: lets other tasks go on for so many seconds at least."""

    def __init__(self, chance: random.Random, pause: Callable[[float], None]) -> None:
        super().__init__(chance, chance.choice((HARSH, MILD, MILD)))
        self.happened: Counter[str] = Counter()
        self.stall_chance = chance.choice((0.0, 0.01, 0.03))
        self.others_chance = chance.choice((0.15, 0.4))
        self._pause = pause

    def pass_door(self, another: Fault = Fault.ANOTHER_ELSEWHERE) -> None:
        """Let late requests arrive, others go on, or this task stall, before a request is sent."""
        if not self.rates:
            return
        arrives = self.rates.get(Fault.LATE_DELIVERED, 0.0)
        self.deliver_late(arrives)
        drawn = self.chance.random()
        if drawn < self.stall_chance:
            mishap = self.chance.choice(list(STALLS))
            self.happened[mishap] += 1
            self._pause(self.chance.uniform(*STALLS[mishap]))
        elif drawn < self.stall_chance + self.others_chance:
            self.fired[another] += 1
            self._pause(0.0)
        self.deliver_late(arrives)

    def clear_up(self) -> None:
        """From now on nothing goes wrong; what is under way arrives, or never does."""
        self.rates = {}
        if self.chance.random() < 0.5:
            self.settle()
        else:
            self.happened[Mishap.LATE_DROPPED] += self.late_count
            self._late.clear()
            self.settle()
