"""Opens what rows come from: files and directories that a user names, and Arrow data in memory or
streamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, cast
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from lakebed.errors import InvalidError, LakebedError, UnreadableInputError
from lakebed.ingest.python_rows import Spooled, collected, is_dicts, not_arrow, table_of_dicts
from lakebed.model.addresses import scheme_of, without_file_scheme
from lakebed.model.names import RequestDigest, digest_of
from lakebed.model.schema import Schema
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.casting import check_bytes, conformed
from lakebed.user_files.input_files import (
    FORMATS,
    ExtraColumns,
    FileFormat,
    InputFile,
    digest_of_files,
    format_of,
    input_files,
    rows_of,
)
from lakebed.user_files.zones import NO_ZONES, Zones, zones_of

STREAM_BATCH_ROWS = 65_536


class FileSource:
    """Rows of files. The digest stands for their names, sizes and times of change, not their
    bytes."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        schema: Schema,
        *,
        format: FileFormat | None = None,
        extra_columns: ExtraColumns = "refuse",
        zones: Zones = NO_ZONES,
        urls: SourceFiles | None = None,
        delimiter: str | None = None,
        skip_unreadable: bool = False,
    ) -> None:
        self.skipped: dict[str, str] = {}
        """Files that were left out, and why."""
        self.spooled: Spooled | None = None
        """What an open file held: its bytes stand for the request."""
        self._skips = skip_unreadable
        self._delimiter = delimiter
        self._urls = urls
        self._files = self._found(paths, format)
        self.schema = schema
        self._extra_columns: ExtraColumns = extra_columns
        self._zones = zones
        self.reading: Path | str | None = None
        """The file whose rows are being taken."""

    @property
    def digest(self) -> RequestDigest:
        """Stands for the request."""
        held = self.spooled
        digest = held.digest if held is not None else digest_of_files(self._files)
        parts = _digested(self._zones)
        if self._delimiter is not None:
            parts += [b"delimiter", self._delimiter.encode()]
        return digest_of(digest, *parts) if parts else digest

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, file after file. An error names the file."""
        for file in self._files:
            self.reading = file.path if scheme_of(file.path) else Path(file.path)
            with self._here(file) as here:
                rows = rows_of(
                    here,
                    self.schema,
                    extra_columns=self._extra_columns,
                    zones=self._zones,
                    delimiter=self._delimiter,
                )
                try:
                    first = next(rows, None)
                except UnreadableInputError as error:
                    if not self._skips:
                        raise
                    self._skip(Path(file.path), error)
                    continue
                if first is not None:
                    yield first
                yield from rows
        self.reading = None

    def with_skipped(self, done: Ingested) -> Ingested:
        """Return what became of the job, with the files that were left out."""
        return msgspec.structs.replace(done, skipped=self.skipped)

    def _skip(self, path: Path, error: LakebedError) -> None:
        self.skipped[str(path)] = str(error.facts.get("problem", error.message))

    def _found(
        self, paths: Sequence[str | os.PathLike[str]], format: FileFormat | None
    ) -> list[InputFile]:
        addresses = [without_file_scheme(path) for path in paths]
        found = [] if addresses else input_files([], format)
        for address in addresses:
            if scheme_of(address) is None:
                skip = self._skip if self._skips else None
                found += input_files([address], format, skip=skip)
            else:
                found += self._at(os.fspath(address), format)
        return found

    def _at(self, url: str, format: FileFormat | None) -> list[InputFile]:
        if self._urls is None:
            hint = "copy it to this machine"
            raise InvalidError("only files of this machine are read here", path=url, hint=hint)
        return [
            InputFile(
                one.name, format or format_of(Path(urlsplit(one.name).path)), one.size, one.version
            )
            for one in self._urls.find(url)
        ]

    @contextmanager
    def _here(self, file: InputFile) -> Iterator[InputFile]:
        """Have a file on this machine while it is read. An error names its address."""
        if self._urls is None or scheme_of(file.path) is None:
            yield file
            return
        try:
            source = SourceFile(file.path, file.size, file.version)
            with self._urls.on_disk(source) as path:
                yield msgspec.structs.replace(file, path=str(path))
        except LakebedError as error:
            error.facts["path"] = file.path
            raise


class WatchedSource:
    """Rows of another source; reports after each batch how many were read."""

    def __init__(
        self, source: FileSource | ArrowSource, on_progress: Callable[[int], None]
    ) -> None:
        self._source = source
        self._on_progress = on_progress
        self.schema = source.schema

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the request."""
        return self._source.digest

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        rows = 0
        for batch in self._source.batches():
            yield batch
            rows += batch.num_rows
            self._on_progress(rows)


