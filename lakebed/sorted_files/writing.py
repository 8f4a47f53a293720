"""Writing one file of sorted rows, streaming, in memory for one row group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lakebed.model.files import StoredFile, bounds_of
from lakebed.model.names import FileName
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import KEYS_MAX, Sample
from lakebed.model.schema import Field, Schema
from lakebed.parquet_bytes.assembling import Assembly
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, RowsWritten
from lakebed.sorted_files.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.file_notes import Group, Notes, encode_notes
from lakebed.sorted_files.key_encoding import encode_keys, encode_row, search_many
from lakebed.sorted_files.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.ordering import is_sorted
from lakebed.sorted_files.page_checksums import page_checksums
from lakebed.sorted_files.row_groups import densest, row_groups


def write_file(
    objects: ObjectStore,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    name: FileName,
    path: str,
    regions: Sequence[KeyRange],
    compiled: bool,
) -> FileWritten | None:
    """Put one file of sorted rows, as `ports.sorted_files.SortedFiles.write` promises. compiled:
    whether kernels encode it."""
    groups = iter(row_groups(batches))
    first = next(groups, None)
    if first is None:
        return None
    writer = objects.create(path)
    try:
        encoder = RowGroupEncoder(schema, first, compiled=compiled)
        file = _FileBeingWritten(schema, encoder, ObjectSink(writer), regions)
        file.add(first)
        for group in groups:
            file.add(group)
        written = file.end(name)
        stored = written.file
        finish_object(objects, writer, path=path, size=stored.size, checksum=stored.checksum)
    except BaseException:
        writer.abort()
        raise
    return written


class _FileBeingWritten:
    def __init__(
        self,
        schema: Schema,
        encoder: RowGroupEncoder,
        sink: ObjectSink,
        regions: Sequence[KeyRange],
    ) -> None:
        self._keys = schema.key_fields
        self._row_keys = schema.row_keys
        self._sink = sink
        self._encoder = encoder
        self._assembly = Assembly(encoder.template, sink.write, sorted_by=len(self._keys))
        self._sampler = Sampler(self._row_keys)
        self._regions = RegionCounter(self._row_keys, regions)
        self._groups: list[Group] = []
        self._pages: list[bytes] = []
        self._last = b""

    def add(self, group: pa.Table) -> None:
        """Write a row group."""
        for batch in group.to_batches():
            self._check_order(batch)
            self._sampler.add(batch)
            self._regions.add(batch)
        first = encode_row(group.slice(0, 1).to_batches()[0], self._row_keys, 0)
        row_bytes = densest(group)
        self._groups.append(Group(first, row_bytes))
        encoded = self._encoder.encode(group, row_bytes)
        self._pages.append(page_checksums(encoded))
        self._assembly.add(encoded)

    def end(self, name: FileName) -> FileWritten:
        """Write the tail. Returns what was written; the object is not finished yet."""
        sink = self._sink
        tail_offset = sink.begin_tail()
        blocks = tuple(sink.blocks)
        notes = Notes(
            sample=self._sampler.sample(),
            groups=tuple(self._groups),
            last=self._regions.last,
            blocks=blocks,
            pages=tuple(self._pages),
        )
        self._assembly.end(encode_notes(notes))
        tail_checksum = sink.end_tail()
        file = StoredFile(name, sink.size, tail_offset, sink.checksum, tail_checksum)
        return FileWritten(file, self._regions.rows_written())

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
