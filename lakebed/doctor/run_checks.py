"""Runs checks beside each other, each bounded in time: one that hangs or fails has not looked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from lakebed.doctor.check import Check, CheckOutcome, Cure, DoctorReport, Sign, State
from lakebed.doctor.patient import Patient
from lakebed.errors import LakebedError
from lakebed.ports.clock import Clock

CHECK_SECONDS_MAX = 15.0
"""Most seconds of one check. All begin at once, so all have ended then: below the twenty seconds
that are promised."""
SIGNS_MAX = 20
"""Most signs of one check that are reported; the rest are counted."""


class RunChecks:
    """Asks a patient all questions that are about it. Changes nothing.

    seconds_max: of each check.
    """

    def __init__(
        self, checks: Sequence[Check], *, clock: Clock, seconds_max: float = CHECK_SECONDS_MAX
    ) -> None:
        self._checks = checks
        self._clock = clock
        self._seconds_max = seconds_max
        self._looks: list[_Look] = []

    def run(self, patient: Patient) -> DoctorReport:
        """Return what each check answered. Takes `seconds_max` and a moment at the most."""
        began = self._clock.monotonic()
        asked = [c for c in self._checks if c.is_about(instance=patient.is_instance)]
        threads = ThreadPoolExecutor(max_workers=len(asked), thread_name_prefix="doctor")
        self._looks = [_Look(check) for check in asked]
        for look in self._looks:
            look.future = threads.submit(look.run, patient, self._clock)
        wait([look.future for look in self._looks], timeout=self._seconds_max)
        threads.shutdown(wait=False)
        outcomes = tuple(look.outcome(self._seconds_max) for look in self._looks)
        seconds = round(self._clock.monotonic() - began, 3)
        return DoctorReport(outcomes=outcomes, seconds=seconds)

    def cures(self) -> list[Cure]:
        """Return what may be done about what the last run found, each once, in order."""
        found = [sign.cure for look in self._looks for sign in list(look.signs) if sign.cure]
        return list({cure.does: cure for cure in found}.values())

    @property
    def has_hung(self) -> bool:
        """Return whether a check of the last run still has not ended: its thread is left to itself,
        and may hold what it looks at. The interpreter waits for it when it ends."""
        return any(not look.future.done() for look in self._looks)


@dataclass(slots=True)
class _Look:
    """One check that looks.

    signs: found so far.
    seconds: that it took.
    """

    check: Check
    future: Future[None] = field(default_factory=Future)
    signs: list[Sign] = field(default_factory=list)
    seconds: float = 0.0

    def run(self, patient: Patient, clock: Clock) -> None:
        """Look, and keep what is found."""
        began = clock.monotonic()
        try:
            for sign in self.check.look(patient):
                self.signs.append(sign)
        finally:
            self.seconds = round(clock.monotonic() - began, 3)

    def outcome(self, seconds_max: float) -> CheckOutcome:
        """Return what it has answered by now."""
        has_ended, signs = self.future.done(), list(self.signs)
        error = self.future.exception() if has_ended else None
        why = _why(error) if has_ended else f"too slow: no answer in {seconds_max:g} s"
        state: State = "found" if signs else "could not look" if why else "healthy"
        shown = [sign.about for sign in signs[:SIGNS_MAX]]
        if len(signs) > SIGNS_MAX:
            shown.append(f"and {len(signs) - SIGNS_MAX:,} more")
        return CheckOutcome(
            id=self.check.id,
            section=self.check.section,
            state=state,
            found_when=self.check.found_when,
            cure=self.check.cure,
            signs=tuple(shown),
            fixes=tuple(sign.cure.does for sign in signs if sign.cure),
            why=why,
            seconds=self.seconds if has_ended else seconds_max,
        )


def _why(error: BaseException | None) -> str:
    """Return why a check could not look; "": it could."""
    if error is None:
        return ""
    if not isinstance(error, LakebedError):
        return f"a bug in Lakebed: {type(error).__name__}: {error}"
    permission = error.facts.get("permission")
    return str(error) if permission is None else f"the credentials must permit {permission}"
