"""Defines a check: one question, what a bad answer means, and what cures it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

if TYPE_CHECKING:
    from lakebed.doctor.patient import Patient

Section = Literal["this machine", "who am I", "what was deployed", "how it goes"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Of = Literal["any lake", "a directory", "an instance"]
State = Literal["healthy", "found", "could not look"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """An idempotent cure of one thing, which `--fix` may apply. It changes no rows.

    does: in words.
    act: does it. Raises LakebedError where it cannot be done.
    """

    does: str
    act: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One thing that is not as it should be.

    about: which one, with its figures.
    cure: None: only an operator can cure it.
    """

    about: str
    cure: Cure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question.

    id: in kebab case, for ever.
    found_when: what is true when it finds something.
    cure: what to do then.
    of: the lakes that it is about.
    look: yields what it finds; raises LakebedError where it cannot look.
    """

    id: str
    section: Section
    found_when: str
    cure: str
    of: Of = "any lake"
    look: Callable[[Patient], Iterable[Sign]]

    def is_about(self, *, instance: bool) -> bool:
        """Return whether the check is for this kind of lake. instance: one on AWS; else a
        directory."""
        return self.of == "any lake" or (self.of == "an instance") == instance


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check.

    section: `group` in JSON, which programs of users read.
    signs: what it found, in words.
    fixes: what `--fix` would do about them.
    why: it could not look, or not at everything; "": it could.
    """

    id: str
    section: Section = msgspec.field(name="group")
    state: State
    found_when: str
    cure: str
    signs: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    why: str = ""
    seconds: float = 0.0


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of all checks, in their order.

    seconds: from the first to the last.
    """

    outcomes: tuple[CheckOutcome, ...]
    seconds: float

    def of(self, state: State) -> list[CheckOutcome]:
        """Return those of one state."""
        return [one for one in self.outcomes if one.state == state]

    @property
    def is_healthy(self) -> bool:
        """Return whether every check looked, and none found anything."""
        return len(self.of("healthy")) == len(self.outcomes)
