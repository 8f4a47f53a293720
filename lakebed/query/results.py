"""Results of queries that are too large to be handed over: files of Parquet and a manifest.

A result is there when its manifest is. It is put if absent, so of several runs of one request the
first to finish counts; what the rest wrote expires with all else in the folder of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError, JobIdReusedError, ObjectExistsError
from lakebed.model.names import JobId, RequestDigest, TableId, TransactionNumber
from lakebed.model.paths import manifest_path, result_path
from lakebed.ports.object_store import ObjectStore
from lakebed.query.parquet_objects import (
    ROW_GROUP_BYTES,
    put_bytes,
    put_parquet,
    row_groups_of,
)

MANIFEST_FORMAT = 1
MANIFEST_BYTES_MAX = 64 << 20
FILE_BYTES = 512 << 20
"""Bytes after which a new file begins."""


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of Parquet. Rows are in key order in it, and from file to file."""

    path: str
    rows: int
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A whole result.

    number: of the log entry up to which the table was read.
    request: stands for the message, in hex digits.
    columns: name and type of each, as Arrow calls it.
    """

    format: int = MANIFEST_FORMAT
    id: str
    table: str
    request: str
    number: TransactionNumber
    rows: int
    columns: dict[str, str]
    files: tuple[ResultFile, ...]


class ResultOf(msgspec.Struct, frozen=True, kw_only=True):
    """The table and the request that a result is of.

    table, name: its id, and what it is called.
    request: of the message.
    number: of the log entry up to which it was read.
    """

    table: TableId
    name: str
    job: JobId
    request: RequestDigest
    number: TransactionNumber


class Results:
    """The store of results. location: what comes before a path in an address."""

    def __init__(self, objects: ObjectStore, *, location: str) -> None:
        self._objects = objects
        self._location = location

    def address(self, table: TableId, job: JobId) -> str:
        """Return where people find a manifest."""
        return f"{self._location}/{manifest_path(table, job)}"

    def find(self, table: TableId, job: JobId, request: RequestDigest) -> Manifest | None:
        """Return the result of a request, if it is there.

        Raises:
            JobIdReusedError: its id stands for another request. CorruptError: it cannot be read.
        """
        path = manifest_path(table, job)
        size = self._objects.size_of(path)
        if size is None:
            return None
        (body,) = self._objects.read(path, [(0, min(size, MANIFEST_BYTES_MAX))])
        try:
            found = msgspec.json.decode(body, type=Manifest)
        except msgspec.DecodeError as error:
            raise CorruptError("not a manifest of a result", path=path, reason=error) from None
        if found.request != request.hex():
            hint = "choose a new id, for instance with the day in it"
            raise JobIdReusedError("the id stands for another query", job=job, hint=hint)
        return found

    def write(
        self, batches: Iterator[pa.RecordBatch], columns: pa.Schema, of: ResultOf, run: str
    ) -> Manifest:
        """Write a result. run: a name that is used once. Returns what is there, perhaps another
        run's.

        Raises:
            As `batches`, ObjectStore's; then there is no manifest.
        """
        files: list[ResultFile] = []
        row_groups = row_groups_of(batches, bytes_max=ROW_GROUP_BYTES)
        first = next(row_groups, None)
        while first is not None or not files:
            path = result_path(of.table, of.job, run, len(files))
            rest = () if first is None else chain((first,), row_groups)
            put = put_parquet(self._objects, path, columns, rest, bytes_max=FILE_BYTES)
            file = ResultFile(path=f"{self._location}/{path}", rows=put.rows, bytes=put.bytes)
            files.append(file)
            first = next(row_groups, None)
        return self._write_manifest(columns, of, tuple(files))

    def _write_manifest(
        self, columns: pa.Schema, of: ResultOf, files: tuple[ResultFile, ...]
    ) -> Manifest:
        manifest = Manifest(
            id=of.job,
            table=of.name,
            request=of.request.hex(),
            number=of.number,
            rows=sum(file.rows for file in files),
            columns={column.name: str(column.type) for column in columns},
            files=files,
        )
        path = manifest_path(of.table, of.job)
        try:
            put_bytes(self._objects, path, msgspec.json.encode(manifest))
        except ObjectExistsError:  # another run was faster
            found = self.find(of.table, of.job, of.request)
            assert found is not None, "a manifest that was just there is gone"
            return found
        return manifest
