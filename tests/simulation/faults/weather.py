"""What goes wrong in a world, beyond the faults of single requests: stalls, kills, wrong clocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum

from lakebed.backends.faulty import Fault, Faults
from lakebed.backends.faulty.faults import HARSH, MILD
from lakebed.model.names import TransactionNumber
from lakebed.model.paths import snapshot_of
from lakebed.statestore.log_entries.codec import decode_entry


class Mishap(StrEnum):
    """What happens to machines and stored bytes."""

    STALL_SECONDS = "a task stalls for a minute"
    STALL_HOURS = "a task stalls for hours"
    STALL_DAYS = "a task stalls longer than every delay"
    CLOCK_AHEAD = "a clock is up to an hour ahead"
    CLOCK_BEHIND = "a clock is up to an hour behind"
    CLOCK_MONTHS_AHEAD = "a clock leaps months ahead"
    CLOCK_MONTHS_BEHIND = "a clock leaps months back"
    IDLE_MONTHS = "nobody does anything for months"
    CACHE_LOST = "a machine starts without its state"
    CACHE_KEPT = "a machine starts with an old state"
    CACHE_BYTE_CHANGED = "a byte of a cached state changes"
    CACHE_PAGE_ZEROED = "a page of a cached state is zeroed"
    CACHE_CUT = "a cached state is cut"
    CACHE_ROW_LOST = "a row of a cached state is lost"
    CACHE_ROW_CHANGED = "a row of a cached state changes"
    CACHE_SET_ASIDE = "a damaged cache is set aside"
    SNAPSHOT_DAMAGED = "a snapshot is damaged"
    SNAPSHOT_SPOILED = "a snapshot is damaged as it is put"
    LOG_ROLLED_BACK = "a log is restored to an earlier time"
    LOG_WENT_ON = "a log goes on from an earlier time"
    LATE_DROPPED = "a request never arrives"


STALLS: Mapping[Mishap, tuple[float, float]] = {
    Mishap.STALL_SECONDS: (1, 90),
    Mishap.STALL_HOURS: (3_000, 20_000),
    Mishap.STALL_DAYS: (49 * 3_600, 80 * 3_600),
}


HARSHER: Mapping[Fault, float] = HARSH | {
    # A service reads the log a dozen times: at a tenth each it would rarely come to its effects.
    Fault.LOG_READ_THROTTLED: 0.02,
    Fault.LOG_READ_CUT: 0.02,
}


class Weather(Faults):
    """The ill luck of one world.

    pause: lets other tasks go on for so many seconds at least. advance: lets time pass for all.
    stalls_before: changes before whose append a task stalls, with a chance of their own.
    stalled: how many tasks hang just now.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        pause: Callable[[float], None],
        advance: Callable[[float], None],
    ) -> None:
        super().__init__(rng, rng.choice((HARSHER, MILD, MILD)))
        self.happened: Counter[str] = Counter()
        self.stall_chance = rng.choice((0.0, 0.01, 0.04))
        self.spoil_chance = rng.choice((0.0, 0.0, 0.1, 0.4))
        self.cache_chance = rng.choice((0.0, 0.0, 0.03))
        self.others_chance = rng.choice((0.15, 0.4))
        self.stalls_before: tuple[type, ...] = ()
        self.stalls_before_chance = 0.0
        self.stalled = 0
        self._was_put = False
        self._pause = pause
        self._advance = advance

    def pass_door(self, another: Fault = Fault.ANOTHER_ELSEWHERE) -> None:
        """Let late requests arrive, others go on, or this task stall, before a request is sent."""
        if not self.rates:
            return
        arrives = self.rates.get(Fault.LATE_DELIVERED, 0.0)
        self.deliver_late(arrives)
        drawn = self.rng.random()
        # A stall is worst between a put and its commit: that is what the floor is for.
        worst = self._was_put or another is Fault.ANOTHER_BEFORE_APPEND
        stalls = self.stall_chance * (5 if worst else 1)
        self._was_put = False
        if drawn < stalls:
            self._stall()
        elif drawn < stalls + self.others_chance:
            self.fired[another] += 1
            self._pause(0.0)
        self.deliver_late(arrives)

    def spoils(self, path: str) -> bool:
        """Whether what is put at a path is damaged on its way, a snapshot before it is proven."""
        spoiled = bool(self.rates) and snapshot_of(path) is not None
        spoiled = spoiled and self.rng.random() < self.spoil_chance
        self.happened[Mishap.SNAPSHOT_SPOILED] += spoiled
        return spoiled

    def note_put(self, path: str, checksum: int) -> None:
        """Remember that an object was put, or that somebody tried."""
        super().note_put(path, checksum)
        self._was_put = True

    def before_append(self, number: TransactionNumber, body: bytes) -> None:
        """Let a task stall between its look at the state and what it commits of that."""
        if not self.stalls_before:
            return
        transactions = decode_entry(body, number).transactions
        changes = (change for one in transactions for change in one.changes)
        is_one = any(isinstance(change, self.stalls_before) for change in changes)
        if is_one and self.rng.random() < self.stalls_before_chance:
            self._stall()

    def _stall(self) -> None:
        mishap = self.rng.choice(list(STALLS))
        self.happened[mishap] += 1
        seconds = self.rng.uniform(*STALLS[mishap])
        self.stalled += 1
        try:
            if self.rng.random() < 0.3:
                self._pause(seconds)
            else:  # others commit, then it is late, then they have some time to act on that
                self._pause(self.rng.choice((0, 10, 60)))
                self._advance(seconds)
                self._pause(self.rng.choice((0, 10, 60, 200)))
        finally:
            self.stalled -= 1

    def clear_up(self) -> None:
        """From now on nothing goes wrong; what is under way arrives, or never does."""
        self.rates, self.stalls_before = {}, ()
        if self.rng.random() < 0.5:
            self.settle()
        else:
            self.happened[Mishap.LATE_DROPPED] += self.late_count
            self._late.clear()
            self.settle()
