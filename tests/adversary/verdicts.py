"""What came of one damage, judged by what a lake answered, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

GOOD = ("found", "mended", "harmless")
"""What may come of a planting: an error or a finding reported it, a state was made anew, or all
answers are right."""
Kind = Literal["report", "wrong", "raw"]


class Answer(msgspec.Struct, frozen=True):
    """Something that a damaged lake said, other than what is right.

    kind: "report": it says that something is damaged; "wrong": it is not the model's; "raw": an
        error that is none of ours.
    about: the table that was asked; "": none.
    """

    kind: Kind
    text: str
    about: str = ""

    def is_false_alarm(self, unharmed: Collection[str]) -> bool:
        """Whether it reports damage of a table that has none."""
        return self.kind == "report" and self.about in unharmed


class Verdict(msgspec.Struct, frozen=True):
    """outcome: one of GOOD; or "silent", "wrong", "raw". why: what was said, in its order."""

    outcome: str
    why: str = ""


def verdict(
    answers: Sequence[Answer], *, is_mended: bool, unharmed: Collection[str] = ()
) -> Verdict:
    """Judge answers in the order in which they came. is_mended: a damaged state was set aside.
    unharmed: tables that no damage reached; whatever one of them reports is wrong.

    A wrong answer is a fault whatever comes after it: whoever asked has gone on with it before
    `fsck` looks. One behind a report is a fault, too, of another name: "wrong", not "silent".
    """
    why = "; ".join(f"{one.kind}: {one.text}" for one in answers)
    kinds = ["wrong" if one.is_false_alarm(unharmed) else one.kind for one in answers]
    if "raw" in kinds:
        return Verdict("raw", why)
    if "wrong" in kinds:
        return Verdict("wrong" if "report" in kinds[: kinds.index("wrong")] else "silent", why)
    if kinds:
        return Verdict("found", why)
    return Verdict("mended" if is_mended else "harmless")
