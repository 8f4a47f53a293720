"""Reads the condition of a query message, in the words of a table's schema."""

from __future__ import annotations

from lakebed.config.messages import QueryMessage, RangeOfMessage, predicate_in
from lakebed.model.ranges import Range
from lakebed.model.schema import Field, Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from lakebed.query.json_keys import key_field, key_of_json, value_of_json


def condition_in(asked: QueryMessage, schema: Schema) -> Selection | None:
    """Return the condition of a message. Raises: InvalidError, as `condition_of`."""
    keys = None if asked.keys is None else [key_of_json(schema, key) for key in asked.keys]
    ranges = None
    if asked.ranges is not None:
        ranges = [
            {name: _range(key_field(schema, name), r) for name, r in box.items()}
            for box in asked.ranges
        ]
    where = None if asked.where is None else predicate_in(asked.where)
    return condition_of(schema, keys=keys, ranges=ranges, columns=asked.columns, where=where)


def _range(field: Field, r: RangeOfMessage) -> Range:
    least, most = (None if end is None else value_of_json(field, end) for end in (r.min, r.max))
    return Range(least, most, r.min_inclusive, r.max_inclusive)
