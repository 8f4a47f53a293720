"""Equi-depth samples of keys: kept in each file's footer, merged they give split points.

The sampler keeps every stride-th key of a sorted stream; when more than twice KEYS_MIN are held it
drops every other one and doubles the stride, so a rank is off by at most one stride, a 128th of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakebed.model.ranges import KeyRange

KEYS_MIN = 128
KEYS_MAX = 2 * KEYS_MIN


class Sample(msgspec.Struct, frozen=True):
    """Every `stride`-th whole encoded key of a file, from the first on. rows: of the file."""

    keys: tuple[bytes, ...]
    stride: int
    rows: int

    def inside(self, region: KeyRange) -> Sample:
        """Return the part of the sample inside a region, its rows estimated."""
        keys = tuple(k for k in self.keys if region.contains(k))
        return Sample(keys, self.stride, min(self.rows, len(keys) * self.stride))


def split_points(
    samples: Sequence[Sample], parts: int, first_field: Callable[[bytes], bytes]
) -> tuple[bytes, ...]:
    """Return at most `parts - 1` encodings of first fields that cut the rows into alike parts.

    first_field: gives the encoding of a key's first field. Every part has at least one sampled key;
    fewer points where rows share too few first fields, none where they share one.
    """
    weighted = sorted((first_field(k), s.stride) for s in samples for k in s.keys)
    if not weighted:
        return ()
    total = sum(weight for _, weight in weighted)
    points: list[bytes] = []
    least = weighted[0][0]
    passed, part = 0, 1
    for value, weight in weighted:
        if part < parts and passed * parts >= part * total and value > least:
            points.append(value)
            least = value
            while part < parts and passed * parts >= part * total:
                part += 1
        passed += weight
    if not points:  # the largest value alone holds most rows: cut before it
        points = [v for v, _ in weighted if v > least][:1]
    return tuple(points)
