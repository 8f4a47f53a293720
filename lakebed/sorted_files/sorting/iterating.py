"""A user's iterator over sorted rows, held to what it promises: the same columns, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakebed.errors import IteratorError
from lakebed.model.processing import IteratorUse
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.processing.iterators import IteratorGuard, load_iterator
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import check_keys, encode_row
from lakebed.sorted_files.sorting.ordering import is_sorted


def iterated(
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    use: IteratorUse,
    key_range: KeyRange = EVERYTHING,
) -> Iterator[pa.RecordBatch]:
    """Yield what an iterator makes of all columns of sorted rows. region: where its keys may lie.

    Raises:
        InvalidKeyError: keys that are null or too long. IteratorError: no installed package has it,
            it raises, or gives other columns, rows out of order, or keys outside of the region.
    """
    columns = arrow_schema(schema)
    guard = IteratorGuard(use.name)
    given = guard.iter_of(load_iterator(use, columns), batches)
    keys, last = schema.key_fields, b""
    while (batch := guard.next_of(given)) is not None:
        _check_columns(batch, columns, use.name)
        if not len(batch):
            continue
        check_keys(batch, keys)
        first = encode_row(batch, keys, 0)
        if last > first or not is_sorted([batch.column(field.name) for field in keys]):
            hint = "give rows in the order of row keys, then sort keys, as they came"
            raise IteratorError("an iterator gave rows out of order", iterator=use.name, hint=hint)
        last = encode_row(batch, keys, -1)
        if first < key_range.min or not key_range.contains(encode_row(batch, schema.row_keys, -1)):
            hint = "keep the row keys as they came"
            raise IteratorError(
                "an iterator gave row keys outside its range", iterator=use.name, hint=hint
            )
        yield pa.RecordBatch.from_arrays(batch.columns, schema=columns)


def _check_columns(batch: pa.RecordBatch, columns: pa.Schema, name: str) -> None:
    if (batch.schema.names, batch.schema.types) != (columns.names, columns.types):
        hint = "make batches with the schema that the entry point was called with"
        got = str(batch.schema)[:500]
        raise IteratorError("an iterator gave other columns", iterator=name, got=got, hint=hint)
    for column, values in zip(columns, batch.columns, strict=True):
        if values.null_count and not column.nullable:
            raise IteratorError(
                "an iterator gave null in a required field", iterator=name, field=column.name
            )
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        problem = str(error)
        raise IteratorError(
            "an iterator gave bytes that are not valid values", iterator=name, problem=problem
        ) from error
