"""What a range of keys holds, leaf by leaf, and where leaves must be cut to hold nothing else."""

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


class LeafInRange(msgspec.Struct, frozen=True):
    """A leaf of which some keys lie in a range.

    own: the range of the leaf's keys.
    inside: those of them that lie in the range asked for.
    held: references to files that may have rows there, each with the job that claimed it.
    """

    id: PartitionId
    own: KeyRange
    inside: KeyRange
    held: tuple[tuple[FileReference, JobId | None], ...]

    def keys_of(self, reference: FileReference) -> KeyRange:
        """Return a range that holds the keys of a reference's rows."""
        return reference.bounds.as_range().meets(self.own)

    def is_inside(self, reference: FileReference) -> bool:
        """Whether all rows of a reference lie in the range asked for."""
        keys = self.keys_of(reference)
        return self.inside.min <= keys.min and keys.meets(self.inside).max == keys.max

    @property
    def points(self) -> tuple[bytes, ...]:
        """Where the leaf must be cut so that each reference lies inside of the range or outside:
        at no end, at one, or at both."""
        keys = [self.keys_of(reference) for reference, _ in self.held]
        points = []
        if any(one.min < self.inside.min for one in keys):
            points.append(self.inside.min)
        end = self.inside.max
        if end is not None and any(one.max is None or end < one.max for one in keys):
            points.append(end)
        return tuple(points)


def leaves_in_range(state: TableState, key_range: KeyRange) -> list[LeafInRange]:
    """Return the leaves of which some keys lie in a range, in order. key_range: its ends are
    encodings of leading row keys."""
    fields = state.schema().row_keys
    found = []
    for leaf, own in reached_leaves(state, state.head().root, (key_range,)):
        inside = _inside(fields, own, key_range)
        if inside.max is not None and least_key(fields, inside.min) >= inside.max:
            continue  # no key lies there
        held = tuple(
            (reference, job)
            for reference, job in state.references(leaf)
            if reference.bounds.as_range().meets(own).overlaps(inside)
        )
        found.append(LeafInRange(leaf, own, inside, held))
    return found


def digest_of_files(leaves: Sequence[LeafInRange]) -> RequestDigest:
    """Return what stands for the files that a range holds, on whatever leaves."""
    names = {reference.file.name for leaf in leaves for reference, _ in leaf.held}
    return digest_of(*sorted(names))


def _inside(fields: Sequence[Field], own: KeyRange, key_range: KeyRange) -> KeyRange:
    """Return what a leaf and a range both hold. It ends with the leaf where no key of the leaf lies
    beyond: a cut there would make a leaf that stays empty for ever."""
    least, most = max(own.min, key_range.min), key_range.meets(own).max
    if least_key(fields, own.min) >= least:
        least = own.min
    if most is not None and own.max is not None and least_key(fields, most) >= own.max:
        most = own.max
    return KeyRange(least, most)
