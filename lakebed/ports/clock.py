"""The door to time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from lakebed.model.names import Micros


class Uptime(NamedTuple):
    """The time for which a machine has been up.

    machine: which one, since it was started: processes that give the same name share a wall clock,
        and their uptimes can be compared.
    """

    machine: str
    micros: Micros


class Clock(Protocol):
    """Time as one machine sees it. It may be wrong: clocks decide when, never whether."""

    def now(self) -> Micros:
        """Return the wall clock."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an unknown start, never backwards."""
        ...

    def uptime(self) -> Uptime:
        """Return how long this machine has been up. No setting of the wall clock changes it."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...
