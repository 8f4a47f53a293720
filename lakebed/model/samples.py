"""Equi-depth samples of keys: kept in each file's footer, merged they give split points.

The sampler keeps every stride-th key of a sorted stream; when more than twice KEYS_MIN are held it
drops every other one and doubles the stride, so a rank is off by at most one stride, a 128th of the
rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, islice
from math import inf

import msgspec

from lakebed.model.keys import split_key
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field

KEYS_MIN = 128
KEYS_MAX = 2 * KEYS_MIN


class Sample(msgspec.Struct, frozen=True):
    """Every `stride`-th whole encoded key of a file, from the first on.

    rows: of the file.
    slack: by how many rows a key may stand beside its index; 0: all are exact.
    share: of the file's rows, where this is the sample of a part.
    """

    keys: tuple[bytes, ...]
    stride: int
    rows: int
    slack: int = 0
    share: float = 1.0

    def inside(self, key_range: KeyRange) -> Sample:
        """Return the part of the sample inside a region, its rows estimated."""
        keys = tuple(k for k in self.keys if key_range.contains(k))
        rows = min(self.rows, len(keys) * self.stride)
        share = self.share * rows / self.rows if self.rows else 0.0
        return Sample(keys, self.stride, rows, self.slack, share)

    def thinned(self, fraction: int) -> Sample:
        """Return one in so many of the keys."""
        return Sample(
            self.keys[::fraction], self.stride * fraction, self.rows, self.slack, self.share
        )


def split_points(
    samples: Sequence[Sample], parts: int, fields: Sequence[Field]
) -> tuple[bytes, ...]:
    """Return at most `parts - 1` encodings of leading key fields that cut the rows into alike
    parts.

    fields: the row keys. Of the indices near an even cut, one where a value of the first field ends
    is taken before one where a value of the second ends, and so on; near is half of a part. Every
    part has a sampled key. Fewer points where rows share too few keys, none where they share one.
    """
    weighted = sorted((key, s.stride) for s in samples for key in s.keys)
    return even_cuts(weighted, parts, fields)


def shares_of(sample: Sample, points: Sequence[bytes]) -> tuple[int, ...]:
    """Return how many sampled keys fall in each leaf that the points make; empty: no key is
    known."""
    counts = [0] * (len(points) + 1)
    for key in sample.keys:
        counts[bisect_right(points, key)] += 1
    return tuple(counts) if any(counts) else ()


def even_cuts(
    weighted: Sequence[tuple[bytes, int]],
    parts: int,
    fields: Sequence[Field],
    *,
    shorter_within: float = inf,
) -> tuple[bytes, ...]:
    """Return points as `split_points` does.

    weighted: sorted keys, each with the rows that it stands for.
    shorter_within: how far from an even cut one of fewer fields is preferred, in parts.
    """
    keys = [key for key, _ in weighted]
    below = list(accumulate((weight for _, weight in weighted), initial=0))
    indices = [index for index in range(1, len(keys)) if keys[index - 1] != keys[index]]
    if not indices or parts < 2:
        return ()
    total, ranks = below[-1], [below[index] for index in indices]
    shorter_rows = shorter_within * total / parts

    def order(cut: tuple[int, float, int]) -> tuple[float, ...]:
        shared, distance, index = cut
        is_near = distance <= shorter_rows
        return (0, shared, distance, index) if is_near else (1, distance, index)

    def better(wanted: float, first: int, end: int) -> tuple[int, int] | None:
        """Return index and leading fields of the best end of a value near a rank, if any is."""
        near = ((index, abs(below[index] - wanted)) for index in indices[first:end])
        found = (
            (_fields_shared(keys[index - 1], keys[index], fields), distance, index)
            for index, distance in near
        )
        shared, _, index = min(found, key=order, default=(0, 0.0, 0))
        return (index, shared + 1) if index else None

    cuts = []
    taken = 0
    for part in range(1, parts):
        wanted, near = part * total / parts, total / parts / 2
        end = bisect_right(ranks, wanted + near)
        cut = better(wanted, max(taken, bisect_left(ranks, wanted - near)), end)
        if cut is not None:
            cuts.append(cut)
            taken = bisect_right(indices, cut[0])
    if not cuts:  # one key alone holds most rows: cut beside it, as evenly as it goes
        middle = bisect_left(ranks, total / 2)
        cuts = [c for c in [better(total / 2, max(0, middle - 1), middle + 1)] if c is not None]
    return tuple(b"".join(islice(split_key(fields, keys[p]), count)) for p, count in cuts)


def _fields_shared(a: bytes, b: bytes, fields: Sequence[Field]) -> int:
    """Return in how many leading fields two keys that differ agree."""
    parts = zip(split_key(fields, a), split_key(fields, b), strict=True)
    return next(index for index, (one, other) in enumerate(parts) if one != other)
