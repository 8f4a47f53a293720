"""Filters that Spark hands over (from 4.1 on), as predicates on key fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lakebed.errors import InvalidError
from lakebed.model.predicates.language import Compare, In, Predicate, checked_predicate
from lakebed.model.schema import Schema

_COMPARISONS: dict[str, Any] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


def taken_over(filters: Iterable[Any], schema: Schema) -> Iterator[tuple[Any, Predicate | None]]:
    """Yield each filter with the predicate that says the same; None: Spark applies it.

    filters: of `pyspark.sql.datasource`.
    """
    keys = {field.name for field in schema.row_keys}
    for one in filters:
        yield one, _predicate(one, keys, schema)


def _predicate(
    given: Any,  # noqa: ANN401 - Spark ships no types
    keys: set[str],
    schema: Schema,
) -> Predicate | None:
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in keys:
        return None
    kind, field = type(given).__name__, attribute[0]
    try:
        if kind in _COMPARISONS:
            return checked_predicate(Compare(field, _COMPARISONS[kind], given.value), schema)
        if kind == "In":
            return checked_predicate(In(field, tuple(given.value)), schema)
    except InvalidError:  # of another type, or null: Spark knows what it means
        return None
    return None
