"""What a query message asks for, in the words of a table's schema."""

from __future__ import annotations

from lakebed.config.messages import QueryMessage, RangeOfMessage, predicate_in
from lakebed.model.keys import KeyValue, key_value, key_value_from_text
from lakebed.model.ranges import Range
from lakebed.model.schema import Field, Schema
from lakebed.ports.sorted_files import Selection
from lakebed.query.run_query import condition_of


def condition_in(asked: QueryMessage, schema: Schema) -> Selection | None:
    """Return the condition of a message. Raises: InvalidError, as `condition_of`."""
    keys = None if asked.keys is None else [_key(schema, key) for key in asked.keys]
    ranges = None
    if asked.ranges is not None:
        ranges = [
            {name: _range(_key_field(schema, name), r) for name, r in box.items()}
            for box in asked.ranges
        ]
    where = None if asked.where is None else predicate_in(asked.where)
    return condition_of(schema, keys=keys, ranges=ranges, columns=asked.columns, where=where)


def _key(schema: Schema, key: object) -> object:
    if isinstance(key, dict):
        return {name: _value(_key_field(schema, name), value) for name, value in key.items()}
    values = key if isinstance(key, list) else [key]
    if len(values) > len(schema.row_keys):
        return tuple(values)  # refused as it is, in so many words
    return tuple(_value(f, value) for f, value in zip(schema.row_keys, values, strict=False))


def _key_field(schema: Schema, name: str) -> Field:
    return schema.row_keys[schema.dimension_of(name)]


def _value(field: Field, value: object) -> KeyValue:
    """Return a value as JSON has it: dates, times, binary and large integers are texts."""
    return key_value_from_text(field, value) if isinstance(value, str) else key_value(field, value)


def _range(field: Field, r: RangeOfMessage) -> Range:
    least, most = (None if end is None else _value(field, end) for end in (r.min, r.max))
    return Range(least, most, r.min_inclusive, r.max_inclusive)
