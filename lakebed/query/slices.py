"""Cuts a plan into slices for workers that read beside each other: neighbouring leaves of about so
many bytes, or ranges of keys inside a leaf that is much larger.

Read one after the other, slices give what the plan gives: no row key lies in two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from lakebed.model.files import FilePart
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import Sample, split_points
from lakebed.model.schema import Field
from lakebed.query.run_query import QueryPlan

SLICE_BYTES = 128 << 20
"""Rough size of a slice's files, in bytes, as they are stored."""
LARGE_LEAF = 2
"""A leaf above so many slices is cut."""

LeafParts = tuple[FilePart, ...]


class Slice(msgspec.Struct, frozen=True):
    """The part of a plan that one worker reads.

    number: counts from 0, in key order.
    leaves: as a plan has them; of a leaf that was cut one range of it.
    rows, bytes: about; what a predicate leaves out is counted, too.
    """

    number: int
    leaves: tuple[LeafParts, ...]
    rows: int
    bytes: int

    @property
    def key_range(self) -> KeyRange:
        """Return where its keys lie."""
        return KeyRange(self.leaves[0][0].key_range.min, self.leaves[-1][0].key_range.max)


def plan_of_slice(plan: QueryPlan, part: Slice) -> QueryPlan:
    """Return the plan that reads nothing but a slice."""
    return msgspec.structs.replace(plan, leaves=part.leaves)


def slices_of(
    plan: QueryPlan, sample_of: Callable[[FilePart], Sample], *, bytes_max: int = SLICE_BYTES
) -> Iterator[Slice]:
    """Yield the slices of a plan in key order; none where it reads nothing.

    sample_of: gives the sample of a file inside a part's range; only asked for leaves that are cut.
    bytes_max: of a slice. A leaf that holds more is a slice of its own, and is cut where it holds
        more than twice as much.
    """
    parts_of = Counter(part.file.name for leaf in plan.leaves for part in leaf)
    held: list[LeafParts] = []
    held_bytes = number = 0
    for leaf in plan.leaves:
        size = sum(part.file.size // parts_of[part.file.name] for part in leaf)
        if held and held_bytes + size > bytes_max:
            yield _slice(number, held, held_bytes)
            held, held_bytes, number = [], 0, number + 1
        if size <= LARGE_LEAF * bytes_max:
            held.append(leaf)
            held_bytes += size
            continue
        ranges = _cut(leaf, sample_of, -(-size // bytes_max), plan.schema.row_keys)
        for one in ranges:
            yield _slice(number, [one], size // len(ranges))
            number += 1
    if held:
        yield _slice(number, held, held_bytes)


def _slice(number: int, leaves: Sequence[LeafParts], size: int) -> Slice:
    rows = sum(part.rows for leaf in leaves for part in leaf)
    return Slice(number, tuple(leaves), rows, size)


def _cut(
    leaf: LeafParts, sample_of: Callable[[FilePart], Sample], pieces: int, row_keys: Sequence[Field]
) -> list[LeafParts]:
    """Return ranges of a leaf that hold about as many rows each; fewer where keys do not allow
    it."""
    samples = [sample_of(part) for part in leaf]
    points = split_points(samples, pieces, row_keys)
    whole = leaf[0].key_range
    edges = [whole.min, *points, whole.max]
    found = []
    for least, most in pairwise(edges):
        assert least is not None, "only the last end may be open"
        inside = KeyRange(least, most)
        found.append(
            tuple(
                msgspec.structs.replace(
                    part, key_range=inside, rows=min(part.rows, sample.inside(inside).rows)
                )
                for part, sample in zip(leaf, samples, strict=True)
            )
        )
    return found
