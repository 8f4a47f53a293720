"""Sorted runs as objects: rows that one task put in order, for other tasks to merge into files.

A run is a row of blocks. A block holds rows of one key range, sorted, as an Arrow record batch that
is compressed as a whole: those who merge a key range read exactly its blocks, in few requests.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field, Schema
from lakebed.ports.object_store import ObjectReader, ObjectStore
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import encode_row, search_many, slice_key_range
from lakebed.sorted_files.format.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.format.row_groups import cut
from lakebed.sorted_files.sorting.engines import engine_for
from lakebed.sorted_files.sorting.iterating import iterated
from lakebed.sorted_files.sorting.window_merge import Source

BLOCK_ROWS = 16_384
BLOCK_MEMORY = 512 * 1024
"""Most bytes of a block before it is compressed: a merge holds one and a half of each run."""

READ_BYTES_MAX = 8 * 1024 * 1024
READ_BYTES_MIN = 256 * 1024
AHEAD_BYTES = 128 * 1024 * 1024
"""Bytes that a merge reads ahead of all its runs: one request brings a share of it of each."""

_CODEC = "lz4_raw"


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one key range: bytes `[offset, offset + size)` of a run, `memory` when decompressed.

    range_index: of their key range among those that the run was cut by.
    first: encoded row key of the first row.
    checksum: CRC-32 of the bytes.
    """

    range_index: int
    first: bytes
    rows: int
    offset: int
    size: int
    memory: int
    checksum: int


class StoredRun(msgspec.Struct, frozen=True, array_like=True):
    """A run, or the part of it that one task is to read. Blocks lie one behind the other."""

    path: str
    blocks: tuple[Block, ...]


def store_run(
    objects: ObjectStore,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    path: str,
    points: Sequence[bytes],
) -> StoredRun | None:
    """Put sorted rows at `path` as a run; None, and no object, when there are none.

    points: ascending encoded keys, each the end of one key range and the begin of the next.

    Raises:
        ObjectExistsError: another object has the path.
        UnknownOutcomeError, UnavailableError, StorageFullError: nothing refers to it; leave it.
    """
    parts = _parts(batches, schema.row_keys, points)
    first = next(parts, None)
    if first is None:
        return None
    writer = objects.create(path)
    try:
        sink = ObjectSink(writer)
        blocks = [_put(sink, schema, *first)]
        blocks += [_put(sink, schema, *part) for part in parts]
        finish_object(objects, writer, path=path, size=sink.size, checksum=sink.checksum)
    except BaseException:
        writer.abort()
        raise
    return StoredRun(path, tuple(blocks))


def _parts(
    batches: Iterable[pa.RecordBatch], fields: Sequence[Field], points: Sequence[bytes]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows that become a block, and the index of their key range."""
    for batch in batches:
        if not len(batch):
            continue
        index = bisect_right(points, encode_row(batch, fields, 0))
        end = bisect_right(points, encode_row(batch, fields, -1))
        ends = [*search_many(batch, fields, points[index:end]), len(batch)]
        begin = 0
        for range_index, stop in enumerate(ends, start=index):
            for part in cut(batch.slice(begin, stop - begin), BLOCK_ROWS, BLOCK_MEMORY):
                yield range_index, part
            begin = stop


def _put(sink: ObjectSink, schema: Schema, range_index: int, rows: pa.RecordBatch) -> Block:
    plain = rows.serialize()
    stored = pa.compress(plain, codec=_CODEC)
    offset = sink.size
    sink.write([memoryview(stored).cast("B")])
    return Block(
        range_index,
        encode_row(rows, schema.row_keys, 0),
        len(rows),
        offset,
        stored.size,
        plain.size,
        zlib.crc32(stored),
    )


def merged_runs(
    objects: ObjectReader,
    schema: Schema,
    sorted_runs: Sequence[StoredRun],
    key_range: KeyRange,
    *,
    job_rows: int,
    processing: ProcessingPass | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of runs inside a key range, in the order of their keys.

    job_rows: of the whole job, about.
    processing: what is done with rows that are in order; none is left out.

    Raises:
        ObjectMissingError: a run is not there any more. CorruptError: its bytes are not those that
        were written. As processing does.
    """
    at_once = max(READ_BYTES_MIN, min(READ_BYTES_MAX, AHEAD_BYTES // max(1, len(sorted_runs))))
    sources = [
        Source(
            max(key_range.min, sorted_run.blocks[0].first),
            _Opened(objects, schema, sorted_run, key_range, at_once),
        )
        for sorted_run in sorted_runs
        if sorted_run.blocks
    ]
    work = None if processing is None else RowWork(schema, processing)
    folds = None if work is None else work.folds
    rows = engine_for(job_rows).merge(sources, schema.key_fields, folds)
    if work is None:
        return rows
    rows = work.merged(rows)
    return rows if work.iterator is None else iterated(schema, rows, work.iterator, key_range)


def blocks_meeting(sorted_run: StoredRun, range_indexes: range, within: KeyRange) -> StoredRun:
    """Return the part of a run that may hold rows of some key ranges and of a range of keys."""
    begin = bisect_left(sorted_run.blocks, range_indexes.start, key=lambda block: block.range_index)
    end = bisect_left(sorted_run.blocks, range_indexes.stop, key=lambda block: block.range_index)
    blocks = sorted_run.blocks[begin:end]
    first = max(0, bisect_left(blocks, within.min, key=lambda block: block.first) - 1)
    last = len(blocks)
    if within.max is not None:
        last = bisect_left(blocks, within.max, key=lambda block: block.first)
    return StoredRun(sorted_run.path, blocks[first:last])


class _Opened:
    """Reads a run from its begin each time that it is called."""

    def __init__(
        self,
        objects: ObjectReader,
        schema: Schema,
        sorted_run: StoredRun,
        key_range: KeyRange,
        bytes_at_once: int,
    ) -> None:
        self._objects = objects
        self._columns = arrow_schema(schema)
        self._fields = schema.row_keys
        self._sorted_run = sorted_run
        self._key_range = key_range
        self._bytes_at_once = bytes_at_once

    def __call__(self) -> Iterator[pa.RecordBatch]:
        blocks = self._sorted_run.blocks
        done = 0
        while done < len(blocks):
            end, start = done, blocks[done].offset
            while end < len(blocks) and (
                end == done or blocks[end].offset + blocks[end].size - start <= self._bytes_at_once
            ):
                end += 1
            stop = blocks[end - 1].offset + blocks[end - 1].size
            (stored,) = self._objects.read(self._sorted_run.path, [(start, stop)])
            view = memoryview(stored)
            for index in range(done, end):
                block = blocks[index]
                at = block.offset - start
                batch = self._batch(block, view[at : at + block.size])
                if index in (0, len(blocks) - 1):
                    batch = slice_key_range(batch, self._fields, self._key_range)
                yield batch
            done = end

    def _batch(self, block: Block, stored: memoryview) -> pa.RecordBatch:
        if zlib.crc32(stored) != block.checksum:
            raise CorruptError(
                "bytes of a sorted run are not those that were written",
                path=self._sorted_run.path,
                offset=block.offset,
                hint="run the import again: it sorts anew",
            )
        plain = pa.decompress(stored, decompressed_size=block.memory, codec=_CODEC)
        return pa.ipc.read_record_batch(plain, self._columns)
