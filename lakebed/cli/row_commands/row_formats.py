"""Rows of a query as a table for people, JSON lines, CSV or Parquet: batch by batch, never all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from lakebed.errors import InvalidError
from lakebed.model.disk_errors import translated
from lakebed.user_files.json_text import json_lines, plain_texts

Format = Literal["table", "jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("table", "jsonl", "csv", "parquet")
COMPRESSED = ".gz"
_NAMED: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    f".csv{COMPRESSED}": "csv",
    ".jsonl": "jsonl",
    f".jsonl{COMPRESSED}": "jsonl",
    ".ndjson": "jsonl",
    f".ndjson{COMPRESSED}": "jsonl",
}
TEXT_BYTES_AT_ONCE = 8 * 1024 * 1024
PAGE_ROWS = 1_000
CELL_COLUMNS_MAX = 40


def format_named(path: Path) -> Format:
    """Return the format that the name of an output has.

    Raises:
        InvalidError: it has none.
    """
    name = path.name.lower()
    for ending, format_ in _NAMED.items():
        if name.endswith(ending):
            return format_
    hint = (
        "name it .parquet, .csv, .csv.gz, .jsonl or .jsonl.gz, or say"
        f" --format {', --format '.join(FORMATS)}"
    )
    raise InvalidError("the name does not show the output's format", output=path, hint=hint)


UNFINISHED_LETTERS = 60
"""Characters of a file's name that an unfinished file keeps: with the suffix of its own, its name
must not become longer than names may be."""


def write_rows(
    rows: pa.RecordBatchReader,
    format: Format,
    out: IO[bytes],
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write all rows; return how many there were. on_progress: called with how many so far."""
    written = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal written
        for batch in rows:
            yield batch
            written += batch.num_rows
            on_progress(written)

    writer = {"table": _table, "jsonl": _jsonl, "csv": _csv, "parquet": _parquet}[format]
    writer(rows.schema, counted(), out)
    return written


def check_output(path: Path) -> None:
    """Refuse a place where no file can appear, before a row is read.

    Raises:
        InvalidError: its folder is missing, or what is there is no file. DeniedError: it may not be
            looked at.
    """
    with translated("looking at the output"):
        if path.is_dir():
            hint = f"name a file in it, for instance {path / 'rows.parquet'}"
            raise InvalidError("the output is a folder", output=path, hint=hint)
        if path.exists() and not path.is_file():
            hint = "name a file, or leave --output out: rows go to the terminal or a pipe"
            raise InvalidError("the output is there, and is no file", output=path, hint=hint)
        if not path.parent.is_dir():
            hint = "make the folder first"
            raise InvalidError("no folder for the output", output=path, hint=hint)


def write_file(
    rows: pa.RecordBatchReader,
    format: Format,
    path: Path,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write all rows to a file that appears, or replaces another, when it is complete. Who has the
    other one open reads it to its end. on_progress: as in `write_rows`.

    A text format is compressed where the file's name ends with `.gz`.

    Raises:
        StorageFullError, DeniedError, UnavailableError: what was there stays as it was.
    """
    whole = path.resolve()  # of a link, what it leads to is replaced
    unfinished = whole.with_name(f".{whole.name[:UNFINISHED_LETTERS]}.{os.getpid()}.unfinished")
    is_compressed = format != "parquet" and path.name.lower().endswith(COMPRESSED)
    try:
        with translated(f"writing {path}"):
            with unfinished.open("wb") as file:
                if not is_compressed:
                    written = write_rows(rows, format, file, on_progress=on_progress)
                else:
                    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                        written = write_rows(
                            rows, format, cast("IO[bytes]", packed), on_progress=on_progress
                        )
            unfinished.replace(whole)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return written


def _jsonl(_: pa.Schema, batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> None:
    for batch in batches:
        for part in _parts(batch):
            out.write(json_lines(part))


def _csv(columns: pa.Schema, batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> None:
    """Return CSV that `lakebed ingest` reads: binary as base64, nulls empty, text in quotes."""
    kept = {c.name: _csv_keeps(c.type) for c in columns}
    shown = pa.schema([c if kept[c.name] else pa.field(c.name, pa.string()) for c in columns])
    with pa.csv.CSVWriter(pa.PythonFile(out, mode="w"), shown) as writer:
        for batch in batches:
            for part in _parts(batch):
                texts = [
                    column if kept[name] else plain_texts(column)
                    for name, column in zip(columns.names, part.columns, strict=True)
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(texts, schema=shown))


def _csv_keeps(type_: pa.DataType) -> bool:
    """Return whether Arrow writes values of a type into CSV as we want them."""
    kinds = pa.types
    return not (kinds.is_nested(type_) or kinds.is_binary(type_) or kinds.is_timestamp(type_))


def _parquet(columns: pa.Schema, batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> None:
    with pq.ParquetWriter(out, columns, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _table(columns: pa.Schema, batches: Iterable[pa.RecordBatch], out: IO[bytes]) -> None:
    """Aligned columns; widths are those of the first page."""
    widths: list[int] = []
    numbers = [pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in columns]

    def line(cells: list[str]) -> bytes:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numbers, strict=True)
        )
        return ("  ".join(aligned).rstrip() + "\n").encode()

    for page in _pages(batches):
        cells = [
            [_cell(text) for text in plain_texts(column).to_pylist()]  # bounded: a page
            for column in page.columns
        ]
        if not widths:
            widths = [
                max(len(name), *map(len, texts))
                for name, texts in zip(columns.names, cells, strict=True)
            ]
            out.write(line(columns.names))
            out.write(line(["-" * width for width in widths]))
        out.writelines(line(list(row)) for row in zip(*cells, strict=True))


def _pages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield pages of PAGE_ROWS rows, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        for start in range(0, batch.num_rows, PAGE_ROWS):
            part = batch.slice(start, PAGE_ROWS - rows)
            held, rows = [*held, part], rows + part.num_rows
            if rows == PAGE_ROWS:
                yield _one(held)
                rest = batch.slice(start + part.num_rows, PAGE_ROWS - part.num_rows)
                held, rows = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]


def _cell(text: str | None) -> str:
    if text is None:
        return "null"
    shown = "".join(
        c if c.isprintable() else "\N{MIDDLE DOT}" for c in text[: CELL_COLUMNS_MAX + 1]
    )
    return shown if len(shown) <= CELL_COLUMNS_MAX else f"{shown[: CELL_COLUMNS_MAX - 1]}…"


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices whose text stays far below what one Arrow array of text can hold."""
    width = max(1, batch.nbytes // max(1, batch.num_rows))
    rows = max(1, TEXT_BYTES_AT_ONCE // width)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
