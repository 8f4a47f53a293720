"""Tails of files: footer and page index, read with one request and kept by file."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart, StoredFile
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.file_notes import Notes, decode_notes

PARSED_PER_BYTE = 4
"""Memory that a parsed tail is counted with, per byte of it."""


class Tail(msgspec.Struct, frozen=True):
    """A verified tail, parsed."""

    raw: bytes
    metadata: pq.FileMetaData
    columns: pa.Schema
    notes: Notes


class Tails:
    """A cache of tails, bounded by bytes. Files never change, so nothing in it grows old."""

    def __init__(self, objects: ObjectStore, *, bytes_max: int) -> None:
        self._objects = objects
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: OrderedDict[StoredFile, Tail] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, part: FilePart) -> Tail:
        """Return the tail of a file.

        Raises:
            ObjectMissingError: the file is not there.
            CorruptError: the tail contradicts its checksum, or is none.
        """
        with self._lock:
            if part.file in self._held:
                self._held.move_to_end(part.file)
                return self._held[part.file]
        tail = self._read(part)
        with self._lock:
            if part.file not in self._held:
                self._held[part.file] = tail
                self._bytes += _cost(tail)
            while self._bytes > self._bytes_max and len(self._held) > 1:
                self._bytes -= _cost(self._held.popitem(last=False)[1])
        return tail

    def _read(self, part: FilePart) -> Tail:
        file = part.file
        (raw,) = self._objects.read(part.path, [(file.tail_offset, file.size)])
        if len(raw) != file.size - file.tail_offset or zlib.crc32(raw) != file.tail_checksum:
            raise CorruptError("a file's tail contradicts its checksum", path=part.path)
        try:
            metadata = pq.read_metadata(pa.BufferReader(_footer(raw)))
            columns = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            problem = str(error)
            raise CorruptError("a file has no footer", path=part.path, problem=problem) from error
        notes = decode_notes(metadata.metadata, part.path)
        if len(notes.groups) != metadata.num_row_groups:
            raise CorruptError("a file's notes do not fit its row groups", path=part.path)
        return Tail(raw, metadata, columns, notes)


def _footer(raw: bytes) -> bytes:
    """Return a file that is nothing but the footer: all that Arrow looks at to parse it."""
    size = int.from_bytes(raw[-8:-4], "little") + 8
    return b"PAR1" + raw[-min(size, len(raw)) :]


def _cost(tail: Tail) -> int:
    return PARSED_PER_BYTE * len(tail.raw)
