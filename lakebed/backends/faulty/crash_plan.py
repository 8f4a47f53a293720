"""Kills a worker before or after its n-th effect, so that a test can try every one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Moment = Literal["before", "after"]


class Crash(BaseException):
    """The worker was killed. Nothing may catch it but the world that runs workers."""


class CrashPlan:
    """The effects of one worker, counted from 1, and the one at which it dies; None: it lives.

    Once dead it stays dead: what handlers and `finally` do on the way out of a killed process does
    not happen, so every door stays shut. To try all moments, count `effects` of a run that lives.
    """

    def __init__(self, at: int | None = None, moment: Moment = "before") -> None:
        assert at is None or at >= 1, f"effects are counted from 1, got {at}"
        self._at = at
        self._moment = moment
        self.effects: list[str] = []
        self.dead = False

    @contextmanager
    def effect(self, name: str) -> Iterator[None]:
        """Do something that other processes can see. name: such as `log append`."""
        self.check_alive()
        self.effects.append(name)
        number = len(self.effects)
        if number == self._at and self._moment == "before":
            self._die(name)
        try:
            yield
        finally:
            # Whatever the answer was, the worker does not live to hear it.
            if number == self._at and self._moment == "after":
                self._die(name)

    def check_alive(self) -> None:
        """Raise Crash again when the worker is dead."""
        if self.dead:
            raise Crash(f"dead since effect {self._at}")

    def _die(self, name: str) -> None:
        self.dead = True
        raise Crash(f"{self._moment} effect {self._at}, {name}")
