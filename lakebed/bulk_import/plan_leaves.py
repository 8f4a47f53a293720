"""Decides which leaves a bulk import makes of those that it fills, and at which keys. Pure.

First keys of the blocks that tasks have sorted are the sample: no row is read for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise, zip_longest

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.model.keys import least_key
from lakebed.model.names import PartitionId
from lakebed.model.partitions import SPLIT_POINTS_MAX, splits
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import even_cuts
from lakebed.model.schema import Field
from lakebed.sorted_files.sorting.stored_runs import StoredRun

LEAF_ROWS_MIN = 1_000
"""Fewest rows of a leaf that is only made so that the table has `leaves_min`."""

SHORTER_WITHIN = 0.25
"""Greatest distance from an even cut, in parts, at which a cut of fewer key fields is preferred: no
leaf gets twice as much as the others."""

WeightedKeys = Sequence[tuple[bytes, int]]
"""Sorted encoded row keys, each with the rows that it stands for."""


class Load(msgspec.Struct, frozen=True):
    """Rows of a leaf: those that it holds, about, and those that a job brings."""

    held: int
    brought: int

    @property
    def rows(self) -> int:
        """Return both together."""
        return self.held + self.brought


class FilledLeaf(msgspec.Struct, frozen=True):
    """A leaf that gets rows, as the table has it now.

    range_index: of the key range, among those that the job's rows were cut by, in which it lies.
    """

    partition: PartitionId
    key_range: KeyRange
    range_index: int
    load: Load


class RowTarget(msgspec.Struct, frozen=True):
    """Keys whose rows get files of their own, or share one with neighbours: a leaf, or a part of
    one that becomes a leaf.

    rows: about so many, at least 1.
    is_new: the leaf is to be split where this begins or ends.
    """

    leaf: FilledLeaf
    key_range: KeyRange
    rows: int
    is_new: bool = False


def weights_by_key_range(sorted_runs: Iterable[StoredRun], key_ranges: int) -> list[WeightedKeys]:
    """Return for each key range that runs were cut by the first keys of their blocks.

    Rows of a block lie between its first key and the next one's: half of them count for each.
    """
    found: list[list[tuple[bytes, int]]] = [[] for _ in range(key_ranges)]
    for sorted_run in sorted_runs:
        blocks = sorted_run.blocks
        for block, after in zip_longest(blocks, blocks[1:]):
            half, end = block.rows // 2, block.first
            if after is not None and after.range_index == block.range_index:
                end = after.first
            found[block.range_index] += [(block.first, block.rows - half), (end, half)]
    return [sorted(weights) for weights in found]


def inside(weights: WeightedKeys, key_range: KeyRange) -> WeightedKeys:
    """Return the keys that lie in a key range."""
    begin, end = bisect_left(weights, key_range.min, key=_key), len(weights)
    if key_range.max is not None:
        end = bisect_left(weights, key_range.max, key=_key)
    return weights[begin:end]


def _key(weighted: tuple[bytes, int]) -> bytes:
    return weighted[0]


def rows_of(weights: WeightedKeys) -> int:
    """Return the rows that keys stand for."""
    return sum(rows for _, rows in weights)


def parts_wanted(loads: Sequence[Load], *, leaves: int, settings: TableSettings) -> list[int]:
    """Return how many leaves each of some leaves should become; 1: it stays as it is.

    A leaf with more than `leaf_rows_max` rows becomes leaves of about half as many. Then those with
    most rows are cut further until the table has `leaves_min`, while each part has rows enough for
    a file of its own. leaves: of the whole table.
    """
    rows_max = settings.leaf_rows_max
    parts = [
        max(2, -(-2 * load.rows // rows_max) - 1) if load.rows > rows_max else 1 for load in loads
    ]
    parts = [min(count, SPLIT_POINTS_MAX + 1) for count in parts]
    missing = min(settings.leaves_min, SPLIT_POINTS_MAX + 1) - leaves - sum(parts) + len(parts)
    rows_min = max(LEAF_ROWS_MIN, settings.shared_file_rows_max)
    largest = [(-load.rows / parts[at], at) for at, load in enumerate(loads)]
    heapify(largest)
    while missing > 0 and largest:
        _, at = heappop(largest)
        if loads[at].rows >= rows_min * (parts[at] + 1):
            parts[at] += 1
            missing -= 1
            heappush(largest, (-loads[at].rows / parts[at], at))
    return parts


def targets_of(
    leaf: FilledLeaf, brought: WeightedKeys, held: WeightedKeys, parts: int, fields: Sequence[Field]
) -> list[RowTarget]:
    """Return the parts that a leaf should be split into, or the leaf itself; they tile it.

    brought, held: keys in the leaf.
    parts: at most.
    fields: the row keys.
    """
    both = sorted((*brought, *held)) if held else brought
    cuts = even_cuts(both, parts, fields, shorter_within=SHORTER_WITHIN)
    cuts = allowed_cuts(cuts, leaf.key_range, fields)
    if not cuts:
        return [RowTarget(leaf, leaf.key_range, max(1, leaf.load.brought))]
    ends = [leaf.key_range.min, *cuts, leaf.key_range.max]
    found = []
    for low, high in pairwise(ends):
        assert low is not None, "only the last end is open"
        part = KeyRange(low, high)
        found.append(RowTarget(leaf, part, max(1, rows_of(inside(brought, part))), is_new=True))
    return found


def chosen_cuts(candidates: WeightedKeys, rows: int, parts: int) -> tuple[bytes, ...]:
    """Return at most `parts - 1` of the keys at which files begin: those nearest to even cuts.

    candidates: each with the rows of all files below it.
    rows: of all files.
    """
    if len(candidates) < parts:
        return tuple(key for key, _ in candidates)
    chosen: list[bytes] = []
    begin = 0
    for part in range(1, parts):
        end = len(candidates) - (parts - 1 - part)  # leaves one for each cut that follows
        wanted = part * rows / parts
        after = bisect_left(candidates, wanted, begin, end, key=lambda candidate: candidate[1])
        near = range(max(begin, after - 1), min(end, after + 1))
        at = min(near, key=lambda index: abs(candidates[index][1] - wanted))
        chosen.append(candidates[at][0])
        begin = at + 1
    return tuple(chosen)


def allowed_cuts(
    cuts: Iterable[bytes], key_range: KeyRange, fields: Sequence[Field]
) -> tuple[bytes, ...]:
    """Return those of some ascending cuts that lie inside a key range, and with keys below them: a
    leaf that can hold no key would stay empty for ever."""
    allowed: list[bytes] = []
    before = key_range.min
    for cut in cuts:
        if splits(key_range, cut) and least_key(fields, before) < cut:
            allowed.append(cut)
            before = cut
    return tuple(allowed)
