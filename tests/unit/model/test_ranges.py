"""Ranges of whole keys, many of them."""

import random

from lakebed.model.ranges import KeyRange, overlaps_any, union


def some_range(rng: random.Random) -> KeyRange:
    least, end = sorted(rng.choices(range(40), k=2))
    return KeyRange(bytes([least]), None if rng.random() < 0.05 else bytes([end]))


def test_a_key_range_overlaps_some_range_as_one_by_one() -> None:
    rng, seen = random.Random(5), set()
    for _ in range(2_000):
        ranges = union([some_range(rng) for _ in range(rng.randrange(6))])
        key_range = some_range(rng)
        one_by_one = any(key_range.overlaps(r) for r in ranges)
        assert overlaps_any(key_range, ranges) == one_by_one, (key_range, ranges)
        seen.add(one_by_one)
    assert seen == {True, False}
