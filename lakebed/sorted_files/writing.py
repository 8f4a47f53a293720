"""Writing one file of sorted rows, streaming, in memory for one row group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.model.files import StoredFile, bounds_of
from lakebed.model.names import FileName
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import KEYS_MAX, Sample
from lakebed.model.schema import Field, Schema
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, RowsWritten
from lakebed.sorted_files.arrow_schema import arrow_schema
from lakebed.sorted_files.file_notes import Group, Notes, encode_notes
from lakebed.sorted_files.key_encoding import encode_keys, encode_row, search_many
from lakebed.sorted_files.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.ordering import is_sorted
from lakebed.sorted_files.row_groups import densest, row_groups
from lakebed.sorted_files.writer_options import writer_options

SINK_BYTES = 1024 * 1024
"""Arrow writes pages of some kilobytes: so many bytes of them are passed on together."""


def write_file(
    objects: ObjectStore,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    name: FileName,
    path: str,
    regions: Sequence[KeyRange],
) -> FileWritten | None:
    """Put one file of sorted rows, as `ports.sorted_files.SortedFiles.write` promises."""
    groups = iter(row_groups(batches))
    first = next(groups, None)
    if first is None:
        return None
    writer = objects.create(path)
    sink = ObjectSink(writer)
    try:
        file = _FileBeingWritten(schema, first, sink, regions)
        file.add(first)
        for group in groups:
            file.add(group)
        written = file.end(name)
        stored = written.file
        finish_object(objects, writer, path=path, size=stored.size, checksum=stored.checksum)
    except BaseException:
        sink.abandon()
        writer.abort()
        raise
    return written


class _FileBeingWritten:
    def __init__(
        self, schema: Schema, first: pa.Table, sink: ObjectSink, regions: Sequence[KeyRange]
    ) -> None:
        self._keys = schema.key_fields
        self._row_keys = schema.row_keys
        self._sink = sink
        options = writer_options(schema, first, densest(first))
        self._out = pa.BufferedOutputStream(pa.PythonFile(sink, mode="w"), SINK_BYTES)
        self._parquet = pq.ParquetWriter(self._out, arrow_schema(schema), **options)
        self._sampler = Sampler(self._row_keys)
        self._regions = RegionCounter(self._row_keys, regions)
        self._groups: list[Group] = []
        self._last = b""

    def add(self, group: pa.Table) -> None:
        """Write a row group."""
        for batch in group.to_batches():
            self._check_order(batch)
            self._sampler.add(batch)
            self._regions.add(batch)
        first = encode_row(group.slice(0, 1).to_batches()[0], self._row_keys, 0)
        self._groups.append(Group(first, densest(group)))
        self._guarded(lambda: self._parquet.write_table(group, row_group_size=len(group)))

    def end(self, name: FileName) -> FileWritten:
        """Write the tail. Returns what was written; the object is not finished yet."""
        self._guarded(self._out.flush)
        tail_offset = self._sink.begin_tail()
        sample = self._sampler.sample()
        last = self._regions.last
        blocks = tuple(self._sink.blocks)
        notes = Notes(sample, tuple(self._groups), last, blocks)
        self._parquet.add_key_value_metadata(encode_notes(notes))
        self._guarded(self._parquet.close)
        self._guarded(self._out.flush)
        tail_checksum = self._sink.end_tail()
        sink = self._sink
        file = StoredFile(name, sink.size, tail_offset, sink.checksum, tail_checksum)
        return FileWritten(file, self._regions.rows_written())

    def _guarded(self, write: Callable[[], object]) -> None:
        """Let the object writer's own errors through, whatever Arrow makes of them."""
        try:
            write()
        except Exception as error:
            if self._sink.problem is not None and error is not self._sink.problem:
                raise self._sink.problem from error
            raise

    def _check_order(self, batch: pa.RecordBatch) -> None:
        first = encode_row(batch, self._keys, 0)
        assert self._last <= first, "rows are not sorted: a batch begins below the last one's end"
        assert is_sorted([batch.column(f.name) for f in self._keys]), "rows are not sorted"
        self._last = encode_row(batch, self._keys, -1)


class Sampler:
    """Keeps every stride-th row key of a sorted stream, at most KEYS_MAX of them."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._keys: list[bytes] = []
        self._stride = 1
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows."""
        before, self._rows = self._rows, self._rows + len(batch)
        while -(-self._rows // self._stride) > KEYS_MAX:
            self._keys = self._keys[::2]
            self._stride *= 2
        # Not a range: Arrow looks for pandas each time that it is given a sequence.
        places = np.arange(-before % self._stride, len(batch), self._stride)
        if len(places):
            rows = batch.select([f.name for f in self._fields]).take(pa.array(places))
            keys = encode_keys(rows, self._fields)
            self._keys += keys.to_pylist()  # bounded: KEYS_MAX

    def sample(self) -> Sample:
        """Return the sample of all rows so far."""
        return Sample(tuple(self._keys), self._stride, self._rows)


class RegionCounter:
    """Counts the rows of a sorted stream in each of some ascending regions, which hold them all."""

    def __init__(self, fields: Sequence[Field], regions: Sequence[KeyRange]) -> None:
        self._fields = fields
        self._regions = regions
        self._rows = [0] * len(regions)
        self._firsts: list[bytes] = [b""] * len(regions)
        self._lasts: list[bytes] = [b""] * len(regions)
        self._place = 0
        self.last = b""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the next rows."""
        self.last = encode_row(batch, self._fields, -1)
        while len(batch):
            region = self._region_of(encode_row(batch, self._fields, 0))
            here = len(batch)
            if region.max is not None and self.last >= region.max:
                here = search_many(batch, self._fields, [region.max])[0]
            inside = batch.slice(0, here)
            if not self._rows[self._place]:
                self._firsts[self._place] = encode_row(inside, self._fields, 0)
            self._rows[self._place] += here
            self._lasts[self._place] = encode_row(inside, self._fields, -1)
            batch = batch.slice(here)

    def _region_of(self, key: bytes) -> KeyRange:
        while self._place < len(self._regions):
            region = self._regions[self._place]
            if region.max is None or key < region.max:
                assert region.min <= key, "a row lies in none of the regions"
                return region
            self._place += 1
        raise AssertionError("a row lies above all regions")

    def rows_written(self) -> tuple[RowsWritten | None, ...]:
        """Return for each region its rows and their bounds."""
        return tuple(
            RowsWritten(rows, bounds_of(first, last)) if rows else None
            for rows, first, last in zip(self._rows, self._firsts, self._lasts, strict=True)
        )
