"""A clock that moves only when a caller sleeps or advances it."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Uptime

START = Micros(1_767_225_600 * MICROS_PER_SECOND)
"""2026-01-01T00:00Z."""


class VirtualClock:
    """True time of a simulated world. on_sleep: called after each sleep, to let other workers
    run."""

    def __init__(
        self, start: Micros = START, *, on_sleep: Callable[[float], None] | None = None
    ) -> None:
        self._start = start
        self._now = start
        self._machines = 0
        self.on_sleep = on_sleep

    def now(self) -> Micros:
        """Return the wall clock."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds since the world began."""
        return (self._now - self._start) / MICROS_PER_SECOND

    def uptime(self) -> Uptime:
        """Return the time since the world began."""
        return Uptime("world", Micros(self._now - self._start))

    def sleep(self, seconds: float) -> None:
        """Advance by so many seconds, then let other workers run."""
        self.advance(seconds)
        if self.on_sleep is not None:
            self.on_sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass. seconds: not negative; at least one microsecond passes."""
        assert seconds >= 0, f"time does not run backwards, got {seconds}"
        self._now = Micros(self._now + max(1, round(seconds * MICROS_PER_SECOND)))

    def machine(self, offset_micros: int) -> MachineClock:
        """Return the same time as a machine sees it whose wall clock is wrong by so much."""
        return MachineClock(self, offset_micros)

    def new_machine(self) -> str:
        """Return a name that no other machine of this world has."""
        self._machines += 1
        return f"machine-{self._machines}"


class MachineClock:
    """A machine's view of a world's time. offset_micros: how far its wall clock is ahead. machine:
    None: another one than all others."""

    def __init__(self, world: VirtualClock, offset_micros: int, machine: str | None = None) -> None:
        self._world = world
        self._machine = machine or world.new_machine()
        self.offset_micros = offset_micros

    def now(self) -> Micros:
        """Return the wall clock, wrong as it is."""
        return Micros(max(0, self._world.now() + self.offset_micros))

    def monotonic(self) -> float:
        """Return seconds since the world began: this clock is right."""
        return self._world.monotonic()

    def uptime(self) -> Uptime:
        """Return the time since the world began: this clock is right."""
        return Uptime(self._machine, self._world.uptime().micros)

    def sleep(self, seconds: float) -> None:
        """Advance the world's time."""
        self._world.sleep(seconds)
