"""Fits users' columns to a schema: what loses nothing is cast, the rest is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

import pyarrow as pa

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.changes.field_changes import fate_of
from lakebed.model.schema import Field, Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema, hint_for
from lakebed.sorted_files.format.fitting_types import fits
from lakebed.user_files.list_views import without_list_views
from lakebed.user_files.memory_errors import enough_memory
from lakebed.user_files.plain_sizes import pieces
from lakebed.user_files.zones import (
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
"""Prefix of pandas' name for an index without one."""
OR_DROP = "or say extra_columns='drop'"


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
