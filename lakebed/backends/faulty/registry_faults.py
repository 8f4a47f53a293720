"""Makes requests to leases and to the registry of feeds fail: small items, changed by compare and
set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TypeVar

from lakebed.backends.faulty.crash_plan import CrashPlan
from lakebed.backends.faulty.faults import Faults
from lakebed.errors import LakebedError, UnavailableError, UnknownOutcomeError

T = TypeVar("T")


class RegistryFault(StrEnum):
    """A kind of fault that is injected into requests for small items."""

    READ_THROTTLED = "item read throttled"
    WRITE_THROTTLED = "item write throttled, not sent"
    WRITE_LOST = "item write lost"
    WRITE_LATE = "item write lands later"
    WRITE_UNANSWERED = "item write landed, unanswered"
    STORE_RESTORED = "store restored to an earlier time"


_WRITE_FAULTS = (
    RegistryFault.WRITE_THROTTLED,
    RegistryFault.WRITE_LOST,
    RegistryFault.WRITE_LATE,
    RegistryFault.WRITE_UNANSWERED,
)
HARSH_REGISTRY: Mapping[RegistryFault, float] = dict.fromkeys(RegistryFault, 0.1) | {
    RegistryFault.STORE_RESTORED: 0.01,
}


class RegistryFaults:
    """The ill luck of one worker with small items.

    faults: of its world, whose requests under way these join.
    crashes: that worker's. rates: a probability per request; replaced at will.
    """

    def __init__(
        self,
        faults: Faults,
        crashes: CrashPlan | None = None,
        rates: Mapping[RegistryFault, float] = HARSH_REGISTRY,
    ) -> None:
        self._faults = faults
        self._crashes = crashes or CrashPlan()
        self.rates = rates
        self.fired: Counter[RegistryFault] = Counter()

    def happens(self, *which: RegistryFault) -> RegistryFault | None:
        """Return the fault of these that happens now, and count it; None: all is well."""
        drawn = self._faults.rng.random()
        for fault in which:
            drawn -= self.rates.get(fault, 0.0)
            if drawn < 0:
                self.fired[fault] += 1
                return fault
        return None

    def read(self, call: Callable[[], T]) -> T:
        """Return what a reading call returns, perhaps."""
        self._crashes.check_alive()
        self._faults.pass_door()
        if self.happens(RegistryFault.READ_THROTTLED):
            raise UnavailableError("read throttled")
        return call()

    def write(self, name: str, call: Callable[[], T]) -> T:
        """Return what a writing call returns, perhaps. name: of the effect."""
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect(name):
            fault = self.happens(*_WRITE_FAULTS)
            if fault is None:
                return call()
            if fault is RegistryFault.WRITE_THROTTLED:
                raise UnavailableError("write throttled")
            if fault is RegistryFault.WRITE_LATE:
                self._faults.later(lambda: _no_answer(call))
            if fault is RegistryFault.WRITE_UNANSWERED:
                with suppress(LakebedError):  # a refusal is not heard, either
                    call()
            raise UnknownOutcomeError("no answer")


def _no_answer(call: Callable[[], object]) -> None:
    """Do what a late request asks for; what it returns is not heard."""
    call()
