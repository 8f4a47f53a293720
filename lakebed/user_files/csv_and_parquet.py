"""Users' own files as streams of record batches: Parquet and CSV. JSON: `json_lines.py`."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.disk_errors import is_too_many_open, meaning_of
from lakebed.model.schema import Schema
from lakebed.model.types import Decimal, Primitive
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.user_files.decimals import decimals_from_text
from lakebed.user_files.memory_errors import enough_memory
from lakebed.user_files.parquet_texts import long_texts, rows_of_shared
from lakebed.user_files.zones import NO_ZONES, SAY_ZONE, Zones, texts_in_utc

NO_OFFSET = "expected a zone offset"
"""Words in Arrow's message about a time without a zone offset where there must be one."""
BATCH_ROWS_MAX = 65_536
BATCH_BYTES = 32 * 1024 * 1024
HEADER_BYTES_MAX = 1 << 20
_OF_LINES = {
    "straddling object": "a line of CSV is longer than 1 MiB",
    "out of sync with chunker": "a quoted value of CSV has line breaks, in a file beyond 1 MiB",
}
"""Words in Arrow's messages about lines that do not fit into the blocks that it reads, each with
what it means."""
HEADER_SHOWN = 80
"""Letters of a first line that is no header."""
PARQUET_END_BYTES = 8
"""Bytes behind the footer: its length, and `PAR1`."""
NULL_TOKENS = ("", "NULL", "null", r"\N")
_BASE64 = np.full(256, 255, np.uint8)
_BASE64[
    np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
] = np.arange(64)


