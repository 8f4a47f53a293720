"""Writing one file of sorted rows, streaming, in memory for one row group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakebed.model.files import StoredFile, bounds_of
from lakebed.model.names import FileName
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import KEYS_MAX, Sample
from lakebed.model.schema import Field, Schema
from lakebed.parquet_bytes.assembling import Assembly
from lakebed.parquet_bytes.encoded import EncodedRowGroup
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, RowsWritten
from lakebed.processing.value_order import index_array
from lakebed.sorted_files.format.file_notes import Notes, RowGroupNote, encode_notes
from lakebed.sorted_files.format.key_encoding import encode_keys, encode_row, search_many
from lakebed.sorted_files.format.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.format.row_groups import densest, row_group_tables
from lakebed.sorted_files.sorting.ordering import is_sorted
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.writing.page_checksums import page_checksums
from lakebed.sorted_files.writing.stored_row_group import Known, StoredRowGroup

Content: TypeAlias = pa.RecordBatch | StoredRowGroup


def write_file(
    objects: ObjectStore,
    schema: Schema,
    contents: Iterable[Content],
    *,
    name: FileName,
    path: str,
    key_ranges: Sequence[KeyRange],
    encoder: RowGroupEncoder,
) -> FileWritten | None:
    """Put one file of sorted rows, as `ports.sorted_files.SortedFiles.write` promises.

    contents: row groups that are copied need one key range; they stay as they are.
    encoder: of the rest.
    """
    row_groups = iter(_row_groups(contents))
    first = next(row_groups, None)
    if first is None:
        return None
    writer = objects.create(path)
    try:
        file = _FileBeingWritten(schema, ObjectSink(writer), key_ranges, encoder)
        file.add(first)
        del first
        for row_group in row_groups:
            file.add(row_group)
            del row_group  # not held while the next one is made
        written = file.end(name)
        stored = written.file
        finish_object(objects, writer, path=path, size=stored.size, checksum=stored.checksum)
    except BaseException:
        writer.abort()
        raise
    return written


def _row_groups(contents: Iterable[Content]) -> Iterator[pa.Table | StoredRowGroup]:
    """Yield what becomes a row group, one after the other."""
    for is_stored, items in groupby(contents, lambda item: isinstance(item, StoredRowGroup)):
        if is_stored:
            yield from items
        else:
            yield from row_group_tables(items)


class _FileBeingWritten:
    def __init__(
        self,
        schema: Schema,
        sink: ObjectSink,
        key_ranges: Sequence[KeyRange],
        encoder: RowGroupEncoder,
    ) -> None:
        self._order = OrderCheck(schema.key_fields)
        self._row_keys = schema.row_keys
        self._sink = sink
        self._assembly = Assembly(encoder.template, sink.write, sorted_by=len(schema.key_fields))
        self._encoder = encoder
        self._sampler = Sampler(self._row_keys)
        self._key_ranges = KeyRangeCounter(self._row_keys, key_ranges)
        self._row_groups: list[RowGroupNote] = []
        self._pages: list[bytes] = []

    def add(self, row_group: pa.Table | StoredRowGroup) -> None:
        """Write a row group."""
        if isinstance(row_group, StoredRowGroup):
            self._copy(row_group)
            return
        for batch in row_group.to_batches():
            self._order.add(batch)
            self._sampler.add(batch)
            self._key_ranges.add(batch)
        note = note_of(row_group, self._row_keys)
        encoded = self._encoder.encode(row_group, note.row_bytes)
        self._put(encoded, note, page_checksums(encoded))

    def _put(self, row_group: EncodedRowGroup, note: RowGroupNote, checksums: bytes) -> None:
        self._assembly.add(row_group)
        self._row_groups.append(note)
        self._pages.append(checksums)

    def _copy(self, row_group: StoredRowGroup) -> None:
        below = self._key_ranges.last  # a row key, as are the row group's: they leave out sort keys
        if below > row_group.note.first:
            raise AssertionError("rows are not sorted: a row group begins too low")
        self._sampler.skip(row_group.rows, row_group.known)
        self._key_ranges.skip(row_group.rows, row_group.note.first, row_group.last)
        self._put(row_group.encoded, row_group.note, row_group.checksums)
        self._order.last = row_group.last

    def end(self, name: FileName) -> FileWritten:
        """Write the tail. Returns what was written; the object is not finished yet."""
        sink = self._sink
        tail_offset, blocks = sink.size, sink.begin_tail()
        notes = Notes(
            sample=self._sampler.sample(),
            row_groups=tuple(self._row_groups),
            last=self._key_ranges.last,
            blocks=blocks,
            pages=tuple(self._pages),
        )
        self._assembly.end(encode_notes(notes))
        tail_checksum = sink.end_tail()
        file = StoredFile(name, sink.size, tail_offset, sink.checksum, tail_checksum)
        return FileWritten(file, self._key_ranges.rows_written())


def note_of(row_group: pa.Table, row_keys: Sequence[Field]) -> RowGroupNote:
    """Return what a file's notes say of a row group of these rows, at least one."""
    first = encode_row(row_group.slice(0, 1).to_batches()[0], row_keys, 0)
    return RowGroupNote(first, densest(row_group))


