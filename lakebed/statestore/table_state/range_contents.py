"""Finds what ranges of keys hold, leaf by leaf, and where leaves must be cut to hold nothing
else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.model.files import FileReference
from lakebed.model.keys import least_key
from lakebed.model.names import JobId, PartitionId, RequestDigest, digest_of
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field
from lakebed.statestore.table_state.placing import reached_leaves
from lakebed.statestore.table_state.state import TableState


class LeafInRanges(msgspec.Struct, frozen=True):
    """A leaf of which some keys lie in ranges.

    own: the range of the leaf's keys.
    inside: what of it lies in the ranges asked for, ascending.
    held: references to files that may have rows there, each with the job that claimed it.
    """

    id: PartitionId
    own: KeyRange
    inside: tuple[KeyRange, ...]
    held: tuple[tuple[FileReference, JobId | None], ...]

    def keys_of(self, reference: FileReference) -> KeyRange:
        """Return a range that holds the keys of a reference's rows."""
        return reference.bounds.as_range().meets(self.own)

    def is_inside(self, reference: FileReference) -> bool:
        """Return whether all rows of a reference lie in one of the ranges asked for."""
        keys = self.keys_of(reference)
        return any(r.min <= keys.min and keys.meets(r).max == keys.max for r in self.inside)

    @property
    def points(self) -> tuple[bytes, ...]:
        """Return where the leaf must be cut so that each reference lies inside of a range or
        outside of all: at the ends of ranges that a file has keys on both sides of."""
        keys = [self.keys_of(reference) for reference, _ in self.held]
        ends = {end for r in self.inside for end in (r.min, r.max) if end is not None}
        crossed = (end for end in ends if any(_crosses(one, end) for one in keys))
        return tuple(sorted(crossed))


def leaves_in_ranges(state: TableState, ranges: Sequence[KeyRange]) -> list[LeafInRanges]:
    """Return the leaves of which some keys lie in ranges, in order.

    ranges: ascending, none meets another; their ends are encodings of leading row keys.
    """
    fields = state.schema().row_keys
    found = []
    for leaf, own in reached_leaves(state, state.head().root, ranges):
        met = (_inside(fields, own, r) for r in ranges if own.overlaps(r))
        inside = tuple(r for r in met if r.max is None or least_key(fields, r.min) < r.max)
        held = tuple(
            (reference, job)
            for reference, job in state.references(leaf)
            if any(reference.bounds.as_range().meets(own).overlaps(r) for r in inside)
        )
        if inside:
            found.append(LeafInRanges(leaf, own, inside, held))
    return found


def digest_of_files(leaves: Sequence[LeafInRanges]) -> RequestDigest:
    """Return what stands for the rows that ranges hold: the files by leaf. A delete of some of them
    leaves the same files, on other leaves."""
    held = [(leaf.id, reference.file.name) for leaf in leaves for reference, _ in leaf.held]
    return digest_of(*(b"%d/%b" % one for one in sorted(held)))


def _crosses(keys: KeyRange, end: bytes) -> bool:
    return keys.min < end and (keys.max is None or end < keys.max)


def _inside(fields: Sequence[Field], own: KeyRange, key_range: KeyRange) -> KeyRange:
    """Return what a leaf and a range both hold. It ends with the leaf where no key of the leaf lies
    beyond: a cut there would make a leaf that stays empty for ever."""
    least, most = max(own.min, key_range.min), key_range.meets(own).max
    if least_key(fields, own.min) >= least:
        least = own.min
    if most is not None and own.max is not None and least_key(fields, most) >= own.max:
        most = own.max
    return KeyRange(least, most)
