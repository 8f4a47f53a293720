"""Counts what became of the records of a commit: each is counted once (protocol R12)."""

from __future__ import annotations

import msgspec

from lakebed.errors import InvalidError


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """Counts of records.

    read: how many the source gave; the sum of the six that follow.
    stored: became rows, before the table merges rows of one key.
    filtered: left out by the connection's filter or by what the table does with its rows.
    quarantined: no row could be made of them; they are in the quarantine table.
    deduplicated: the source gave them twice, and they were known.
    sampled_out, discarded: left out by the policy.
    bytes: of all that were read.
    """

    read: int = 0
    stored: int = 0
    filtered: int = 0
    quarantined: int = 0
    deduplicated: int = 0
    sampled_out: int = 0
    discarded: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        """Return what became of the records, for people."""
        counts = msgspec.structs.asdict(self)
        del counts["bytes"]
        texts = [f"{count:,} {fate.replace('_', ' ')}" for fate, count in counts.items() if count]
        return ", ".join(texts) or "none"

    def check(self) -> None:
        """Refuse what does not add up. Raises: InvalidError."""
        fates = (
            self.stored,
            self.filtered,
            self.quarantined,
            self.deduplicated,
            self.sampled_out,
            self.discarded,
        )
        if min(self.bytes, *fates) < 0:
            raise InvalidError(
                "a tally counts below zero", tally=self, hint="give each count as 0 or more"
            )
        if self.read != sum(fates):
            hint = "count each record that was read once, by what became of it"
            raise InvalidError(
                "a tally does not add up", read=self.read, fates=sum(fates), hint=hint
            )

    def plus(self, other: Tally) -> Tally:
        """Return the sums of both."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Tally(*(one + another for one, another in pairs))