class ArrowSource:
    """Rows of Arrow data: anything with `__arrow_c_stream__` or `__arrow_c_array__`.

    A stream can be read once: its digest is known when all of it has been read.
    """

    def __init__(
        self,
        rows: object,
        schema: Schema,
        *,
        extra_columns: ExtraColumns = "refuse",
        zones: Zones = NO_ZONES,
    ) -> None:
        self._rows: pa.Table | pa.RecordBatchReader = _as_arrow(rows)
        self.schema = schema
        self._extra_columns: ExtraColumns = extra_columns
        self._zones = zones
        self._known: RequestDigest | None = None

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the columns and every row; None before a stream was read."""
        if self._known is None and isinstance(self._rows, pa.Table):
            digest = _begun(self._rows.schema, self._zones)
            for batch in self._rows.to_batches():
                digest.update(_bytes_of(batch))
            self._known = RequestDigest(digest.digest())
        return self._known

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        digest = _begun(self._rows.schema, self._zones)
        rows = self._rows
        whole = isinstance(rows, pa.Table)
        batches = rows.to_batches(STREAM_BATCH_ROWS) if whole else _passed_to(digest.update, rows)
        yield from conformed(
            batches, self.schema, extra_columns=self._extra_columns, zones=self._zones
        )
        if not whole:
            self._known = RequestDigest(digest.digest())


class IngestOptions(TypedDict, total=False):
    """The options of reading rows that a table takes in. Each may be left out.

    format: of files; None: by the endings of their names.
    extra_columns: "drop" ignores unknown columns; left out, they are refused.
    zone: where times without an offset and dates are from, for fields in UTC: "UTC",
        "Europe/Berlin", or by field {"at": "UTC"}.
    delimiter: of CSV; None: a comma.
    skip_unreadable: leave files out that cannot be read, as long as no row of them was taken; the
        answer's `skipped` names them.
    """

    format: FileFormat | None
    extra_columns: ExtraColumns
    zone: str | Mapping[str, str] | None
    delimiter: str | None
    skip_unreadable: bool


def source_of(
    rows: object,
    schema: Schema,
    *,
    format: FileFormat | None = None,
    extra_columns: ExtraColumns = "refuse",
    zone: str | Mapping[str, str] | None = None,
    urls: SourceFiles | None = None,
    delimiter: str | None = None,
    skip_unreadable: bool = False,
) -> FileSource | ArrowSource:
    """Return the rows that a user names: a path, several paths, an open file, a list of dicts, or
    Arrow data. The options are those of `IngestOptions`. urls: who brings files that are named by
    URL.

    Raises:
        InvalidError: it is none of these, or a path holds nothing to ingest.
    """
    zones = zones_of(zone, schema)
    rows = collected(rows)
    if is_dicts(rows):
        rows = table_of_dicts(cast("Sequence[Mapping[str, Any]]", rows), schema)
    files = partial(
        FileSource,
        schema=schema,
        format=format,
        extra_columns=extra_columns,
        zones=zones,
        urls=urls,
        delimiter=_checked(delimiter),
        skip_unreadable=skip_unreadable,
    )
    if hasattr(rows, "read") and not hasattr(rows, "__arrow_c_stream__"):
        return _of_open_file(cast("BinaryIO", rows), format, files)
    paths = [rows] if isinstance(rows, (str, os.PathLike)) else rows
    if isinstance(paths, (list, tuple)) and all(isinstance(p, (str, os.PathLike)) for p in paths):
        return files(paths)
    return ArrowSource(rows, schema, extra_columns=extra_columns, zones=zones)


def _of_open_file(
    rows: BinaryIO, format: FileFormat | None, files: Callable[..., FileSource]
) -> FileSource:
    if format is None:
        hint = f"say format={' or format='.join(FORMATS)}"
        raise InvalidError("an open file has no name that shows its format", hint=hint)
    spooled = Spooled(rows, f".{format}")
    source = files([spooled.path])
    source.spooled = spooled
    return source


def _checked(delimiter: str | None) -> str | None:
    meant = {"tab": "\t", r"\t": "\t"}.get(delimiter or "", delimiter)
    if meant is not None and (len(meant.encode()) != 1 or meant in '"\r\n'):
        hint = "give one letter, for instance ';', or tab"
        raise InvalidError("not a delimiter of CSV", delimiter=delimiter, hint=hint)
    return meant


def _digested(zones: Zones) -> list[bytes]:
    """Return what zones add to the digest of a request: other zones make other rows."""
    return [part.encode() for name in sorted(zones) for part in (name, zones[name])]


def _passed_to(
    on_progress: Callable[[pa.Buffer], object], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        on_progress(_bytes_of(batch))
        yield batch


def _begun(columns: pa.Schema, zones: Zones) -> Any:  # noqa: ANN401 - hashlib's have no public type
    digest = hashlib.blake2b(digest_size=16)
    digest.update(columns.serialize())
    for part in _digested(zones):
        digest.update(part + b"\0")
    return digest


def _bytes_of(batch: pa.RecordBatch) -> pa.Buffer:
    """Return what stands for rows. Raises: InvalidError: they are not what their types say."""
    for field, column in zip(batch.schema.names, batch.columns, strict=True):
        check_bytes(column, field=field)  # Arrow ends the process when it writes such a column
    try:
        return batch.serialize()
    except pa.ArrowException as error:  # of a column, perhaps one to drop, nested 60 deep
        problem = str(error).splitlines()[0]
        raise InvalidError(
            "these columns cannot be taken in", problem=problem, hint="leave out nested columns"
        ) from error


def _as_arrow(rows: object) -> pa.Table | pa.RecordBatchReader:
    if isinstance(rows, (pa.Table, pa.RecordBatchReader)):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(rows)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise not_arrow(rows, error) from None
    if hasattr(rows, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(rows)])
    raise InvalidError(
        "not rows",
        got=type(rows).__name__,
        hint="give a path, or a table of pyarrow, pandas, Polars or DuckDB",
    )
