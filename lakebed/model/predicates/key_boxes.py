"""Boxes of row keys that hold every row which a predicate may keep.

The predicate is applied to rows all the same, so a box that is too large costs time, and one that
is too small would lose rows. Row keys are never null, so what is not true of one is false.

While a predicate is walked, grids stand for boxes: for each row key some ranges, of which a value
lies in one. `a in (1, 2, 3) and b in (4, 5)` is one grid, and six boxes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

from lakebed.model.keys import KeyValue, encode_field, successor
from lakebed.model.predicates.language import (
    And,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakebed.model.predicates.patterns import pattern_of, text_above
from lakebed.model.ranges import EVERYTHING, Box, KeyRange, is_one_value
from lakebed.model.schema import Field, Schema

BOXES_MAX = 10_000
UNLIKE_BOXES_MAX = 100
"""Boxes that are no ranges of whole keys: each leaf and file is held against each of them."""
GRIDS_MAX = 1_000
RANGES_MAX = 100_000
"""Most ranges of all grids together."""

Ranges = tuple[KeyRange, ...]
"""Ascending; none overlaps another. Points that touch stay apart: keys begin with them."""
Grid = tuple[Ranges, ...]
_ALL: Ranges = (EVERYTHING,)


def boxes_of(predicate: Predicate, schema: Schema) -> tuple[Box, ...]:
    """Return boxes that hold every row which a checked predicate may keep, at most 10,000; none:
    it keeps no row. Where there would be more, fewer and larger ones."""
    grids = _grids(predicate, schema.row_keys, wanted=True)
    grids = _without_unlike(grids, schema.row_keys)
    for index in reversed(range(len(schema.row_keys))):
        if _boxes_in(grids) <= BOXES_MAX:
            break
        grids = [(*g[:index], _hull(g[index]), *g[index + 1 :]) for g in grids]
    return tuple(box for grid in grids for box in _boxes(grid))


def met_boxes(boxes: Sequence[Box], others: Sequence[Box]) -> tuple[Box, ...]:
    """Return boxes that hold every key which lies in a box of each. Where there would be more than
    10,000, one that is larger stands for all of `others`."""
    if boxes and others and len(boxes[0]) == 1:
        one, other = (_sorted(box[0] for box in some) for some in (boxes, others))
        return tuple((r,) for r in _met_ranges(one, other))
    if len(boxes) * len(others) > BOXES_MAX:
        others = _boxes(_one_grid([tuple((r,) for r in box) for box in others])[0])
    met = (tuple(map(KeyRange.meets, box, other)) for box in boxes for other in others)
    return tuple(box for box in met if not any(r.is_empty for r in box))


def _grids(predicate: Predicate, fields: Sequence[Field], *, wanted: bool) -> list[Grid]:
    """Return grids that hold every row for which a predicate is true; or, not `wanted`, false."""
    match predicate:
        case And(parts) | Or(parts):
            each = [_grids(part, fields, wanted=wanted) for part in parts]
            if isinstance(predicate, And) is wanted:
                return reduce(_met, each)
            return _joined([grid for grids in each for grid in grids])
        case Not(part):
            return _grids(part, fields, wanted=not wanted)
        case _:
            everything = [_ALL] * len(fields)
            index = next((i for i, f in enumerate(fields) if f.name == predicate.field), None)
            if index is None:
                return [tuple(everything)]
            found = _ranges(predicate, fields[index], wanted=wanted)
            everything[index] = found
            return [tuple(everything)] if found else []


def _ranges(
    test: Compare | In | Like | IsNull | IsNotNull, field: Field, *, wanted: bool
) -> Ranges:
    """Return where values of a row key lie for which a test is true; or, not `wanted`, false."""
    match test:
        case IsNull() | IsNotNull():
            return _ALL if isinstance(test, IsNotNull) is wanted else ()
        case Compare(_, "!=", value):
            found = _sorted([_point(field, value)])
            wanted = not wanted
        case Compare(_, comparison, value):
            found = _sorted([_compared(field, comparison, value)])
        case In(_, values):
            found = _sorted([_point(field, value) for value in values])
        case Like(_, text, escape):
            pattern = pattern_of(text, escape)
            if pattern.rest == "some" and not wanted:
                return _ALL
            found = (_beginning(field, pattern.prefix),)
            if pattern.rest == "nothing":
                found = (_point(field, pattern.prefix),)
    return found if wanted else _gaps(found)


def _compared(field: Field, comparison: str, value: object) -> KeyRange:
    point = _point(field, value)
    match comparison:
        case "<":
            return KeyRange(b"", point.min)
        case "<=":
            return KeyRange(b"", point.max)
        case ">":
            return KeyRange(point.max) if point.max is not None else KeyRange(b"", b"")
        case ">=":
            return KeyRange(point.min)
        case _:
            return point


def _beginning(field: Field, prefix: str) -> KeyRange:
    """Return the range that holds every text which begins with a prefix."""
    least = encode_field(field.type, prefix) if prefix else b""
    return KeyRange(least, _end(field, text_above(prefix)))


def _point(field: Field, value: object) -> KeyRange:
    """Return the range that holds one value. value: as a checked predicate has it."""
    assert isinstance(value, KeyValue), "a literal of a key is a value of it"
    return KeyRange(encode_field(field.type, value), _end(field, successor(field.type, value)))


def _end(field: Field, value: KeyValue | None) -> bytes | None:
    return None if value is None else encode_field(field.type, value)


def _sorted(ranges: Iterable[KeyRange]) -> Ranges:
    """Return ranges in order; those that overlap become one."""
    found: list[KeyRange] = []
    for r in sorted((r for r in ranges if not r.is_empty), key=lambda r: r.min):
        before = found[-1] if found else None
        if before is None or (before.max is not None and before.max <= r.min):
            found.append(r)
        elif before.max is not None and (r.max is None or r.max > before.max):
            found[-1] = KeyRange(before.min, r.max)
    return tuple(found)


def _gaps(ranges: Ranges) -> Ranges:
    """Return the ranges between some."""
    found, least = [], b""
    for r in ranges:
        found.append(KeyRange(least, r.min))
        if r.max is None:
            break
        least = r.max
    else:
        found.append(KeyRange(least))
    return tuple(r for r in found if not r.is_empty)


def _hull(ranges: Ranges) -> Ranges:
    """Return one range that holds some, ascending ones."""
    return (KeyRange(ranges[0].min, ranges[-1].max),)


def _met_ranges(one: Ranges, other: Ranges) -> Ranges:
    if _ALL in (one, other):
        return other if one == _ALL else one
    few, many = sorted((one, other), key=len)
    found = []
    for r in few:
        index = max(0, bisect_right(many, r.min, key=lambda r: r.min) - 1)
        while index < len(many) and (r.max is None or many[index].min < r.max):
            found.append(r.meets(many[index]))
            index += 1
    return tuple(r for r in found if not r.is_empty)


def _met(one: list[Grid], other: list[Grid]) -> list[Grid]:
    """Return grids that hold what both hold."""
    if len(one) * len(other) > GRIDS_MAX:
        few, many = sorted((one, other), key=len)
        one, other = few, _one_grid(many)
    met = (tuple(map(_met_ranges, first, second)) for first in one for second in other)
    return _bounded([grid for grid in met if all(grid)])


def _joined(grids: list[Grid]) -> list[Grid]:
    """Return grids that hold what all hold; those that differ in one row key become one."""
    for index in range(len(grids[0]) if grids else 0):
        alike: dict[tuple[Ranges, ...], list[Ranges]] = {}
        for grid in grids:
            alike.setdefault(grid[:index] + grid[index + 1 :], []).append(grid[index])
        grids = [(*rest[:index], _union(some), *rest[index:]) for rest, some in alike.items()]
    return _bounded(_one_grid(grids) if len(grids) > GRIDS_MAX else grids)


def _union(each: list[Ranges]) -> Ranges:
    return each[0] if len(each) == 1 else _sorted(r for ranges in each for r in ranges)


def _one_grid(grids: list[Grid]) -> list[Grid]:
    """Return one grid of one box around some."""
    return [tuple(_hull(_union(list(some))) for some in zip(*grids, strict=True))]


def _bounded(grids: list[Grid]) -> list[Grid]:
    if sum(len(ranges) for grid in grids for ranges in grid) <= RANGES_MAX:
        return grids
    return [tuple(map(_hull, grid)) for grid in grids]


def _boxes_in(grids: list[Grid]) -> int:
    return sum(prod(map(len, grid)) for grid in grids)


def _boxes(grid: Grid) -> list[Box]:
    boxes: list[Box] = [()]
    for ranges in grid:
        boxes = [(*box, r) for box in boxes for r in ranges]
    return boxes


def _without_unlike(grids: list[Grid], fields: Sequence[Field]) -> list[Grid]:
    """Return grids whose boxes are ranges of whole keys, but for few boxes."""
    known = [_leading(grid, fields) for grid in grids]
    unlike = [g for g, end in zip(grids, known, strict=True) if any(r != _ALL for r in g[end:])]
    if _boxes_in(unlike) <= UNLIKE_BOXES_MAX:
        return grids
    rest = len(fields)
    return [g[:end] + (_ALL,) * (rest - end) for g, end in zip(grids, known, strict=True)]


def _leading(grid: Grid, fields: Sequence[Field]) -> int:
    """Return how many leading row keys make ranges of whole keys: single values, then one more."""
    for index, (field, ranges) in enumerate(zip(fields, grid, strict=True), 1):
        if all(r == _ALL for r in grid[index:]) or not all(is_one_value(field, r) for r in ranges):
            return index
    return len(fields)
