"""Measures what a file really holds, row by row: for inspection, which believes no note and no
reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import Sample
from lakebed.model.schema import Field, Schema
from lakebed.ports.sorted_files import RowsWritten
from lakebed.sorted_files.format.file_notes import Notes
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.sorting.ordering import is_sorted
from lakebed.sorted_files.writing.file_writing import KeyRangeCounter, Sampler


def measured(
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    notes: Notes,
    *,
    path: str,
    key_ranges: Sequence[KeyRange],
) -> tuple[RowsWritten | None, ...]:
    """Return the rows of each region and their bounds. regions: ascending, hold every row.

    batches: all rows of the file, as they stand in it.

    Raises:
        CorruptError: rows are out of order, or the file's notes have other keys.
    """
    counter = KeyRangeCounter(schema.row_keys, key_ranges)
    sampler = Sampler(schema.row_keys)
    near = _Neighbours(schema.row_keys, notes.sample)
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
        near.add(batch)
    noted, stride, rows = notes.sample, sampler.stride, sampler.rows
    known = (noted.stride, noted.rows, len(noted.keys)) == (stride, rows, -(-rows // stride))
    fits = near.fits(noted) if noted.slack and known else noted == sampler.sample()
    if not fits:
        raise CorruptError("a file's sample is not of its rows", path=path)
    if counter.last != notes.last or notes.row_groups[0].first != notes.sample.keys[0]:
        raise CorruptError("a file's notes contradict the keys of its rows", path=path)
    return counter.rows_written()


class _Neighbours:
    """The rows between which a sampled key must lie, where it may stand beside its index."""

    def __init__(self, fields: Sequence[Field], sample: Sample) -> None:
        self._fields = fields
        self._rows = 0
        indices = range(0, len(sample.keys) * sample.stride, sample.stride) if sample.slack else ()
        self._lows = [max(0, index - sample.slack) for index in indices]
        self._highs = [min(sample.rows - 1, index + sample.slack) for index in indices]
        self._indices = sorted({*self._lows, *self._highs})
        self._keys: dict[int, bytes] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows."""
        before, self._rows = self._rows, self._rows + len(batch)
        first, last = (bisect_left(self._indices, row) for row in (before, self._rows))
        for index in self._indices[first:last]:
            self._keys[index] = encode_row(batch, self._fields, index - before)

    def fits(self, sample: Sample) -> bool:
        """Return whether every key lies where the sample says."""
        return all(
            self._keys[low] <= key <= self._keys[high]
            for key, low, high in zip(sample.keys, self._lows, self._highs, strict=True)
        )
