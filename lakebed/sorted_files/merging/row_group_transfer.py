"""Row groups that one process encodes and another one puts into its file.

They lie in an object of their own on this machine: their bytes one behind the other, and then what
is told of each. It is no Parquet file: whoever takes them over need not read footers and indexes
to make others of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.model.schema import Schema
from lakebed.parquet_bytes.encoded import EncodedChunk, EncodedPages, EncodedRowGroup
from lakebed.parquet_bytes.thrift import Reader, encode_struct
from lakebed.parquet_bytes.varints import Numbers
from lakebed.ports.object_store import ObjectReader, ObjectStore, ObjectWriter
from lakebed.sorted_files.format.file_notes import block_checksum
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.format.row_groups import densest, row_groups
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.writing.file_writing import OrderCheck, Sampler
from lakebed.sorted_files.writing.page_checksums import page_checksums
from lakebed.sorted_files.writing.stored_group import StoredGroup


class HandedOver(msgspec.Struct, frozen=True, array_like=True):
    """Where row groups are told of in their object, and the CRC-32 of that."""

    start: int
    end: int
    checksum: int


class _Pages(msgspec.Struct, frozen=True, array_like=True):
    """Where pages are, as `EncodedPages` has it: numbers of 64 bits."""

    offsets: bytes
    sizes: bytes
    first_rows: bytes
    byte_counts: bytes | None


class _Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A column chunk, as `EncodedChunk` has it."""

    size: int
    metadata: bytes
    pages: _Pages | None
    bounds: bytes | None


class _Group(msgspec.Struct, frozen=True, array_like=True):
    """A row group, as `StoredGroup` has it. checksum: the CRC-32 of its bytes."""

    rows: int
    row_bytes: int
    first: bytes
    last: bytes
    known: tuple[tuple[int, bytes, int], ...]
    pages: bytes
    checksum: int
    chunks: tuple[_Chunk, ...]


_decoder: msgspec.msgpack.Decoder[tuple[_Group, ...]] = msgspec.msgpack.Decoder(tuple[_Group, ...])


def hand_over(
    objects: ObjectStore,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    path: str,
    encoder: RowGroupEncoder,
) -> HandedOver | None:
    """Put row groups of sorted rows at `path`; None: there are no rows.

    Raises: as the store does.
    """
    writer = objects.create(path)
    try:
        handing = _HandingOver(schema, writer, encoder)
        for group in row_groups(batches):
            handing.add(group)
            del group  # not held while the next one is made
        return handing.end()
    finally:
        writer.abort()  # does nothing once it is finished


class _HandingOver:
    def __init__(self, schema: Schema, writer: ObjectWriter, encoder: RowGroupEncoder) -> None:
        self._row_keys = schema.row_keys
        self._writer = writer
        self._encoder = encoder
        self._order = OrderCheck(schema.key_fields)
        self._size = 0
        self._groups: list[_Group] = []

    def add(self, group: pa.Table) -> None:
        """Encode a row group."""
        sampler, batches = Sampler(self._row_keys), group.to_batches()
        for batch in batches:
            self._order.add(batch)
            sampler.add(batch)
        sample, row_bytes = sampler.sample(), densest(group)
        encoded = self._encoder.encode(group, row_bytes)
        checksum = 0
        for chunk in encoded.chunks:
            checksum = block_checksum(chunk.raw, checksum)
            self._size += self._writer.write(chunk.raw)
        self._groups.append(
            _Group(
                rows=len(group),
                row_bytes=row_bytes,
                first=encode_row(batches[0], self._row_keys, 0),
                last=encode_row(batches[-1], self._row_keys, -1),
                known=tuple((n * sample.stride, key, 0) for n, key in enumerate(sample.keys)),
                pages=page_checksums(encoded),
                checksum=checksum,
                chunks=tuple(map(_told, encoded.chunks)),
            )
        )

    def end(self) -> HandedOver | None:
        """Write what is told of them, and finish the object; None: there are none."""
        if not self._groups:
            return None
        raw = msgspec.msgpack.encode(self._groups)
        self._writer.write(raw)
        self._writer.finish()
        return HandedOver(self._size, self._size + len(raw), block_checksum(raw))


class RowGroupsHandedOver:
    """Row groups as they are taken over.

    Raises:
        ObjectMissingError: their object is not there.
        CorruptError: its bytes contradict their checksum.
    """

    def __init__(self, objects: ObjectReader, path: str, handed: HandedOver) -> None:
        self._objects = objects
        self._path = path
        raw = self._read(handed.start, handed.end, handed.checksum)
        self._groups = _decoder.decode(raw)

    def __iter__(self) -> Iterator[StoredGroup]:
        """Yield them in order, each one read when it is asked for. Raises: as `__init__`."""
        at = 0
        for group in self._groups:
            size = sum(chunk.size for chunk in group.chunks)
            raw = self._read(at, at + size, group.checksum)
            at += size
            yield StoredGroup(
                EncodedRowGroup(group.rows, list(_taken(group, raw))),
                group.pages,
                group.first,
                group.last,
                group.row_bytes,
                group.known,
            )

    def _read(self, start: int, end: int, checksum: int) -> memoryview:
        (raw,) = self._objects.read(self._path, [(start, end)])
        if len(raw) != end - start or block_checksum(raw) != checksum:
            raise CorruptError(
                "bytes contradict their checksum", path=self._path, start=start, end=end
            )
        return memoryview(raw)


def _told(chunk: EncodedChunk) -> _Chunk:
    pages = None if chunk.pages is None else _pages_told(chunk.pages)
    return _Chunk(chunk.size, encode_struct(chunk.metadata), pages, chunk.bounds)


def _pages_told(pages: EncodedPages) -> _Pages:
    counts = pages.byte_counts
    return _Pages(
        _bytes(pages.offsets),
        _bytes(pages.sizes),
        _bytes(pages.first_rows),
        None if counts is None else _bytes(counts),
    )


def _taken(group: _Group, raw: memoryview) -> Iterator[EncodedChunk]:
    at = 0
    for chunk in group.chunks:
        pages = None if chunk.pages is None else _pages_taken(chunk.pages)
        metadata, piece = Reader(chunk.metadata).struct(), raw[at : at + chunk.size]
        yield EncodedChunk(metadata, piece, pages, None, chunk.bounds)
        at += chunk.size


def _pages_taken(pages: _Pages) -> EncodedPages:
    counts = pages.byte_counts
    return EncodedPages(
        _numbers(pages.offsets),
        _numbers(pages.sizes),
        _numbers(pages.first_rows),
        None if counts is None else _numbers(counts),
    )


def _bytes(numbers: Numbers) -> bytes:
    return numbers.astype(np.int64).tobytes()


def _numbers(raw: bytes) -> Numbers:
    return np.frombuffer(raw, np.int64)
