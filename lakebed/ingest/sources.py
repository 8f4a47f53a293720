"""Where rows come from: files and directories that a user names, and Arrow data in memory or
streamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from lakebed.errors import InvalidError, LakebedError, UnreadableInputError, did_you_mean
from lakebed.model.names import RequestDigest, digest_of
from lakebed.model.schema import Schema
from lakebed.sorted_files.casting import conform
from lakebed.sorted_files.inputs import csv_batches, parquet_batches
from lakebed.sorted_files.json_lines import json_batches

FileFormat = Literal["parquet", "csv", "jsonl"]
ExtraColumns = Literal["refuse", "drop"]
FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "jsonl")
_ALSO: dict[str, FileFormat] = {"ndjson": "jsonl"}
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
    ) -> None:
        if format is not None and format not in FORMATS:
            hint = did_you_mean(format, FORMATS, what="format")
            raise InvalidError("no such format", format=format, hint=hint)
        self._files = [(file, format or format_of(file)) for file in expanded(paths)]
        self.schema = schema
        self._extra_columns: ExtraColumns = extra_columns
        self.reading: Path | None = None
        """The file whose rows are being taken."""

    @property
    def digest(self) -> RequestDigest:
        """Stands for the request."""
        return digest_of(*(part for file, kind in self._files for part in _facts(file, kind)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, file after file. An error names the file."""
        for file, kind in self._files:
            self.reading = file
            try:
                for batch in self._read(file, kind):
                    yield conform(batch, self.schema, extra_columns=self._extra_columns)
            except LakebedError as error:
                error.facts.setdefault("path", file)
                raise
        self.reading = None

    def _read(self, file: Path, kind: FileFormat) -> Iterator[pa.RecordBatch]:
        if kind == "csv":
            return csv_batches(file, self.schema)
        if kind == "jsonl":
            return json_batches(file, self.schema, extra_columns=self._extra_columns)
        return parquet_batches(file)


class WatchedSource:
    """Rows of another source; tells after each batch how many were read."""

    def __init__(self, source: FileSource | ArrowSource, told: Callable[[int], None]) -> None:
        self._source = source
        self._told = told
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
            self._told(rows)


class ArrowSource:
    """Rows of Arrow data: anything with `__arrow_c_stream__` or `__arrow_c_array__`.

    A stream can be read once: its digest is known when all of it has been read.
    """

    def __init__(
        self, rows: object, schema: Schema, *, extra_columns: ExtraColumns = "refuse"
    ) -> None:
        self._rows: pa.Table | pa.RecordBatchReader = _as_arrow(rows)
        self.schema = schema
        self._extra_columns: ExtraColumns = extra_columns
        self._known: RequestDigest | None = None

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the columns and every row; None before a stream was read."""
        if self._known is None and isinstance(self._rows, pa.Table):
            digest = _begun(self._rows.schema)
            for batch in self._rows.to_batches():
                digest.update(batch.serialize())
            self._known = RequestDigest(digest.digest())
        return self._known

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        digest = _begun(self._rows.schema)
        whole = isinstance(self._rows, pa.Table)
        for batch in self._rows.to_batches(STREAM_BATCH_ROWS) if whole else self._rows:
            if not whole:
                digest.update(batch.serialize())
            yield conform(batch, self.schema, extra_columns=self._extra_columns)
        if not whole:
            self._known = RequestDigest(digest.digest())


def source_of(
    rows: object,
    schema: Schema,
    *,
    format: FileFormat | None = None,
    extra_columns: ExtraColumns = "refuse",
) -> FileSource | ArrowSource:
    """Return the rows that a user names: a path, several paths, or Arrow data.

    Raises:
        InvalidError: it is none of these, or a path holds nothing to ingest.
    """
    if isinstance(rows, (str, os.PathLike)):
        return FileSource([rows], schema, format=format, extra_columns=extra_columns)
    if isinstance(rows, (list, tuple)) and all(isinstance(r, (str, os.PathLike)) for r in rows):
        return FileSource(rows, schema, format=format, extra_columns=extra_columns)
    return ArrowSource(rows, schema, extra_columns=extra_columns)


def expanded(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that paths name, directories walked; `_` and `.` names in them are skipped.

    Raises:
        InvalidError: a path that does not exist, or a directory without files.
    """
    files: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found = sorted(_files_below(path))
            if not found:
                hint = "names that begin with '_' or '.' are skipped"
                raise InvalidError("a directory with nothing to ingest", path=path, hint=hint)
            files += found
        elif path.exists():
            files.append(path)
        else:
            hint = (
                f"paths are relative to {Path.cwd()}" if not path.is_absolute() else "look for it"
            )
            raise InvalidError("no such file or directory", path=path, hint=hint)
    if not files:
        raise InvalidError("nothing to ingest", hint="name a file or a directory")
    return files


def format_of(file: Path) -> FileFormat:
    """Return the format that a file's name tells. Raises: InvalidError, when it tells none."""
    suffix = file.suffix.lower().lstrip(".")
    if suffix in FORMATS:
        return suffix
    if suffix in _ALSO:
        return _ALSO[suffix]
    hint = f"say format={' or format='.join(FORMATS)}"
    raise InvalidError("the name does not tell the file's format", path=file, hint=hint)


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(("_", ".")):
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            yield path


def _facts(file: Path, kind: str) -> tuple[bytes, ...]:
    try:
        facts = file.stat()
    except OSError as error:
        raise UnreadableInputError("cannot read the file", path=file, reason=error) from None
    name = str(file.resolve())
    return (
        name.encode(),
        kind.encode(),
        str(facts.st_size).encode(),
        str(facts.st_mtime_ns).encode(),
    )


def _begun(columns: pa.Schema) -> Any:  # noqa: ANN401 - hashlib's objects have no public type
    digest = hashlib.blake2b(digest_size=16)
    digest.update(columns.serialize())
    return digest


def _as_arrow(rows: object) -> pa.Table | pa.RecordBatchReader:
    if isinstance(rows, (pa.Table, pa.RecordBatchReader)):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    if hasattr(rows, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(rows)])
    raise InvalidError(
        "not rows",
        got=type(rows).__name__,
        hint="give a path, or a table of pyarrow, pandas, Polars or DuckDB",
    )
