"""Fitting others' columns to a schema: what loses nothing is cast, the rest is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

import pyarrow as pa

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.field_changes import fate_of
from lakebed.model.schema import Field, Schema
from lakebed.sorted_files.arrow_schema import arrow_schema, hint_for, is_list
from lakebed.sorted_files.list_views import without_list_views
from lakebed.sorted_files.memory_errors import enough_memory
from lakebed.sorted_files.plain_sizes import pieces
from lakebed.sorted_files.zones import (
    CLOCK_CHANGE,
    IN_UTC,
    NO_ZONES,
    SAY_ZONE,
    Zones,
    has_no_offset,
    in_utc,
)

RowsT = TypeVar("RowsT", pa.RecordBatch, pa.Table)
PANDAS_INDEX = "__index_level_"
"""How pandas calls an index without a name."""
OR_DROP = "or say extra_columns='drop'"
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def conformed(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    *,
    extra_columns: Literal["refuse", "drop"] = "refuse",
    zones: Zones = NO_ZONES,
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows as `conform` returns, a few at a time where they become much larger: as
    dictionaries and views do.

    Raises:
        InvalidError: as `conform`; a value larger than 64 MiB.
        UnavailableError: there is not enough memory.
    """
    names = {field.name for field in schema.fields}
    row = 0
    for batch in batches:
        for part in pieces(batch, names, row=row, check=check_bytes):
            with enough_memory():
                fitted = conform(part, schema, extra_columns=extra_columns, zones=zones)
            yield fitted
        row += len(batch)


def conform(
    rows: RowsT,
    schema: Schema,
    *,
    extra_columns: Literal["refuse", "drop"] = "refuse",
    zones: Zones = NO_ZONES,
) -> RowsT:
    """Return the same rows as columns of the schema: in its order, with its types.

    A nullable column that is missing becomes null. Types are cast where no value can be lost:
    dictionaries, large and view layouts, wider integers, other units and zones of time. A date is
    its midnight. zones: of times without an offset, by field.

    Raises:
        InvalidError: an unknown or missing column, a type that does not fit, a value that would be
            lost, a null in a required field, text that is not UTF-8.
    """
    wanted = arrow_schema(schema)
    names = rows.schema.names
    _check_names(names, schema, drop=extra_columns == "drop")
    columns = []
    for field, column in zip(schema.fields, wanted, strict=True):
        if field.name in names:
            zone = zones.get(field.name)
            columns.append(_fitted(rows.column(field.name), field, column.type, zone))
        elif field.nullable:
            columns.append(pa.nulls(len(rows), column.type))
        else:
            hint = did_you_mean(field.name, names, what="column")
            raise InvalidError("a column is missing", field=field.name, hint=hint)
    return type(rows).from_arrays(columns, schema=wanted)


def check_bytes(column: pa.Array | pa.ChunkedArray, *, field: str) -> None:
    """Read all of a column as what it says it is; other code may crash on one that is not.

    Raises:
        InvalidError: offsets lead outside of it, text is not UTF-8, decimals are too long.
    """
    try:
        column.validate(full=True)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0]
        hint = "make it anew with the library that it comes from"
        if "UTF8" in problem:
            hint = "make the field binary, or mend the text"
        raise InvalidError(
            "a column's bytes are not what its type says",
            field=field,
            got=column.type,
            problem=problem,
            hint=hint,
        ) from error


def fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can become another without loss, at least where they are exact.

    Times of a finer unit fit when no value has a remainder, which only the values tell.
    """
    kinds = pa.types
    if got == wanted:
        return True
    if kinds.is_dictionary(got):
        return not kinds.is_nested(wanted) and fits(got.value_type, wanted)
    if kinds.is_string(wanted):
        return bool(kinds.is_large_string(got) or kinds.is_string_view(got))
    if kinds.is_binary(wanted):
        return bool(
            kinds.is_large_binary(got)
            or kinds.is_binary_view(got)
            or kinds.is_fixed_size_binary(got)
        )
    if kinds.is_timestamp(wanted):
        if kinds.is_date(got):  # its midnight, where no zone must be known for that
            return wanted.tz is None
        return bool(kinds.is_timestamp(got) and (got.tz is None) == (wanted.tz is None))
    if kinds.is_nested(wanted):
        return _nested_fits(got, wanted)
    return _number_fits(got, wanted)


def _number_fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_integer(wanted) and kinds.is_integer(got):
        if kinds.is_signed_integer(wanted):
            signed = kinds.is_signed_integer(got)
            return bool(got.bit_width + (0 if signed else 1) <= wanted.bit_width)
        return bool(kinds.is_unsigned_integer(got) and got.bit_width <= wanted.bit_width)
    if kinds.is_float64(wanted):
        return bool(kinds.is_float32(got))
    if kinds.is_decimal(wanted):
        whole = wanted.precision - wanted.scale
        if kinds.is_integer(got):
            return bool(_INTEGER_DIGITS[got.bit_width] <= whole)
        return bool(
            kinds.is_decimal(got)
            and got.scale <= wanted.scale
            and got.precision - got.scale <= whole
        )
    if kinds.is_date32(wanted):
        return bool(kinds.is_date64(got))
    return bool(kinds.is_time64(wanted) and kinds.is_time(got))


def _nested_fits(got: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_map(wanted):
        return bool(
            kinds.is_map(got)
            and fits(got.key_type, wanted.key_type)
            and fits(got.item_type, wanted.item_type)
        )
    if kinds.is_struct(wanted):
        members = {member.name: member.type for member in wanted}
        return bool(
            kinds.is_struct(got)
            and len({member.name for member in got}) == got.num_fields
            and all(m.name in members and fits(m.type, members[m.name]) for m in got)
        )
    return is_list(got) and fits(got.value_type, wanted.value_type)


def _check_names(names: list[str], schema: Schema, *, drop: bool) -> None:
    known = {field.name for field in schema.fields}
    for name in names:
        if name not in known and not drop:
            hint = f"{schema.hint_for(name)} {OR_DROP}"
            if name.startswith(PANDAS_INDEX):
                hint = "it is the index of a DataFrame: give df.reset_index(drop=True)"
            raise InvalidError("unknown column", field=name, hint=hint)
        if name not in known and (now := fate_of(name, schema.past)) and now not in names:
            hint = schema.hint_for(name)  # to drop it would lose values that have a place
            raise InvalidError("a column has its field's old name", field=name, hint=hint)
        if name in known and names.count(name) > 1:
            hint = "keep one of them"
            raise InvalidError("two columns have one name", field=name, hint=hint)


def _fitted(
    column: pa.Array | pa.ChunkedArray, field: Field, wanted: pa.DataType, zone: str | None
) -> pa.Array | pa.ChunkedArray:
    got = column.type
    if pa.types.is_null(got):
        if not field.nullable and len(column):
            _refuse_nulls(field, len(column))
        return pa.nulls(len(column), wanted)
    is_zoned = zone is not None and wanted == IN_UTC and has_no_offset(got)
    if not is_zoned and not fits(got, wanted):
        raise InvalidError(
            "a column's type does not fit",
            field=field.name,
            wanted=field.type,
            got=got,
            hint=_hint(got, wanted),
        )
    check_bytes(column, field=field.name)  # before anything reads it, a count of nulls too
    try:
        if zone is not None and is_zoned:
            cast = in_utc(column, zone)
        else:
            cast = column if got == wanted else _cast(column, wanted)
    except (MemoryError, pa.ArrowCapacityError):
        raise
    except pa.ArrowException as error:
        problem = str(error).splitlines()[0]
        hint = "cast it yourself if the loss is meant"
        if is_zoned and " in timezone " in problem:
            hint = CLOCK_CHANGE
        raise InvalidError(
            "a column holds values that do not fit",
            field=field.name,
            wanted=field.type,
            got=got,
            problem=problem,
            hint=hint,
        ) from error
    except InvalidError as error:
        error.facts = {"field": field.name, **error.facts}
        raise
    if not field.nullable and cast.null_count:
        _refuse_nulls(field, cast.null_count)
    return cast


def _cast(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    cast = without_list_views(column).cast(wanted, safe=True)
    if pa.types.is_nested(wanted):
        cast.validate(full=True)  # Arrow's casts of nested columns have made broken ones
    return cast


def _refuse_nulls(field: Field, nulls: int) -> None:
    raise InvalidError(
        "a required field holds nulls",
        field=field.name,
        wanted=field.type,
        nulls=nulls,
        hint="leave these rows out, fill them in, or make the field a nullable value",
    )


def _hint(got: pa.DataType, wanted: pa.DataType) -> str:
    kinds = pa.types
    if has_no_offset(got) and wanted == IN_UTC:
        return SAY_ZONE
    if kinds.is_timestamp(got) and kinds.is_timestamp(wanted):
        return "the times have an offset: make the field 'timestamp[us, UTC]'"
    if kinds.is_integer(got) and kinds.is_integer(wanted) and not kinds.is_uint64(got):
        return f"not every {got} is an {wanted}: cast the column first, or make the field wider"
    if kinds.is_floating(got) and kinds.is_integer(wanted):
        return f"cast the column to {wanted} first; in pandas: df[NAME].astype('Int64')"
    if kinds.is_duration(got) and kinds.is_integer(wanted):
        return f"cast it to {wanted} first, and put the unit, {got.unit}, into the field's name"
    if kinds.is_nested(wanted) and kinds.is_nested(got):
        return f"it is stored as {wanted}"
    return hint_for(got) or f"cast the column to {wanted} first"
