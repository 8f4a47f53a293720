"""Schemas and types as Arrow's, and back."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.schema import Field, Schema, nullable_by_mark, schema_from_json
from lakebed.model.types import (
    Decimal,
    ListOf,
    MapOf,
    Primitive,
    StructMember,
    StructOf,
    Type,
    part_numbers,
)

FIELD_ID = b"PARQUET:field_id"
LEVELS_MAX = 64
"""Most levels of a nested type: Arrow's own readers follow as many."""

PRIMITIVES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32": pa.date32(),
    "time64[us]": pa.time64("us"),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[us, UTC]": pa.timestamp("us", tz="UTC"),
}
_NAMES = {arrow: name for name, arrow in PRIMITIVES.items()}
_NO_TYPE = {
    "uint64": "cast it to int64 or decimal128(20,0)",
    "halffloat": "cast it to float32",
    "duration": "cast it to int64 and put the unit into the field's name",
    "month_interval": "cast it to int64 and put the unit into the field's name",
    "month_day_nano_interval": "cast it to int64 and put the unit into the field's name",
    "null": "cast it to the type its values will have",
    "extension": "cast it to its storage type",
}


def arrow_type(type_: Type, numbers: Iterator[int] | None = None) -> pa.DataType:
    """Return the Arrow type that holds values of a type. numbers: of its parts, as `part_numbers`
    gives them; None: they have none."""
    ids = iter(()) if numbers is None else numbers
    match type_:
        case Primitive(name):
            return PRIMITIVES[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case ListOf(element):
            number = _field_id(next(ids, None))
            return pa.list_(pa.field("element", arrow_type(element, ids), metadata=number))
        case MapOf(key, value):
            of_key, of_value = _field_id(next(ids, None)), _field_id(next(ids, None))
            keys = pa.field("key", arrow_type(key), nullable=False, metadata=of_key)
            return pa.map_(keys, pa.field("value", arrow_type(value, ids), metadata=of_value))
        case StructOf(members):
            return pa.struct([arrow_field(member) for member in members])


def arrow_field(field: Field | StructMember) -> pa.Field:
    """Return a column, or a member of a struct, with its number as Parquet's field_id; elements,
    keys and values inside of it have theirs, too."""
    nullable = field.nullable if isinstance(field, Field) else True
    type_ = arrow_type(field.type, part_numbers(field.number))
    return pa.field(field.name, type_, nullable, metadata=_field_id(field.number))


def _field_id(number: int | None) -> dict[bytes, bytes] | None:
    return None if number is None else {FIELD_ID: b"%d" % number}


@functools.lru_cache(maxsize=256)
def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a table, in order, with field ids and nullability."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def schema_from_arrow(
    columns: pa.Schema,
    *,
    row_keys: Sequence[str],
    sort_keys: Sequence[str] = (),
    types: Mapping[str, object] | None = None,
) -> Schema:
    """Return the schema of a table that holds rows of these columns; numbers are given anew.

    Types that `casting` casts without loss are taken as what they are cast to. Keys become
    required, whatever the columns say: most writers make every column optional.

    types: of columns that are to have another one than they have, as `schema_of` takes them:
        `{"at": "timestamp[us, UTC]", "fare": "float64?"}`.

    Raises:
        InvalidError: a key or a name in `types` that is no column, or a type that cannot be held.
    """
    keys = [*row_keys, *sort_keys]
    others = types or {}
    for name in (*keys, *others):
        if name not in columns.names:
            hint = did_you_mean(name, columns.names, what="column")
            problem = "a key is not" if name in keys else "a field with a type is not"
            raise InvalidError(f"{problem} among the columns", field=name, hint=hint)
    by_name = {column.name: column for column in columns}

    def part(names: Sequence[str], *, key: bool) -> list[dict[str, object]]:
        return [
            nullable_by_mark(name, others[name])
            if name in others
            else {"name": name, "type": _text_form(by_name[name].type, name)}
            | ({"nullable": True} if by_name[name].nullable and not key else {})
            for name in names
        ]

    return schema_from_json(
        {
            "row_keys": part(row_keys, key=True),
            "sort_keys": part(sort_keys, key=True),
            "values": part([name for name in columns.names if name not in keys], key=False),
        }
    )


def _text_form(arrow: pa.DataType, field: str, levels: int = LEVELS_MAX) -> object:
    """Return the text form that `model.types.type_of` reads."""
    if levels < 0:
        hint = "keep what is inside as JSON text"
        raise InvalidError("a type is nested too deep", field=field, hint=hint)
    kinds = pa.types
    if arrow in _NAMES:
        return _NAMES[arrow]
    if kinds.is_dictionary(arrow):
        return _text_form(arrow.value_type, field, levels - 1)
    if kinds.is_large_string(arrow) or kinds.is_string_view(arrow):
        return "string"
    if kinds.is_large_binary(arrow) or kinds.is_binary_view(arrow):
        return "binary"
    if kinds.is_fixed_size_binary(arrow):
        return "binary"
    if kinds.is_timestamp(arrow):
        return "timestamp[us, UTC]" if arrow.tz else "timestamp[us]"
    if kinds.is_date64(arrow):
        return "date32"
    if kinds.is_time(arrow):
        return "time64[us]"
    if kinds.is_decimal(arrow) and arrow.precision <= 38 and arrow.scale >= 0:
        return f"decimal128({arrow.precision},{arrow.scale})"
    return _nested_text_form(arrow, field, levels)


def _nested_text_form(arrow: pa.DataType, field: str, levels: int) -> object:
    kinds = pa.types
    if is_list(arrow):
        return {"list": _text_form(arrow.value_type, field, levels - 1)}
    if kinds.is_map(arrow):
        return {
            "map": [
                _text_form(arrow.key_type, field, levels - 1),
                _text_form(arrow.item_type, field, levels - 1),
            ]
        }
    if kinds.is_struct(arrow) and arrow.num_fields:
        return {
            "struct": [
                {"name": m.name, "type": _text_form(m.type, field, levels - 1)} for m in arrow
            ]
        }
    hint = hint_for(arrow) or "cast it to one of the types that `lakebed explain types` lists"
    if kinds.is_decimal(arrow):
        hint = "cast it to decimal128 with a precision up to 38 and a scale of 0 or more"
    raise InvalidError("no type holds this", field=field, type=arrow, hint=hint)


def is_list(arrow: pa.DataType) -> bool:
    """Return whether a type is a list of any layout."""
    kinds = pa.types
    return bool(
        kinds.is_list(arrow)
        or kinds.is_large_list(arrow)
        or kinds.is_fixed_size_list(arrow)
        or kinds.is_list_view(arrow)
        or kinds.is_large_list_view(arrow)
    )


def hint_for(arrow: pa.DataType) -> str | None:
    """Return what to do with a type that is never held, if it is one."""
    name = str(arrow).split("[", 1)[0].split("<", 1)[0].split("(", 1)[0]
    name = "extension" if isinstance(arrow, pa.BaseExtensionType) else name
    return _NO_TYPE.get(name)