class OrderCheck:
    """Ends the process that would write rows which are not sorted. last: the key of the last row,
    or its first fields."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self.last = b""

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows."""
        first = encode_row(batch, self._fields, 0)
        if self.last > first:
            raise AssertionError("rows are not sorted: a batch begins below the last one's end")
        if not is_sorted([batch.column(f.name) for f in self._fields]):
            raise AssertionError("rows are not sorted")
        self.last = encode_row(batch, self._fields, -1)


class Sampler:
    """Keeps every stride-th row key of a sorted stream, at most KEYS_MAX of them. rows: so far."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._keys: list[bytes] = []
        self.stride = 1
        self.rows = 0
        self._slack = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows."""
        before = self._go_on(len(batch))
        # Not a range: Arrow looks for pandas each time that it is given a sequence.
        indices = np.arange(-before % self.stride, len(batch), self.stride)
        if len(indices):
            rows = batch.select([f.name for f in self._fields]).take(index_array(indices))
            keys = encode_keys(rows, self._fields)
            self._keys += keys.to_pylist()  # bounded: KEYS_MAX

    def skip(self, rows: int, known: Known) -> None:
        """Go over rows of which only some are known. The nearest known one stands for each that
        would be kept."""
        before = self._go_on(rows)
        indices = [index for index, _, _ in known]
        for index in range(-before % self.stride, rows, self.stride):
            after = bisect_left(indices, index)
            near = min(known[max(0, after - 1) : after + 1], key=lambda k: abs(k[0] - index))
            self._keys.append(near[1])
            self._slack = max(self._slack, abs(near[0] - index) + near[2])

    def _go_on(self, rows: int) -> int:
        """Count rows; return how many there were before."""
        before, self.rows = self.rows, self.rows + rows
        while -(-self.rows // self.stride) > KEYS_MAX:
            self._keys = self._keys[::2]
            self.stride *= 2
        return before

    def sample(self) -> Sample:
        """Return the sample of all rows so far."""
        return Sample(tuple(self._keys), self.stride, self.rows, self._slack)


class KeyRangeCounter:
    """Counts the rows of a sorted stream in each of some ascending key ranges, which
    hold them all."""

    def __init__(self, fields: Sequence[Field], key_ranges: Sequence[KeyRange]) -> None:
        self._fields = fields
        self._key_ranges = key_ranges
        self._rows = [0] * len(key_ranges)
        self._firsts: list[bytes] = [b""] * len(key_ranges)
        self._lasts: list[bytes] = [b""] * len(key_ranges)
        self._index = 0
        self.last = b""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the next rows."""
        self.last = encode_row(batch, self._fields, -1)
        while len(batch):
            key_range = self._key_range_of(encode_row(batch, self._fields, 0))
            here = len(batch)
            if key_range.max is not None and self.last >= key_range.max:
                here = search_many(batch, self._fields, [key_range.max])[0]
            inside = batch.slice(0, here)
            if not self._rows[self._index]:
                self._firsts[self._index] = encode_row(inside, self._fields, 0)
            self._rows[self._index] += here
            self._lasts[self._index] = encode_row(inside, self._fields, -1)
            batch = batch.slice(here)

    def skip(self, rows: int, first: bytes, last: bytes) -> None:
        """Count rows that all lie in one key range."""
        key_range = self._key_range_of(first)
        if not key_range.contains(last):
            raise AssertionError("copied rows lie in one key range")
        if not self._rows[self._index]:
            self._firsts[self._index] = first
        self._rows[self._index] += rows
        self._lasts[self._index] = self.last = last

    def _key_range_of(self, key: bytes) -> KeyRange:
        while self._index < len(self._key_ranges):
            key_range = self._key_ranges[self._index]
            if key_range.max is None or key < key_range.max:
                if key_range.min > key:
                    raise AssertionError("a row lies in none of the key ranges")
                return key_range
            self._index += 1
        raise AssertionError("a row lies above all key ranges")

    def rows_written(self) -> tuple[RowsWritten | None, ...]:
        """Return for each key range its rows and their bounds."""
        return tuple(
            RowsWritten(rows, bounds_of(first, last)) if rows else None
            for rows, first, last in zip(self._rows, self._firsts, self._lasts, strict=True)
        )