def parquet_columns(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file, as `parquet_batches` gives them.

    Raises:
        UnreadableInputError: it is not a Parquet file.
    """
    with readable(path), pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        return _in_utc(file.schema_arrow, _spark_times(file.metadata.schema))


class ParquetLayout(NamedTuple):
    """The layout of a Parquet file: its parts, each as bytes `[begin, end)`."""

    row_groups: list[tuple[int, int]]
    footer: tuple[int, int]


def parquet_footer_bytes(path: Path) -> int:
    """Return how many bytes at the end of a Parquet file are its footer, by the last eight.

    Raises:
        UnreadableInputError: it is not a Parquet file.
    """
    with readable(path), path.open("rb") as file:
        file.seek(-PARQUET_END_BYTES, os.SEEK_END)
        length, magic = struct.unpack("<I4s", file.read(PARQUET_END_BYTES))
        if magic != b"PAR1":
            raise ValueError("it does not end as Parquet does")
        return PARQUET_END_BYTES + int(length)


def parquet_layout(path: Path) -> ParquetLayout:
    """Return where row groups and footer of a Parquet file lie. Only its footer is read.

    Raises:
        UnreadableInputError: it is not a Parquet file.
    """
    with readable(path), pq.ParquetFile(path) as file:
        facts = file.metadata
        size = path.stat().st_size
        footer = (max(0, size - facts.serialized_size - PARQUET_END_BYTES), size)
        return ParquetLayout(
            [_extent(facts.row_group(g)) for g in range(facts.num_row_groups)], footer
        )


def _extent(row_group: pq.RowGroupMetaData) -> tuple[int, int]:
    begins, ends = [], []
    for index in range(row_group.num_columns):
        column = row_group.column(index)
        begin = column.data_page_offset
        if column.has_dictionary_page and 0 < column.dictionary_page_offset < begin:
            begin = column.dictionary_page_offset
        begins.append(begin)
        ends.append(begin + column.total_compressed_size)
    return min(begins), max(ends)


def parquet_batches(path: Path, row_groups: range | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, a part of a row group at a time; a batch without rows when
    it has none, so that its columns are seen. row_groups: row groups to read; None: all.

    Times that Spark wrote as INT96 come as UTC, which is what Spark means by them.

    Raises:
        UnreadableInputError: the file is cut off, damaged, or not Parquet at all.
    """
    with readable(path):
        file = _opened(path)
        with file:
            metadata = file.metadata
            for row_group in range(metadata.num_row_groups) if row_groups is None else row_groups:
                yield from _rows_of_row_group(path, file, row_group)
            if row_groups is None and not metadata.num_rows:
                yield _without_rows(_in_utc(file.schema_arrow, _spark_times(metadata.schema)))


def _rows_of_row_group(
    path: Path, file: pq.ParquetFile, row_group: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group; long texts that repeat come as dictionaries."""
    metadata = file.metadata
    spark_times = _spark_times(metadata.schema)
    facts = metadata.row_group(row_group)
    width = max(1, facts.total_byte_size // max(1, facts.num_rows))
    rows = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES // width, rows_of_shared(metadata, row_group)))
    texts = long_texts(path, metadata, row_group, rows)
    with _opened(path, metadata, texts) if texts else nullcontext(file) as opened:
        for batch in opened.iter_batches(rows, row_groups=[row_group], use_threads=False):
            yield _with_utc(batch, spark_times) if spark_times else batch


def _opened(
    path: Path, metadata: pq.FileMetaData | None = None, texts: Sequence[str] = ()
) -> pq.ParquetFile:
    return pq.ParquetFile(
        path,
        metadata=metadata,
        read_dictionary=list(texts),
        pre_buffer=False,
        buffer_size=64 * 1024,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",
    )


def _with_utc(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    return batch.cast(_in_utc(batch.schema, names))


def csv_batches(
    path: Path,
    schema: Schema,
    *,
    null_tokens: Sequence[str] = NULL_TOKENS,
    zones: Zones = NO_ZONES,
    delimiter: str = ",",
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file with a header, a batch without rows when it has none. Types are
    the schema's, never guessed.

    Columns that the schema does not have come as text. A null is one of the tokens, not quoted;
    `""` is an empty string. Times need an offset where the field is in UTC, or a zone; a date is
    its midnight. Binary is base64. A file that ends with .gz is read as what is in it.

    Raises:
        InvalidError: the schema has nested fields.
        UnreadableInputError: a line or a value cannot be read as what it should be.
    """
    kinds = {}
    for field, column in zip(schema.fields, arrow_schema(schema), strict=True):
        if not isinstance(field.type, Primitive | Decimal):
            hint = "write Parquet instead"
            raise InvalidError("CSV has no nested fields", field=field.name, hint=hint)
        is_read_here = pa.types.is_binary(column.type) or pa.types.is_decimal(column.type)
        as_text = is_read_here or field.name in zones
        kinds[field.name] = pa.string() if as_text else column.type
    makers = _makers(schema, zones)
    with readable(path):
        parse = pa.csv.ParseOptions(delimiter=delimiter)
        header = _csv_header(path, parse)
        _refuse_no_header(header, schema)
        options = pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in header} | kinds,
            null_values=list(null_tokens),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = pa.csv.ReadOptions(use_threads=False)
        whole = _with_a_line(path)
        with pa.csv.open_csv(whole, read, parse, options) as reader:
            has_rows = False
            for batch in reader:
                has_rows = has_rows or batch.num_rows > 0
                yield _with(batch, {name: made for name, made in makers.items() if name in header})
    if not has_rows:
        wanted = {column.name: column.type for column in arrow_schema(schema)}
        yield _without_rows(pa.schema([(n, wanted.get(n, pa.string())) for n in header]))


def _makers(schema: Schema, zones: Zones) -> dict[str, Callable[[pa.Array], pa.Array]]:
    """Return what makes values of the text of a column, for those that Arrow does not read."""
    makers: dict[str, Callable[[pa.Array], pa.Array]] = {}
    for column in arrow_schema(schema):
        if pa.types.is_binary(column.type):
            makers[column.name] = partial(from_base64, field=column.name)
        elif pa.types.is_decimal(column.type):
            makers[column.name] = partial(_decimals, type_=column.type, name=column.name)
    return makers | {name: partial(texts_in_utc, zone=zone) for name, zone in zones.items()}


def _with(
    rows: pa.RecordBatch, makers: Mapping[str, Callable[[pa.Array], pa.Array]]
) -> pa.RecordBatch:
    for name, made in makers.items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, made(rows.column(name)))
    return rows


def _decimals(texts: pa.Array, *, type_: pa.DataType, name: str) -> pa.Array:
    try:
        return decimals_from_text(texts, type_)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"in column {name}: {error}") from None


def _without_rows(columns: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], c.type) for c in columns], schema=columns)


def _refuse_no_header(header: list[str], schema: Schema) -> None:
    """Raise InvalidError where the first line names no field: it is a row, then, or another
    table's."""
    if schema.past or not {field.name for field in schema.fields}.isdisjoint(header):
        return
    shown = ",".join(header)
    raise UnreadableInputError(
        "the first line names no field of the table",
        line=shown if len(shown) <= HEADER_SHOWN else f"{shown[:HEADER_SHOWN]}...",
        fields=", ".join(field.name for field in schema.fields),
        hint="a CSV file begins with a header: the names of its columns",
    )


