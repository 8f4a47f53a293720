"""What a file really holds, row by row: for inspection, which believes no note and no reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import RowsWritten
from lakebed.sorted_files.file_notes import Notes
from lakebed.sorted_files.key_encoding import encode_row
from lakebed.sorted_files.ordering import is_sorted
from lakebed.sorted_files.writing import RegionCounter, Sampler


def measured(
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    notes: Notes,
    *,
    path: str,
    regions: Sequence[KeyRange],
) -> tuple[RowsWritten | None, ...]:
    """Return the rows of each region and their bounds. regions: ascending, hold every row.

    batches: all rows of the file, as they stand in it.

    Raises:
        CorruptError: rows are out of order, or the file's notes tell other keys.
    """
    counter = RegionCounter(schema.row_keys, regions)
    sampler = Sampler(schema.row_keys)
    last: bytes | None = None
    for batch in batches:
        if not len(batch):
            continue
        first = encode_row(batch, schema.key_fields, 0)
        if (last is not None and first < last) or not is_sorted(
            [batch.column(field.name) for field in schema.key_fields]
        ):
            raise CorruptError("a file's rows are out of order", path=path)
        last = encode_row(batch, schema.key_fields, -1)
        counter.add(batch)
        sampler.add(batch)
    if sampler.sample() != notes.sample:
        raise CorruptError("a file's sample is not of its rows", path=path)
    if counter.last != notes.last or notes.groups[0].first != notes.sample.keys[0]:
        raise CorruptError("a file's notes tell other keys than its rows", path=path)
    return counter.rows_written()
