"""Columns as Arrow's parser of JSON gives them, and as the types that they stand for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import UnreadableInputError
from lakebed.model.types import ListOf, MapOf, StructOf, Type
from lakebed.sorted_files.format.arrow_schema import arrow_type
from lakebed.user_files.csv_and_parquet import from_base64
from lakebed.user_files.decimals import decimals_from_text
from lakebed.user_files.json_rewriting import ENTRY_KEY, ENTRY_VALUE, LINE_HINT
from lakebed.user_files.zones import IN_UTC, texts_in_utc


def json_type(type_: Type) -> pa.DataType:
    """Return the type as which Arrow parses it."""
    match type_:
        case ListOf(element):
            return pa.list_(json_type(element))
        case MapOf(key, value):
            entry = [(ENTRY_KEY, json_type(key)), (ENTRY_VALUE, json_type(value))]
            return pa.list_(pa.struct(entry))
        case StructOf(members):
            return pa.struct([(member.name, json_type(member.type)) for member in members])
        case _:
            arrow = arrow_type(type_)
            as_is = pa.types.is_boolean(arrow) or pa.types.is_integer(arrow)
            return arrow if as_is or pa.types.is_floating(arrow) else pa.string()


def converted(column: pa.Array, type_: Type, name: str, zone: str | None) -> pa.Array:
    """Return what was parsed as the type it stands for. It begins at its buffers' beginning.
    zone: of times without an offset."""
    match type_:
        case ListOf(element):
            values = converted(column.values, element, name, zone)
            return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null())
        case MapOf(key, value):
            entries = column.values
            keys = converted(entries.field(0), key, name, zone)
            items = converted(entries.field(1), value, name, zone)
            if keys.null_count:
                raise UnreadableInputError("a key of a map is null", field=name, hint=LINE_HINT)
            return pa.MapArray.from_arrays(column.offsets, keys, items, mask=column.is_null())
        case StructOf(members):
            parts = [
                converted(column.field(index), member.type, name, zone)
                for index, member in enumerate(members)
            ]
            names = [member.name for member in members]
            return pa.StructArray.from_arrays(parts, names, mask=column.is_null())
    wanted = arrow_type(type_)
    if pa.types.is_binary(wanted):
        return from_base64(column, name)
    if pa.types.is_time64(wanted):  # Arrow casts no text to a time of day
        moments = pc.binary_join_element_wise("1970-01-01T", column, "")
        return moments.cast(pa.timestamp("us")).cast(wanted)
    if zone is not None and wanted == IN_UTC:
        return texts_in_utc(column, zone)
    if pa.types.is_decimal(wanted):
        return decimals_from_text(column, wanted)
    return column if column.type == wanted else column.cast(wanted)
