"""The order in which sorted runs merge: a tree of losers whose nodes are single numbers.

A node is the first bits of a key, and below them the number of its run: a match is a comparison of
two numbers. Where the first bits are equal the keys themselves are compared, and then the runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakebed.kernels.keys import (
    BYTES,
    Keys,
    Numbers,
    Words,
    bytes_prefix,
    compare_rows,
    left_shift,
    number_at,
    shared_bytes,
)
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import load_u8, trailing_zeros

Segments = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.int32]
Difference = tuple[int, int, int]
"""The first field that is not one value in all rows, what its values share (bytes, or the least
number), and by how many bits numbers are shifted to the left."""


class Order(NamedTuple):
    """Rows in an order: of each its segment, and its index in that."""

    segments: Segments
    rows: Rows


class Cursors(NamedTuple):
    """The position in each run: its segment, its next row in it, and the row behind its last."""

    segments: Numbers
    rows: Numbers
    ends: Numbers


@part
def _length(values: int, row: int) -> int:
    return number_at(1, values, row + 1) - number_at(1, values, row)


@part
def _text_shared(values: Numbers, bytes_: Numbers, cursors: Cursors) -> tuple[bool, int]:
    """Return whether any strings of a field differ, and how many bytes all share.

    Every run is sorted: its first and its last row are enough.
    """
    segments, rows, ends = cursors
    first, first_row = segments[0], rows[0]
    length = _length(values[first], first_row)
    shared, differ = length, False
    for sorted_run in range(len(segments)):
        segment = segments[sorted_run]
        for row in (rows[sorted_run], ends[sorted_run] - 1):
            if row < rows[sorted_run]:  # no run, but a leaf of the tree without one
                continue
            shared = shared_bytes(
                values[first],
                bytes_[first],
                first_row,
                values[segment],
                bytes_[segment],
                row,
                shared,
            )
            differ |= _length(values[segment], row) != length
    return differ or shared != length, shared


@part
def _first_difference(keys: Keys, cursors: Cursors) -> Difference:
    """Return where the keys of all rows begin to differ; the last field when they never do."""
    kinds, values, bytes_ = keys
    segments, rows, ends = cursors
    base, shift = 0, 0
    for field in range(len(kinds)):
        if kinds[field] == BYTES:
            differ, base = _text_shared(values[field], bytes_[field], cursors)
            shift = 0
            if differ:
                return field, base, shift
            continue
        kind, where = kinds[field], values[field]
        least = number_at(kind, where[segments[0]], rows[0])
        most = least
        for sorted_run in range(len(segments)):
            if rows[sorted_run] < ends[sorted_run]:
                least = min(least, number_at(kind, where[segments[sorted_run]], rows[sorted_run]))
                most = max(most, number_at(kind, where[segments[sorted_run]], ends[sorted_run] - 1))
        base, shift = least, left_shift(least, most)
        if least != most:
            return field, base, shift
    return len(kinds) - 1, base, shift


@part
def _node(
    keys: Keys, difference: Difference, mask: np.uint64, sorted_run: int, segment: int, row: int
) -> np.uint64:
    """Return the node of a row."""
    kinds, values, bytes_ = keys
    field, base, shift = difference
    if kinds[field] == BYTES:
        prefix = bytes_prefix(values[field, segment], bytes_[field, segment], row, base)
    else:
        number = number_at(kinds[field], values[field, segment], row)
        prefix = (np.uint64(number) - np.uint64(base)) << np.uint64(shift)
    return (prefix & ~mask) | np.uint64(sorted_run)


@part
def _ties_from(keys: Keys, difference: Difference, leaves: int) -> np.uint64:
    """Return up to which difference of two nodes their keys must be looked at.

    None where nodes hold the whole rest of the keys: one number, in bits above those of the run
    and one more, so that no row is as a run that has ended.
    """
    kinds, _, _ = keys
    field, _, shift = difference
    whole = kinds[field] != BYTES and field == len(kinds) - 1 and (1 << shift) > leaves
    return np.uint64(0) if whole else np.uint64(leaves - 1)


@part
def _before(a: np.uint64, b: np.uint64, mask: np.uint64, keys: Keys, cursors: Cursors) -> bool:
    """Return whether of two nodes with equal first bits the first comes before the second."""
    segments, rows, ends = cursors
    sorted_run, other = np.int64(a & mask), np.int64(b & mask)
    if rows[sorted_run] >= ends[sorted_run]:
        return False
    if rows[other] >= ends[other]:
        return True
    segment, row = segments[sorted_run], rows[sorted_run]
    result = compare_rows(keys, segment, row, segments[other], rows[other])
    return bool(result < 0 if result != 0 else sorted_run < other)


@part
def _next_row(masks: Numbers, segment: int, row: int, end: int) -> int:
    """Return the next row of a segment that is wanted; the end behind the last one."""
    row += 1
    mask = masks[segment]
    while mask != 0 and row < end:
        bits = load_u8(mask + (row >> 3)) >> (row & 7)
        if bits != 0:
            return row + trailing_zeros(np.uint64(bits))
        row = (row | 7) + 1
    return row


@part
def _plant(
    keys: Keys,
    difference: Difference,
    cursors: Cursors,
    masks: Numbers,
    nexts: Numbers,
    coming: Words,
    losers: Words,
) -> np.uint64:
    """Fill the tree with the first row of each run; return the winner's node.

    nexts, coming: each run's row after the one in the tree, and its node.
    """
    segments, rows, ends = cursors
    leaves = len(losers)
    mask = np.uint64(leaves - 1)
    winners = np.empty(2 * leaves, np.uint64)
    for sorted_run in range(leaves):
        segment, row = segments[sorted_run], rows[sorted_run]
        winners[leaves + sorted_run] = ~mask | np.uint64(sorted_run)
        if row < ends[sorted_run]:
            winners[leaves + sorted_run] = _node(keys, difference, mask, sorted_run, segment, row)
            nexts[sorted_run] = _next_row(masks, segment, row, ends[sorted_run])
            if nexts[sorted_run] < ends[sorted_run]:
                row = nexts[sorted_run]
                coming[sorted_run] = _node(keys, difference, mask, sorted_run, segment, row)
    for node in range(leaves - 1, 0, -1):
        a, b = winners[2 * node], winners[2 * node + 1]
        first = a < b if (a ^ b) > mask else _before(a, b, mask, keys, cursors)
        winners[node] = a if first else b
        losers[node] = b if first else a
    best: np.uint64 = winners[1]
    return best


@kernel
def merge_rows(
    keys: Keys, masks: Numbers, cursors: Cursors, filled: int, most: int, out: Order
) -> int:
    """Write the next rows of sorted runs, in the order of their keys, until one run's segment is
    used up or `most` rows stand in the output. Returns how many do.

    Rows of equal keys stay in the order of runs, and in each run as they are. masks: of each
    segment the address of a bit for each row, of those that are wanted; 0: all are. cursors: next
    and last rows are wanted ones; as many as a power of two, those without rows are no runs, the
    first is one. Their rows are moved on. filled: the rows that stand in the output already.
    """
    segments, rows, ends = cursors
    leaves = len(segments)
    mask = np.uint64(leaves - 1)
    difference = _first_difference(keys, cursors)
    nexts = np.empty(leaves, np.int64)
    coming = np.empty(leaves, np.uint64)
    losers = np.empty(leaves, np.uint64)
    best = _plant(keys, difference, cursors, masks, nexts, coming, losers)
    ties = _ties_from(keys, difference, leaves)
    for index in range(filled, most):
        sorted_run = int(np.int64(best & mask))
        segment, row = segments[sorted_run], rows[sorted_run]
        if CHECKED:
            assert 0 <= row < ends[sorted_run]
        out.segments[index] = segment
        out.rows[index] = row
        row = nexts[sorted_run]
        rows[sorted_run] = row
        if row == ends[sorted_run]:
            return index + 1
        best = coming[sorted_run]
        row = _next_row(masks, segment, row, ends[sorted_run])
        nexts[sorted_run] = row
        if row < ends[sorted_run]:
            coming[sorted_run] = _node(keys, difference, mask, sorted_run, segment, row)
        node = (leaves + sorted_run) >> 1
        while node > 0:
            held = losers[node]
            if (held ^ best) > ties:
                losers[node] = max(held, best)
                best = min(held, best)
            elif _before(held, best, mask, keys, cursors):
                losers[node] = best
                best = held
            node >>= 1
    return most
