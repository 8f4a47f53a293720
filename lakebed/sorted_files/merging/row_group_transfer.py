"""Row groups that one process encodes and another one puts into its file.

They lie in an object of their own on this machine: their bytes one behind the other, and then what
is told of each. It is no Parquet file: the process that takes them over need not read footers and
indexes to make new ones of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from lakebed.errors import CorruptError
from lakebed.model.schema import Schema
from lakebed.parquet_bytes.encoded import EncodedRowGroup
from lakebed.parquet_bytes.thrift import Struct, struct_of
from lakebed.ports.object_store import ObjectReader, ObjectStore, ObjectWriter
from lakebed.sorted_files.format.file_notes import block_checksum
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.format.row_groups import row_group_tables
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.writing.file_writing import OrderCheck, Sampler, note_of
from lakebed.sorted_files.writing.page_checksums import page_checksums
from lakebed.sorted_files.writing.stored_row_group import StoredRowGroup


class HandedOver(msgspec.Struct, frozen=True, array_like=True):
    """The range of an object that describes its row groups, and the CRC-32 of that range."""

    start: int
    end: int
    checksum: int


class _TransferredRowGroup(msgspec.Struct, frozen=True, array_like=True):
    """A row group whose bytes lie before it in the object.

    sizes: of its chunks, which are without their bytes here.
    checksum: the CRC-32 of all of them.
    """

    row_group: StoredRowGroup
    sizes: tuple[int, ...]
    checksum: int


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
        sender = _RowGroupSender(schema, writer, encoder)
        for row_group in row_group_tables(batches):
            sender.add(row_group)
            del row_group  # not held while the next one is made
        return sender.end()
    finally:
        writer.abort()  # does nothing once it is finished


class _RowGroupSender:
    def __init__(self, schema: Schema, writer: ObjectWriter, encoder: RowGroupEncoder) -> None:
        self._row_keys = schema.row_keys
        self._writer = writer
        self._encoder = encoder
        self._order = OrderCheck(schema.key_fields)
        self._size = 0
        self._row_groups: list[msgspec.Raw] = []

    def add(self, row_group: pa.Table) -> None:
        """Encode a row group."""
        sampler, batches = Sampler(self._row_keys), row_group.to_batches()
        for batch in batches:
            self._order.add(batch)
            sampler.add(batch)
        sample, note = sampler.sample(), note_of(row_group, self._row_keys)
        encoded = self._encoder.encode(row_group, note.row_bytes)
        checksum = 0
        for chunk in encoded.chunks:
            checksum = block_checksum(chunk.raw, checksum)
            self._size += self._writer.write(chunk.raw)
        stored = StoredRowGroup(
            encoded=_without_bytes(encoded),
            note=note,
            checksums=page_checksums(encoded),
            last=encode_row(batches[-1], self._row_keys, -1),
            known=[(n * sample.stride, key, 0) for n, key in enumerate(sample.keys)],
        )
        sizes = tuple(chunk.size for chunk in encoded.chunks)
        described = _encoder.encode(_TransferredRowGroup(stored, sizes, checksum))
        self._row_groups.append(msgspec.Raw(described))

    def end(self) -> HandedOver | None:
        """Write what describes them, and finish the object; None: there are none."""
        if not self._row_groups:
            return None
        raw = _encoder.encode(self._row_groups)
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
        self._row_groups = _decoder.decode(raw)

    def __iter__(self) -> Iterator[StoredRowGroup]:
        """Yield them in order, each one read when it is asked for. Raises: as `__init__`."""
        at = 0
        for transferred in self._row_groups:
            end = at + sum(transferred.sizes)
            raw = self._read(at, end, transferred.checksum)
            at, row_group = end, transferred.row_group
            yield replace(row_group, encoded=_with_bytes(row_group.encoded, transferred.sizes, raw))

    def _read(self, start: int, end: int, checksum: int) -> memoryview:
        (raw,) = self._objects.read(self._path, [(start, end)])
        if len(raw) != end - start or block_checksum(raw) != checksum:
            raise CorruptError(
                "bytes contradict their checksum", path=self._path, start=start, end=end
            )
        return memoryview(raw)


def _without_bytes(row_group: EncodedRowGroup) -> EncodedRowGroup:
    """Return a row group as it is described: its checksums of pages are listed beside it."""
    chunks = [replace(chunk, raw=memoryview(b""), checksums=None) for chunk in row_group.chunks]
    return EncodedRowGroup(row_group.rows, chunks)


def _with_bytes(
    row_group: EncodedRowGroup, sizes: Sequence[int], raw: memoryview
) -> EncodedRowGroup:
    ends = accumulate(sizes)
    chunks = [
        replace(chunk, raw=raw[end - size : end])
        for chunk, size, end in zip(row_group.chunks, sizes, ends, strict=True)
    ]
    return EncodedRowGroup(row_group.rows, chunks)


def _plain(value: object) -> bytes:
    """Return numbers of an OffsetIndex as bytes: msgspec knows all else."""
    assert isinstance(value, np.ndarray), "nothing else is in a row group"
    return value.astype(np.int64).tobytes()


def _of_plain(kind: type, value: Any) -> object:  # noqa: ANN401  what `kind` says
    return struct_of(value) if kind is Struct else np.frombuffer(value, np.int64)


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_decoder = msgspec.msgpack.Decoder(tuple[_TransferredRowGroup, ...], dec_hook=_of_plain)
