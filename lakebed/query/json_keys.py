"""Reads values of keys from JSON: dates, times, binary and large integers are texts."""

from __future__ import annotations

from lakebed.model.keys import KeyValue, key_value, key_value_from_text
from lakebed.model.schema import Field, Schema


def key_of_json(schema: Schema, key: object) -> object:
    """Return a key as queries take it: values by name, or the values of the first key fields.

    Raises:
        InvalidError: an unknown field, a value of another type.
    """
    if isinstance(key, dict):
        return {name: value_of_json(key_field(schema, name), value) for name, value in key.items()}
    values = key if isinstance(key, list) else [key]
    if len(values) > len(schema.row_keys):
        return tuple(values)  # refused as it is, in so many words
    return tuple(value_of_json(f, v) for f, v in zip(schema.row_keys, values, strict=False))


def key_field(schema: Schema, name: str) -> Field:
    """Return a row key by name. Raises: InvalidError: there is none of the name."""
    return schema.row_keys[schema.dimension_of(name)]


def value_of_json(field: Field, value: object) -> KeyValue:
    """Return a value of a key field. Raises: InvalidError: it is of another type."""
    return key_value_from_text(field, value) if isinstance(value, str) else key_value(field, value)