def _with_a_line(path: Path) -> Path | pa.BufferReader:
    """Return a file; one that is a header and does not end its line as if it did: Arrow finds no
    columns in it else."""
    with opened(path) as file:
        begin = file.read(HEADER_BYTES_MAX)
    is_header = 0 < len(begin) < HEADER_BYTES_MAX and b"\n" not in begin
    return pa.BufferReader(begin + b"\n") if is_header else path


def _csv_header(path: Path, parse: pa.csv.ParseOptions) -> list[str]:
    as_text = pa.csv.ConvertOptions(check_utf8=True)
    with pa.csv.open_csv(_with_a_line(path), None, parse, as_text) as reader:
        names: list[str] = reader.schema.names
        return names


def from_base64(column: pa.Array, field: str) -> pa.Array:
    """Return the bytes that base64 text stands for. Whole texts are multiples of four letters, so
    all texts together can be decoded as one.

    Raises:
        UnreadableInputError: a text is not base64.
    """
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
    letters = np.frombuffer(data if data is not None else b"", np.uint8)[starts[0] : starts[-1]]
    starts = starts - starts[0]
    padding = letters == ord("=")
    padded = np.concatenate([[0], np.cumsum(padding)])
    pads = padded[starts[1:]] - padded[starts[:-1]]
    lengths = np.diff(starts)
    ends = [starts[1:][pads > n] - 1 - n for n in (0, 1)]
    if (
        (lengths % 4).any()
        or (pads > 2).any()
        or not all(padding[end].all() for end in ends)
        or (_BASE64[letters[~padding]] == 255).any()
    ):
        hint = "write it with padding, of A-Z, a-z, 0-9, + and /"
        raise UnreadableInputError("binary is not base64", field=field, hint=hint)
    sixes = np.where(padding, 0, _BASE64[letters]).astype(np.uint32).reshape(-1, 4)
    words = (sixes[:, 0] << 18) | (sixes[:, 1] << 12) | (sixes[:, 2] << 6) | sixes[:, 3]
    triples = np.stack([words >> 16, words >> 8, words], axis=1).astype(np.uint8).ravel()
    keep = np.ones(len(triples), bool)
    for n in (0, 1):
        keep[starts[1:][pads > n] // 4 * 3 - 1 - n] = False
    new_starts = np.concatenate([[0], np.cumsum(lengths // 4 * 3 - pads)]).astype(np.int32)
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.BinaryArray.from_buffers(
        pa.binary(),
        len(column),
        [valid, pa.py_buffer(new_starts), pa.py_buffer(triples[keep].tobytes())],
    )


def _spark_times(schema: pq.ParquetSchema) -> set[str]:
    columns = (schema.column(index) for index in range(len(schema)))
    return {column.path for column in columns if column.physical_type == "INT96"}


def _in_utc(columns: pa.Schema, names: set[str]) -> pa.Schema:
    in_utc = pa.timestamp("us", tz="UTC")
    return pa.schema([c.with_type(in_utc) if c.name in names else c for c in columns])


def opened(path: Path) -> BinaryIO:
    """Return an open file: of one that ends with .gz, what is in it."""
    if path.suffix.lower() == ".gz":
        return cast("BinaryIO", gzip.open(path, "rb"))
    return path.open("rb")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Tell what goes wrong inside as an input file that cannot be read."""
    try:
        with enough_memory():
            yield
    except UnreadableInputError as error:
        error.facts = {"path": path, **error.facts}
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and is_too_many_open(error):  # nothing is wrong with it
            raise meaning_of(error, f"opening the input {path}") from error
        problem = problem_of(error)
        raise UnreadableInputError(
            "an input file cannot be read", path=path, problem=problem, hint=_hint(path, problem)
        ) from error


def problem_of(error: Exception) -> str:
    """Return what Arrow says went wrong, without what it advises."""
    first = str(error).splitlines()[0] if str(error) else repr(error)
    for said, meaning in _OF_LINES.items():
        if said in first:
            return meaning
    return first.split(". If these timestamps")[0]


def _hint(path: Path, problem: str) -> str:
    if NO_OFFSET in problem:
        return SAY_ZONE
    if problem in _OF_LINES.values():
        return "write the rows as Parquet, or as lines of JSON: those take them"
    if not path.exists():
        return "there is no such file"
    if path.is_file() and path.stat().st_size == 0:
        return "the file has 0 bytes: was its writer interrupted?"
    return "check that the file is whole, and of the format it is said to be"
