"""Users' own files: which ones a request names, what they are, and their rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa

from lakebed.errors import InvalidError, LakebedError, UnreadableInputError, did_you_mean
from lakebed.model.addresses import scheme_of
from lakebed.model.names import RequestDigest, digest_of
from lakebed.model.schema import Schema
from lakebed.user_files.casting import conformed
from lakebed.user_files.csv_and_parquet import csv_batches, parquet_batches
from lakebed.user_files.input_paths import files_at
from lakebed.user_files.json_lines import json_batches
from lakebed.user_files.zones import NO_ZONES, Zones

FileFormat = Literal["parquet", "csv", "jsonl"]
ExtraColumns = Literal["refuse", "drop"]
EXTRA_COLUMNS: tuple[ExtraColumns, ...] = ("refuse", "drop")
FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "jsonl")
_ALSO: dict[str, FileFormat] = {"ndjson": "jsonl", "json": "jsonl", "tsv": "csv"}
_COMPRESSED = ".gz"


class InputFile(msgspec.Struct, frozen=True):
    """A file to take rows from.

    version: another one when the file was changed.
    """

    path: str
    kind: FileFormat
    size: int
    version: str


def input_files(
    paths: Iterable[str | os.PathLike[str]],
    format: FileFormat | None = None,
    *,
    skip: Callable[[Path, LakebedError], None] | None = None,
) -> list[InputFile]:
    """Return the files that paths name, directories walked; `_` and `.` names in them are skipped.
    A pattern, as `day-*.csv`, means the files that it matches. skip: called for each file of a
    directory or a pattern whose name does not tell its format, in place of raising.

    Raises:
        InvalidError: a path that does not exist, a directory without files, a format that does not
            exist or that a name does not tell. UnreadableInputError: a file that cannot be seen.
    """
    if format is not None and format not in FORMATS:
        hint = did_you_mean(format, FORMATS, what="format")
        raise InvalidError("no such format", format=format, hint=hint)
    given = {Path(path) for path in paths}
    found = []
    for path in expanded(paths):
        try:
            kind = format or format_of(path)
        except InvalidError as error:
            if skip is None or path in given:
                raise
            skip(path, error)
        else:
            found.append(_seen(path, kind))
    return found


def extra_columns_of(text: str) -> ExtraColumns:
    """Return what is done with columns that a table does not have. Raises: InvalidError."""
    for known in EXTRA_COLUMNS:
        if text == known:
            return known
    hint = f"say {' or '.join(EXTRA_COLUMNS)}"
    raise InvalidError("not a way with further columns", extra_columns=text, hint=hint)


def digest_of_files(files: Sequence[InputFile]) -> RequestDigest:
    """Return what stands for a request: names, sizes and versions, not bytes."""
    return digest_of(
        *(
            part.encode()
            for file in files
            for part in (_whole_name(file.path), file.kind, str(file.size), file.version)
        )
    )


def rows_of(
    file: InputFile,
    schema: Schema,
    *,
    extra_columns: ExtraColumns = "refuse",
    row_groups: range | None = None,
    zones: Zones = NO_ZONES,
    delimiter: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file as columns of the schema.

    row_groups: row groups of a Parquet file; None: all.
    zones: of times without an offset, by field.
    delimiter: of CSV; None: a comma, a tab in files that end with .tsv.

    Raises:
        InvalidError, UnreadableInputError: they do not fit, or cannot be read. It names the file.
    """
    if file.kind == "csv":
        stem = file.path.lower().removesuffix(_COMPRESSED)
        used = delimiter or ("\t" if stem.endswith(".tsv") else ",")
        batches = csv_batches(Path(file.path), schema, zones=zones, delimiter=used)
    else:
        batches = _read(
            file, schema, extra_columns=extra_columns, row_groups=row_groups, zones=zones
        )
    try:
        yield from conformed(batches, schema, extra_columns=extra_columns, zones=zones)
    except LakebedError as error:
        error.facts.setdefault("path", Path(file.path))
        raise


def expanded(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that paths name, directories walked; `_` and `.` names in them are skipped.

    Raises:
        InvalidError: a path that does not exist, a directory without files, or what `files_at`
            refuses: a pipe, a device, a loop of links.
    """
    files: list[Path] = []
    for given in paths:
        path = Path(given)
        if not os.path.lexists(path) and (matching := _matching(path)):
            files += matching
            continue
        found = files_at(path)
        if not found:
            hint = "names that begin with '_' or '.' are skipped"
            raise InvalidError("a directory with nothing to ingest", path=path, hint=hint)
        files += found
    if not files:
        raise InvalidError("nothing to ingest", hint="name a file or a directory")
    return files


def _matching(pattern: Path) -> list[Path]:
    """Return the files that a pattern matches, as a shell would."""
    if not glob.has_magic(str(pattern)):
        return []
    base = Path(pattern.anchor)
    found = sorted(base.glob(str(pattern.relative_to(base))))
    return [path for path in found if path.is_file()]


def format_of(file: Path) -> FileFormat:
    """Return the format that a file's name has, also before `.gz`.

    Raises:
        InvalidError: it tells none, or is that of compressed Parquet.
    """
    is_compressed = file.suffix.lower() == _COMPRESSED
    suffix = (Path(file.stem) if is_compressed else file).suffix.lower().lstrip(".")
    if is_compressed and suffix == "parquet":
        hint = "take the .gz away: gunzip it"
        raise InvalidError("Parquet is compressed inside", path=file, hint=hint)
    if suffix in FORMATS:
        return suffix
    if suffix in _ALSO:
        return _ALSO[suffix]
    hint = f"say format={' or format='.join(FORMATS)}"
    raise InvalidError("the name does not show the file's format", path=file, hint=hint)


def _whole_name(path: str) -> str:
    return path if scheme_of(path) else str(Path(path).resolve())


def _read(
    file: InputFile,
    schema: Schema,
    *,
    extra_columns: ExtraColumns,
    row_groups: range | None,
    zones: Zones,
) -> Iterator[pa.RecordBatch]:
    path = Path(file.path)
    if file.kind == "jsonl":
        return json_batches(path, schema, extra_columns=extra_columns, zones=zones)
    return parquet_batches(path, row_groups)


def _seen(path: Path, kind: FileFormat) -> InputFile:
    try:
        facts = path.stat()
    except OSError as error:
        raise UnreadableInputError("cannot read the file", path=path, reason=error) from None
    return InputFile(str(path), kind, facts.st_size, str(facts.st_mtime_ns))
