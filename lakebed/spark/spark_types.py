"""Columns of tables as Spark has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lakebed.errors import InvalidError
from lakebed.user_files.signed_types import signed_type


def columns_for_spark(columns: pa.Schema) -> pa.Schema:
    """Return columns of a table with types that Spark has.

    Raises:
        InvalidError: it has none for a field's values.
    """
    for column in columns:
        if _has_time_of_day(column.type):
            hint = "leave it out: name the other columns"
            raise InvalidError(
                "Spark has no type for times of day",
                field=column.name,
                type=column.type,
                hint=hint,
            )
    return pa.schema([pa.field(c.name, signed_type(c.type), c.nullable) for c in columns])


def spark_schema(columns: pa.Schema) -> StructType:
    """Return what Spark calls columns that `columns_for_spark` gave."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def for_spark(batches: Iterable[pa.RecordBatch], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table as `columns_for_spark` has them."""
    for batch in batches:
        arrays = [
            array if array.type == column.type else array.cast(column.type)
            for array, column in zip(batch.columns, columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _has_time_of_day(type_: pa.DataType) -> bool:
    if pa.types.is_time(type_):
        return True
    if pa.types.is_map(type_):
        return _has_time_of_day(type_.key_type) or _has_time_of_day(type_.item_type)
    return any(_has_time_of_day(type_.field(i).type) for i in range(type_.num_fields))
