"""Users' files of JSON lines as streams of record batches. Types are the schema's, never guessed.

Arrow parses whole blocks of lines. Where it rejects one, its rows are decoded and written as Arrow
reads them (`json_rewriting.py`): maps, which it knows as lists of pairs only, and numbers that come
as strings. What JSON has as text becomes its type afterwards, whole columns at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.changes.field_changes import former_names
from lakebed.model.schema import Schema
from lakebed.user_files.casting import OR_DROP
from lakebed.user_files.csv_and_parquet import NO_OFFSET, opened, problem_of, readable
from lakebed.user_files.json_columns import converted, json_type
from lakebed.user_files.json_rewriting import LINE_HINT, Rewriting
from lakebed.user_files.zones import NO_ZONES, SAY_ZONE, Zones

BLOCK_BYTES = 4 * 1024 * 1024
REWRITTEN_BYTES = 64 * 1024
"""A rejected block is halved down to this size, so that few rows are decoded with the wrong one."""
ARRAY_BYTES_MAX = 256 * 1024 * 1024
ARRAY_ROWS = 10_000
LINE_BYTES_MAX = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_NULL_FIRST = re.compile(rb"\s*null")


def json_batches(
    path: Path,
    schema: Schema,
    *,
    extra_columns: Literal["refuse", "drop"] = "refuse",
    zones: Zones = NO_ZONES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of JSON lines, or of one JSON array of objects; none when it is
    empty. A file that ends with .gz is read as what is in it.

    A field that a line does not have is null. Integers of 64 bits and decimals may come as strings;
    binary is base64; dates and times are ISO 8601, where the field is in UTC with an offset or a
    zone; a date is its midnight; NaN and infinities come as strings; a map is an object.

    extra_columns: "drop" ignores unknown names.
    zones: of times without an offset, by field.

    Raises:
        InvalidError: an unknown name, a required field that is null or missing.
        UnreadableInputError: a line cannot be read as what it should be. Both name the line.
    """
    lines = _Lines(path, schema, drop=extra_columns == "drop", zones=zones)
    with readable(path):
        first = 1
        for block in _blocks(path):
            batch = lines.read(block, first)
            if batch.num_rows:
                yield batch
            first += block.count(b"\n")


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield whole lines, some megabytes at a time. The rows of an array are a line each."""
    rest = b""
    with opened(path) as file:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        begin = file.tell()
        if file.read(BLOCK_BYTES).lstrip().startswith(b"["):
            file.seek(begin)
            yield from _blocks_of_array(file, path)
            return
        file.seek(begin)
        while piece := file.read(BLOCK_BYTES):
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
            rest = piece[end:] if end else rest + piece
            if len(rest) > LINE_BYTES_MAX:
                hint = f"a line has at most {LINE_BYTES_MAX:,} bytes"
                raise UnreadableInputError("a line is too long", path=path, hint=hint)
    if rest:
        yield rest


def _blocks_of_array(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield the objects of a JSON array as lines. Their bytes are cut apart, none is parsed."""
    text = file.read(ARRAY_BYTES_MAX + 1)
    if len(text) > ARRAY_BYTES_MAX:
        hint = f"write JSON lines: an array has at most {ARRAY_BYTES_MAX:,} bytes"
        raise UnreadableInputError("a JSON array is too long", path=path, hint=hint)
    flat = text.replace(b"\n", b" ").replace(b"\r", b" ")  # in texts they are escaped
    try:
        rows = msgspec.json.decode(flat, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        raise UnreadableInputError(
            "a JSON array cannot be read", path=path, problem=error, hint=LINE_HINT
        ) from None
    for first in range(0, len(rows), ARRAY_ROWS):
        yield b"".join(bytes(row) + b"\n" for row in rows[first : first + ARRAY_ROWS])


class _Lines:
    """Reads blocks of lines of one file."""

    def __init__(self, path: Path, schema: Schema, *, drop: bool, zones: Zones) -> None:
        self._path = path
        self._schema = schema
        self._zones = zones
        self._rewriting = Rewriting({field.name: field.type for field in schema.fields})
        known = {field.name for field in schema.fields}
        former = former_names(schema.past) if drop else {}
        self._former = {name: now for name, now in former.items() if name not in known}
        quoted = b"|".join(
            re.escape(json.dumps(n, ensure_ascii=False).encode()) for n in self._former
        )
        self._any_former = re.compile(rb"(?<!\\)(?:" + quoted + rb")[ \t]*:")
        self._columns = pa.schema([(f.name, json_type(f.type)) for f in schema.fields])
        self._options = pa.json.ParseOptions(
            explicit_schema=self._columns,
            newlines_in_values=False,
            unexpected_field_behavior="ignore" if drop else "error",
        )

    def read(self, block: bytes, first: int) -> pa.RecordBatch:
        """Return the rows of lines. first: number of the first line."""
        if self._former:
            self._refuse_former(block, first)
        try:
            batch = self._try(block)
        except (pa.ArrowException, UnreadableInputError) as error:
            self._blame(block, first, error)
        for field in self._schema.fields:
            nulls = batch.column(field.name)
            if not field.nullable and nulls.null_count:
                row = pc.index(nulls.is_null(), True).as_py()  # bounded: one number
                line = _line_of(block, row) + first
                hint = "give it a value on each line"
                raise InvalidError(
                    "a required field is null or missing", field=field.name, line=line, hint=hint
                )
        return batch

    def _try(self, block: bytes) -> pa.RecordBatch:
        batches = self._parsed(block)
        parsed = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        columns = [
            converted(column, field.type, field.name, self._zones.get(field.name))
            for field, column in zip(self._schema.fields, parsed.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._columns.names)

    def _parsed(self, block: bytes) -> list[pa.RecordBatch]:
        """Parse lines as they are, and rewrite only pieces that Arrow rejects."""
        try:
            return [self._parse(block)]
        except pa.ArrowException:
            cut = block.find(b"\n{", len(block) // 2) + 1
            if len(block) <= REWRITTEN_BYTES or not cut:
                return [self._parse(self._rewriting.rewritten(block))]
        return self._parsed(block[:cut]) + self._parsed(block[cut:])

    def _parse(self, text: bytes) -> pa.RecordBatch:
        if _NULL_FIRST.match(text):  # Arrow would crash: apache/arrow#47409
            raise pa.ArrowInvalid("JSON parse error: a row is null, and not an object")
        read = pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        rows = pa.json.read_json(pa.BufferReader(text), read, self._options)
        (batch,) = rows.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=self._columns)
        ]
        return batch.select(self._columns.names)

    def _blame(self, block: bytes, line: int, error: Exception) -> NoReturn:
        """Find the first line that cannot be read, by halves, and say what is wrong with it."""
        while True:
            cut = block.find(b"\n", len(block) // 2) + 1
            if cut in (0, len(block)):
                cut = block.rfind(b"\n", 0, len(block) // 2) + 1
            if not cut:
                break
            try:
                self._try(block[:cut])
            except (pa.ArrowException, UnreadableInputError) as found:
                block, error = block[:cut], found
            else:
                line += block.count(b"\n", 0, cut)
                block = block[cut:]
        try:
            self._try(block)
        except (pa.ArrowException, UnreadableInputError) as found:
            error = found
        self._refuse_unknown(block, line)
        facts = {"path": self._path, "line": line}
        if isinstance(error, UnreadableInputError):
            error.facts = facts | error.facts
            raise error
        problem = problem_of(error).removesuffix(" in row 0")
        hint = SAY_ZONE if NO_OFFSET in problem else LINE_HINT
        raise UnreadableInputError(
            "a line cannot be read", **facts, problem=problem, hint=hint
        ) from None

    def _refuse_former(self, block: bytes, first: int) -> None:
        """Refuse a line that has a field by its old name alone: to drop it would lose values that
        have a place. Lines are looked into only where such a name stands, be it in a nested one."""
        end = 0
        while (match := self._any_former.search(block, end)) is not None:
            begin = block.rfind(b"\n", 0, match.start()) + 1
            end = block.find(b"\n", match.end())
            end = len(block) if end < 0 else end
            names = _names_of(block[begin:end])
            for name in names:
                if name in self._former and self._former[name] not in names:
                    hint, line = self._schema.hint_for(name), first + block.count(b"\n", 0, begin)
                    raise InvalidError(
                        "a column has its field's old name", field=name, line=line, hint=hint
                    )

    def _refuse_unknown(self, block: bytes, line: int) -> None:
        if self._options.unexpected_field_behavior == "ignore":
            return
        for name in _names_of(block):
            if name not in self._columns.names:
                hint = self._schema.hint_for(name)
                raise InvalidError(
                    "unknown column", field=name, line=line, hint=f"{hint} {OR_DROP}"
                ) from None


def _names_of(line: bytes) -> list[str]:
    """Return the names on a line; none where it is no object."""
    try:
        found = json.loads(line)  # bounded: one line
    except (ValueError, RecursionError):
        return []
    return list(found) if isinstance(found, dict) else []


def _line_of(block: bytes, row: int) -> int:
    """Return the index of the line that holds a row; empty lines hold none."""
    holding = [index for index, line in enumerate(block.split(b"\n")) if line.strip()]
    return holding[min(row, len(holding) - 1)]
