"""Files of an export as they are read again: bytes that contradict a checksum are refused."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError, ObjectMissingError
from lakebed.exports.manifest import ExportedFile
from lakebed.exports.target import ExportTarget
from lakebed.model.keys import key_value_text
from lakebed.model.schema import Field
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.key_encoding import value_at

BATCH_ROWS = 65_536
FROM_A_COPY = "take it from a copy, or export the table again"


class FirstAndLast:
    """Learns the first and the last row key of rows that pass. row_keys: of the table."""

    def __init__(self, row_keys: Sequence[Field], columns: pa.Schema) -> None:
        names = set(columns.names)
        self._fields = row_keys if names.issuperset(f.name for f in row_keys) else ()
        self.first: tuple[str, ...] | None = None
        self.last: tuple[str, ...] | None = None

    def seen(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in key order, which lie behind those before."""
        if self._fields and len(rows):
            self.first = self._key(rows, 0) if self.first is None else self.first
            self.last = self._key(rows, len(rows) - 1)
        return rows

    def _key(self, rows: pa.RecordBatch, row: int) -> tuple[str, ...]:
        return tuple(key_value_text(f, value_at(rows.column(f.name), row)) for f in self._fields)


def checksum_text(checksum: int) -> str:
    """Return a CRC-64/NVME as a manifest has it."""
    return f"{checksum:016x}"


def read_through(
    target: ExportTarget, path: str, row_keys: Sequence[Field], columns: pa.Schema
) -> ExportedFile:
    """Return what is known of a file by reading all of it.

    Raises:
        ObjectMissingError: there is none. CorruptError: it cannot be read, or has other columns.
    """
    facts = target.objects.look(path)
    if facts is None:
        raise ObjectMissingError(path)
    keys, rows = FirstAndLast(row_keys, columns), 0
    with _parquet(target, path, facts.size) as file:
        if not file.schema_arrow.equals(columns):
            raise CorruptError("a file of an export has other columns", path=target.address(path))
        for batch in file.iter_batches(BATCH_ROWS):
            rows += len(keys.seen(batch))
    return ExportedFile(
        path=path,
        rows=rows,
        bytes=facts.size,
        checksum=checksum_text(facts.checksum),
        first=keys.first,
        last=keys.last,
    )


def check_file(target: ExportTarget, file: ExportedFile) -> None:
    """Compare size and checksum of a file with what is known of it.

    Raises:
        CorruptError: it is missing, or its bytes are others.
    """
    facts = target.objects.look(file.path)
    address = target.address(file.path)
    if facts is None:
        raise CorruptError("a file of an export is missing", path=address, hint=FROM_A_COPY)
    if (facts.size, checksum_text(facts.checksum)) != (file.bytes, file.checksum):
        raise CorruptError(
            "a file of an export contradicts its checksum",
            path=address,
            size=facts.size,
            wanted_size=file.bytes,
            hint=FROM_A_COPY,
        )


def batches_of(target: ExportTarget, file: ExportedFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, which is as large as it was when it was checked.

    Raises:
        CorruptError: it cannot be read, or has another number of rows.
    """
    rows = 0
    with _parquet(target, file.path, file.bytes) as opened:
        for batch in opened.iter_batches(BATCH_ROWS):
            yield batch
            rows += len(batch)
    if rows != file.rows:
        address = target.address(file.path)
        raise CorruptError("a file of an export has other rows", path=address, hint=FROM_A_COPY)


@contextmanager
def _parquet(target: ExportTarget, path: str, size: int) -> Iterator[pq.ParquetFile]:
    """Open a file whose pages are compared with their checksums. Its errors are damage."""
    source = _ObjectInput(target.objects, path, size)
    try:
        file = pa.PythonFile(source, "r")
        yield pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
    except (pa.ArrowException, OSError, ObjectMissingError) as error:
        if source.failure is not None:
            raise source.failure from None
        problem = str(error).splitlines()[0]
        raise CorruptError(
            "a file of an export cannot be read",
            path=target.address(path),
            problem=problem,
            hint=FROM_A_COPY,
        ) from error


class _ObjectInput(io.RawIOBase):
    """An object as Arrow reads from it. failure: what the store raised, which Arrow hides."""

    def __init__(self, objects: ObjectReader, path: str, size: int) -> None:
        super().__init__()
        self._objects = objects
        self._path = path
        self._size = size
        self._at = 0
        self.failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        try:
            (piece,) = self._objects.read(self._path, [(self._at, max(self._at, end))])
        except Exception as error:
            self.failure = error
            raise
        self._at += len(piece)
        return piece
