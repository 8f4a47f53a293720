"""Decides whether a predicate may keep any row of a group, from the smallest and largest values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

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
from lakebed.model.predicates.literals import Literal
from lakebed.model.predicates.patterns import pattern_of, text_above


class FieldBounds(msgspec.Struct, frozen=True):
    """The known bounds of a field's values in a group of rows.

    least, most: None is unknown; no value lies outside of them but NaN.
    may_be_null, may_have_values: whether such rows may be there.
    """

    least: Literal | None = None
    most: Literal | None = None
    may_be_null: bool = True
    may_have_values: bool = True


NOTHING_KNOWN = FieldBounds()
BoundsOf = Callable[[str], FieldBounds]


def may_keep(predicate: Predicate, bounds: BoundsOf) -> bool:
    """Return whether a checked predicate may be true for some row."""
    return _possible(predicate, bounds)[0]


def _possible(predicate: Predicate, bounds: BoundsOf) -> tuple[bool, bool]:
    """Return whether it may be true, and whether it may be false, for some row."""
    match predicate:
        case Compare(name, comparison, value):
            return _compared(comparison, value, bounds(name))
        case In(name, values):
            return _listed(values, bounds(name))
        case Like(name, pattern, escape):
            return _liked(pattern, escape, bounds(name))
        case IsNull(name) | IsNotNull(name):
            null, not_null = bounds(name).may_be_null, bounds(name).may_have_values
            return (null, not_null) if isinstance(predicate, IsNull) else (not_null, null)
        case And(parts):
            every = _of_all(parts, bounds)
            return all(true for true, _ in every), any(false for _, false in every)
        case Or(parts):
            every = _of_all(parts, bounds)
            return any(true for true, _ in every), all(false for _, false in every)
        case Not(part):
            true, false = _possible(part, bounds)
            return false, true


def _of_all(parts: Sequence[Predicate], bounds: BoundsOf) -> list[tuple[bool, bool]]:
    return [_possible(part, bounds) for part in parts]


def _listed(
    values: Sequence[Any],
    bounds: FieldBounds,
) -> tuple[bool, bool]:
    least: Any = bounds.least
    most: Any = bounds.most
    if not bounds.may_have_values or least is None or most is None:
        return bounds.may_have_values, bounds.may_have_values
    if least == most:
        found = [_compared("=", value, bounds) for value in values]
        return any(true for true, _ in found), all(false for _, false in found)
    return any(least <= value <= most for value in values), True


def _liked(pattern: str, escape: str | None, bounds: FieldBounds) -> tuple[bool, bool]:
    wanted = pattern_of(pattern, escape)
    if wanted.rest == "nothing":
        return _compared("=", wanted.prefix, bounds)
    least, most, above = bounds.least, bounds.most, text_above(wanted.prefix)
    if not bounds.may_have_values or not isinstance(least, str) or not isinstance(most, str):
        return bounds.may_have_values, bounds.may_have_values
    inside = most >= wanted.prefix and (above is None or least < above)
    only = least >= wanted.prefix and (above is None or most < above)
    return inside, not (only and wanted.rest == "anything")


def _compared(
    comparison: str,
    value: Any,  # noqa: ANN401 - a literal
    bounds: FieldBounds,
) -> tuple[bool, bool]:
    if not bounds.may_have_values:  # a comparison with null is neither
        return False, False
    least: Any = bounds.least
    most: Any = bounds.most
    if least is None or most is None:
        return True, True
    inside = least <= value <= most
    only = least == value == most
    possible = {
        "=": (inside, not only),
        "!=": (not only, inside),
        "<": (least < value, most >= value),
        "<=": (least <= value, most > value),
        ">": (most > value, least <= value),
        ">=": (most >= value, least < value),
    }
    true, false = possible[comparison]
    if isinstance(least, float):  # bounds leave NaN out, which is unequal to all and in no order
        return true or comparison == "!=", false or comparison != "!="
    return true, false
