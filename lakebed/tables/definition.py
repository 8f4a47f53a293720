"""A table's definition: all that makes an empty table like it, as JSON values that people keep and
edit. Not its name, nor its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.errors import InvalidError, NewerFormatError, did_you_mean
from lakebed.model.keys import KeyValue, key_value_from_text, key_value_text
from lakebed.model.partitions import split_points_in
from lakebed.model.processing import Processing, processing_from_json, processing_json
from lakebed.model.schema import Schema, schema_from_json, schema_json
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.state import TableState

FORMAT = 1
_PARTS = ("format", "schema", "split_points", "settings", "processing")


class Definition(msgspec.Struct, frozen=True):
    """The definition of a table, as `create` takes it.

    settings: those that are not the default.
    """

    schema: Schema
    split_points: Sequence[tuple[KeyValue, ...]] = ()
    settings: Mapping[str, Any] = {}
    processing: Processing | None = None


def definition_of(table: OpenTable) -> dict[str, Any]:
    """Return a table's definition, as `definition_from_json` reads it."""
    with table.head.reading() as state:
        return definition_in(state)


def definition_in(state: TableState) -> dict[str, Any]:
    """Return the definition of a version of a table. Raises: TableMissingError: it was dropped."""
    state.require_table()
    schema, processing = state.schema(), state.processing()
    points = split_points_in(state.tree(), schema)
    settings, usual = msgspec.to_builtins(state.settings()), msgspec.to_builtins(TableSettings())
    fresh = Schema(row_keys=schema.row_keys, sort_keys=schema.sort_keys, values=schema.values)
    return {
        "format": FORMAT,
        "schema": schema_json(fresh),
        "split_points": [point_json(schema, point) for point in points],
        "settings": {name: value for name, value in settings.items() if value != usual[name]},
        "processing": None if processing is None else processing_json(processing, schema),
    }


def definition_from_json(value: object) -> Definition:
    """Return the definition that JSON values describe; all parts but the schema may be missing.

    Raises:
        InvalidError: something is not allowed; the error names it.
        NewerFormatError: a newer Lakebed wrote it.
    """
    if not isinstance(value, Mapping) or "schema" not in value:
        hint = "it is what `lakebed table describe NAME --definition` writes"
        raise InvalidError("not the definition of a table", hint=hint)
    if value.get("format", FORMAT) != FORMAT:
        raise NewerFormatError("unknown format of a definition", format=value["format"])
    for name in value:
        if name not in _PARTS:
            hint = did_you_mean(str(name), _PARTS, what="part")
            raise InvalidError("unknown part of a definition", part=name, hint=hint)
    points, settings = value.get("split_points", []), value.get("settings", {})
    if not isinstance(points, list) or not isinstance(settings, Mapping):
        hint = 'for instance {"split_points": ["g", ["p", 7]], "settings": {"leaf_rows_max": 1000}}'
        raise InvalidError("split points are a list, settings are named", hint=hint)
    schema = schema_from_json(value["schema"])
    given = value.get("processing")
    processing = None if given is None else processing_from_json(given)
    found = [point_from_json(schema, point) for point in points]
    return Definition(schema, found, dict(settings), processing)


def point_json(schema: Schema, point: KeyValue | tuple[KeyValue, ...]) -> object:
    """Return a split point as JSON values, as `point_from_json` reads it."""
    values = point if isinstance(point, tuple) else (point,)
    texts: list[object] = [
        value if str(field.type).startswith("int") else key_value_text(field, value)
        for field, value in zip(schema.row_keys, values, strict=False)
    ]
    return texts[0] if len(texts) == 1 else texts


def point_from_json(schema: Schema, value: object) -> tuple[KeyValue, ...]:
    """Return the split point that JSON values say: a value of the first row key, or a list of the
    first ones. Raises: InvalidError: it is none."""
    several = value if isinstance(value, list) else [value]
    if not 0 < len(several) <= len(schema.row_keys):
        names = ", ".join(field.name for field in schema.row_keys)
        hint = "give a value of the first row key, or a list of the first ones"
        raise InvalidError("not a split point", row_keys=names, got=len(several), hint=hint)
    return tuple(
        key_value_from_text(field, str(one))
        for field, one in zip(schema.row_keys, several, strict=False)
    )
