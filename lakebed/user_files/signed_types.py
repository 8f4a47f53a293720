"""Columns for engines without unsigned integers, as Spark is one: wider signed ones, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakebed.errors import InvalidError
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.fitting_types import fits

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


def signed_type(type_: pa.DataType) -> pa.DataType:
    """Return a type of the same values without unsigned integers, also inside of it."""
    kinds = pa.types
    if type_ in _WIDER:
        return _WIDER[type_]
    if kinds.is_list(type_):
        return pa.list_(_signed_field(type_.value_field))
    if kinds.is_map(type_):
        return pa.map_(_signed_field(type_.key_field), _signed_field(type_.item_field))
    if kinds.is_struct(type_):
        return pa.struct([_signed_field(member) for member in type_])
    return type_


def unsigned_again(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield the same rows; columns of fields that hold unsigned integers, and came as
    `signed_type` has them, are narrowed.

    Raises:
        InvalidError: a value is out of the field's range.
    """
    wanted = {field.name: field.type for field in arrow_schema(schema)}
    narrow = {name: type_ for name, type_ in wanted.items() if signed_type(type_) != type_}
    for batch in batches:
        columns = [
            _narrowed(column, name, narrow[name]) if name in narrow else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _signed_field(field: pa.Field) -> pa.Field:
    return field.with_type(signed_type(field.type))


def _narrowed(column: pa.Array, name: str, wanted: pa.DataType) -> pa.Array:
    if fits(column.type, wanted) or not fits(column.type, signed_type(wanted)):
        return column  # it needs nothing, or it is refused where all are fitted
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        hint = "keep it within the field's range, or make the field int64"
        problem = str(error).splitlines()[0]
        raise InvalidError(
            "a value is out of the field's range",
            field=name,
            type=wanted,
            problem=problem,
            hint=hint,
        ) from error
