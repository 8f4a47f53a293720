"""Clocks that are wrong by months: of one machine in a world, again and again."""

from __future__ import annotations

import random
from typing import Any

from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.clock import Clock
from lakebed.ports.transaction_log import TransactionLog, TransactionLogs
from tests.simulation.faults.weather import Mishap, Weather
from tests.simulation.scheduler import ScheduledClock

DAY_SECONDS = 86_400
LYING_EVERY = 3
"""Of so many worlds in one: a clock leaps, and sometimes nobody does anything for months."""
IDLE_CHANCE = 0.004
IDLE_CHANCES = {"clocks": IDLE_CHANCE, "idle": 0.1, "leaps": 0.03}
"""That nobody does anything for months, before a step; by the themes of worlds for twins in which a
clock leaps."""
AHEAD_SECONDS_MAX = 590.0
"""A clock that stays wrong for ten minutes is believed: that is the limit of the rule."""


class Lies:
    """Who lies in a world, and when. No two lies are alike: then they would confirm each other."""

    def __init__(self, rng: random.Random, weather: Weather, *, idle_chance: float) -> None:
        self._idle_chance = idle_chance
        self._rng = rng
        self._weather = weather
        self._told = 0
        self.liar: ScheduledClock | None = None

    def maybe(self, clock: ScheduledClock) -> None:
        """Let a clock leap now and then, if it is the one that does."""
        if clock is not self.liar or clock.lies or not self._weather.rates:
            return
        if self._rng.random() > 0.3:
            return
        self._told += 1
        days = 30 + 3 * self._told + self._rng.random()
        micros = round(days * DAY_SECONDS * MICROS_PER_SECOND)
        if self._rng.random() < 0.6:
            self._weather.happened[Mishap.CLOCK_MONTHS_AHEAD] += 1
            clock.lie(micros, seconds=self._rng.uniform(1, AHEAD_SECONDS_MAX))
        else:
            self._weather.happened[Mishap.CLOCK_MONTHS_BEHIND] += 1
            clock.lie(-micros, seconds=self._rng.choice((60, 3_600, 200_000)))

    def idle_seconds(self) -> float:
        """Return for how long nobody does anything: mostly not at all."""
        if self._rng.random() > self._idle_chance:
            return 0
        self._weather.happened[Mishap.IDLE_MONTHS] += 1
        return self._rng.uniform(20, 200) * DAY_SECONDS


class OwnTimeLogs:
    """Logs on a machine whose store has no other time than the machine's own, as in a directory."""

    def __init__(self, logs: TransactionLogs, clock: Clock) -> None:
        self._logs = logs
        self._clock = clock

    def open(self, table: TableId) -> TransactionLog:
        """Return a table's log."""
        log: Any = OwnTimeLog(self._logs.open(table), self._clock)
        return log

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the logs have it
        return getattr(self._logs, name)


class OwnTimeLog:
    """A log whose store's time is that of a machine."""

    def __init__(self, log: TransactionLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the log has it
        return getattr(self._log, name)

    def store_time(self) -> Micros:
        """Return the machine's time."""
        return self._clock.now()
