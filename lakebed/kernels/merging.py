"""The order in which sorted runs merge: a tree of losers whose nodes are single numbers.

A node is the first bits of a key, and below them the number of its run: a match is a comparison of
two numbers. Where the first bits are equal the keys themselves are compared, and then the runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakebed.kernels.compiling import CHECKED, kernel, part
from lakebed.kernels.keys import (
    BYTES,
    Numbers,
    Words,
    compare_rows,
    fill_prefixes,
    left_shift,
    number_at,
    shared_bytes,
)

Segments = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.int32]
Keys = tuple[Numbers, Numbers, Numbers, Numbers]
"""kinds, values, bytes_ and starts, as `merge_order` takes them."""
Cursors = tuple[Numbers, Numbers, Numbers]
"""Of each run: the segment and place of its row in the tree, and the place behind its last."""


@part
def first_difference(
    kinds: Numbers, values: Numbers, bytes_: Numbers, starts: Numbers, runs: Numbers
) -> tuple[int, int, int]:
    """Return the first field that is not one value in all rows, what its values share, and a shift,
    as `fill_prefixes` takes them; the last field when all keys are equal.

    runs: the first segment of each, and all segments. Every run has a row, and is sorted: its first
    and its last row tell.
    """
    base, shift = 0, 0
    for field in range(len(kinds)):
        kind = kinds[field]
        where, at = values[field], bytes_[field]
        if kind == BYTES:
            base = 1 << 30
            same = True
            for run in range(len(runs) - 1):
                last = runs[run + 1] - 1
                last_row = starts[last + 1] - starts[last] - 1
                for segment, row in ((runs[run], 0), (last, last_row)):
                    base = shared_bytes(where[0], at[0], 0, where[segment], at[segment], row, base)
                    same &= _length(where[segment], row) == _length(where[0], 0)
            if not (same and base == _length(where[0], 0)):
                return field, base, 0
        else:
            least = number_at(kind, where[0], 0)
            most = least
            for run in range(len(runs) - 1):
                last = runs[run + 1] - 1
                last_row = starts[last + 1] - starts[last] - 1
                least = min(least, number_at(kind, where[runs[run]], 0))
                most = max(most, number_at(kind, where[last], last_row))
            base, shift = least, left_shift(least, most)
            if least != most:
                return field, base, shift
    return len(kinds) - 1, base, shift


@part
def _length(values: int, row: int) -> int:
    return number_at(1, values, row + 1) - number_at(1, values, row)


@part
def _node(prefixes: Words, place: int, end: int, mask: np.uint64, run: np.int64) -> np.uint64:
    """Return the node of a row; the highest first bits of all where the run has ended."""
    first_bits = prefixes[place] & ~mask if place < end else ~mask
    return first_bits | np.uint64(run)


@part
def _before(a: np.uint64, b: np.uint64, mask: np.uint64, keys: Keys, cursors: Cursors) -> bool:
    """Whether of two nodes with equal first bits the first comes before the second."""
    kinds, values, bytes_, starts = keys
    segment_of, place_of, end_of = cursors
    run, other = np.int64(a & mask), np.int64(b & mask)
    if place_of[run] >= end_of[run]:
        return False
    if place_of[other] >= end_of[other]:
        return True
    segment, other_segment = segment_of[run], segment_of[other]
    row, other_row = place_of[run] - starts[segment], place_of[other] - starts[other_segment]
    result = compare_rows(kinds, values, bytes_, segment, row, other_segment, other_row)
    return bool(result < 0 if result != 0 else run < other)


@part
def _plant(
    prefixes: Words, runs: Numbers, keys: Keys, cursors: Cursors, coming: Words, losers: Words
) -> np.uint64:
    """Fill the tree with the first row of each run; return the winner's node.

    coming: the node of each run's row after the one in the tree.
    """
    starts = keys[3]
    segment_of, place_of, end_of = cursors
    leaves = len(losers)
    mask = np.uint64(leaves - 1)
    winners = np.empty(2 * leaves, np.uint64)
    for run in range(leaves):
        if run < len(runs) - 1:
            segment_of[run] = runs[run]
            place_of[run] = starts[runs[run]]
            end_of[run] = starts[runs[run + 1]]
        winners[leaves + run] = _node(prefixes, place_of[run], end_of[run], mask, np.int64(run))
        coming[run] = _node(prefixes, place_of[run] + 1, end_of[run], mask, np.int64(run))
    for node in range(leaves - 1, 0, -1):
        a, b = winners[2 * node], winners[2 * node + 1]
        first = a < b if (a ^ b) > mask else _before(a, b, mask, keys, cursors)
        winners[node] = a if first else b
        losers[node] = b if first else a
    best: np.uint64 = winners[1]
    return best


@kernel
def merge_order(
    kinds: Numbers,
    values: Numbers,
    bytes_: Numbers,
    starts: Numbers,
    runs: Numbers,
    segments_out: Segments,
    rows_out: Rows,
) -> None:
    """Write the segment and the row of all rows of sorted runs in the order of their keys.

    Rows of equal keys stay in the order of runs, and in each run as they are. kinds, values,
    bytes_: as in `keys`. starts: rows before each segment, and all. runs: the first segment of
    each, and all segments. No segment is empty, no run is without one.
    """
    total = starts[len(starts) - 1]
    field, base, shift = first_difference(kinds, values, bytes_, starts, runs)
    prefixes = np.empty(total, np.uint64)
    fill_prefixes(kinds[field], values[field], bytes_[field], starts, base, shift, prefixes)
    leaves = 1
    while leaves < len(runs) - 1:
        leaves *= 2
    mask = np.uint64(leaves - 1)
    segment_of = np.zeros(leaves, np.int64)
    place_of = np.zeros(leaves, np.int64)
    end_of = np.zeros(leaves, np.int64)
    coming = np.empty(leaves, np.uint64)
    losers = np.empty(leaves, np.uint64)
    keys, cursors = (kinds, values, bytes_, starts), (segment_of, place_of, end_of)
    best = _plant(prefixes, runs, keys, cursors, coming, losers)
    for out in range(total):
        run = np.int64(best & mask)
        segment, place = segment_of[run], place_of[run]
        if CHECKED:
            assert starts[segment] <= place < min(starts[segment + 1], end_of[run])
        segments_out[out] = segment
        rows_out[out] = place - starts[segment]
        place += 1
        place_of[run] = place
        if place == starts[segment + 1]:
            segment_of[run] = segment + 1
        best = coming[run]
        coming[run] = _node(prefixes, place + 1, end_of[run], mask, run)
        node = (leaves + run) >> 1
        while node > 0:
            held = losers[node]
            if (held ^ best) > mask:
                losers[node] = max(held, best)
                best = min(held, best)
            elif _before(held, best, mask, keys, cursors):
                losers[node] = best
                best = held
            node >>= 1
