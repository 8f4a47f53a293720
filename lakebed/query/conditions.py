"""Makes a condition of the keys, ranges, columns and predicate that a user asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.model.predicates.key_boxes import BOXES_MAX, boxes_of, met_boxes
from lakebed.model.ranges import Box, box_of, box_of_key
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.sorted_files.reading.expressions.implied import conjuncts_of
from lakebed.sorted_files.reading.row_tests import RowTest, row_test


def condition_of(
    schema: Schema,
    *,
    keys: Sequence[object] | None = None,
    ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
    columns: Sequence[str] | str | None = None,
    where: object = None,
) -> Selection:
    """Return the condition that a user's keys, ranges, columns and predicate name. Rows in any of
    the keys and ranges match, if the predicate keeps them; what it says of row keys narrows what
    is read.

    Raises:
        InvalidError: an unknown field, a wrong type, reversed ends, too many ranges.
    """
    everything = keys is None and ranges is None
    boxes = (everything_of(schema),) if everything else _boxes(schema, keys, ranges)
    names = None if columns is None else _columns(schema, columns)
    test = None if where is None else row_test(where, schema)
    return Selection(boxes, names, test, _reach(schema, boxes, test))


def _boxes(
    schema: Schema,
    keys: Sequence[object] | None,
    ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None,
) -> tuple[Box, ...]:
    if isinstance(keys, (str, bytes, Mapping)):
        hint = "give a list of keys, for instance keys=[key]"
        raise InvalidError("keys are not a list", keys=type(keys).__name__, hint=hint)
    given = [ranges] if isinstance(ranges, Mapping) else list(ranges or ())
    if not all(isinstance(one, Mapping) for one in given):
        hint = 'give them by field, for instance ranges={"id": ("a", "b")}'
        raise InvalidError("not ranges of fields", ranges=given, hint=hint)
    boxes = [box_of_key(schema, key) for key in keys or ()]
    boxes += [box_of(schema, one) for one in given]
    if len(boxes) > BOXES_MAX:
        hint = "ask several queries"
        raise InvalidError(
            "too many keys and ranges in one query", got=len(boxes), max=BOXES_MAX, hint=hint
        )
    return tuple(boxes)


def _columns(schema: Schema, columns: Sequence[str] | str) -> tuple[str, ...]:
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise InvalidError("a query names at least one column", hint="leave columns out for all")
    for name in names:
        schema.field(name)
        if names.count(name) > 1:
            raise InvalidError("a column is asked for twice", field=name, hint="name it once")
    return names


def _reach(schema: Schema, boxes: Sequence[Box], test: RowTest | None) -> tuple[Box, ...] | None:
    """Return boxes that hold the rows of `boxes` which a test keeps; None: it says nothing of
    keys."""
    if test is None or test.implied is None:
        return None
    kept = boxes_of(test.implied, schema)
    return None if kept == (everything_of(schema),) else met_boxes(boxes, kept)


def without_range(schema: Schema, expression: pc.Expression) -> tuple[str, ...]:
    """Return the parts of an expression which all must hold and of which each says nothing of row
    keys, so that it spares no reading of leaves: as text for people."""
    everything = (everything_of(schema),)
    return tuple(
        text
        for text, implied in conjuncts_of(expression, schema)
        if implied is None or boxes_of(implied, schema) == everything
    )


def keys_only(schema: Schema, condition: Selection) -> Selection:
    """Return a condition on the same rows that gives the first row key alone: to count them."""
    return msgspec.structs.replace(condition, columns=(schema.row_keys[0].name,))


def everything_of(schema: Schema) -> Box:
    """Return the box that holds every key."""
    return box_of(schema, {})
