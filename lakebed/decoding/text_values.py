"""Delimited text: each payload is one line of fields. Arrow splits a block of them at once; lines
that it takes otherwise than Python's `csv` are judged one by one."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lakebed.config.decoders import DecoderSettings
from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.json_ordinals import bounds_of, chosen
from lakebed.decoding.masks import (
    DIGITS_MAX,
    REFUSALS,
    bools,
    cast_or_null,
    decimals_of,
    not_utf8,
    raise_if_memory,
)
from lakebed.decoding.values import Indices, ReadValues
from lakebed.decoding.wanted import Value
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, StructOf

_ORDINAL: Final = "<ordinal>"


class _RejectedError(Exception):
    """A line is not one of as many fields as there are names."""


class TextValues:
    """Reads values of lines."""

    def __init__(self, settings: DecoderSettings, values: Sequence[Value]) -> None:
        self._values = values
        self._names = settings.fields
        self._delimiter = settings.delimiter
        self._quote = settings.quote
        self._null = settings.null

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return the values of payloads: see `ValueReader`."""
        lines = _without_line_end(payloads)
        wrong = not_utf8(lines)
        verdicts.mark_all(np.flatnonzero(wrong), Verdict.NOT_UTF8)
        broken = bools(pc.match_substring_regex(lines, r"[\r\n]")) & ~wrong
        verdicts.mark_all(np.flatnonzero(broken), Verdict.NOT_ONE_OBJECT, "several lines")
        nul = bools(pc.match_substring(lines, b"\x00")) & ~wrong & ~broken
        verdicts.mark_all(np.flatnonzero(nul), Verdict.UNPARSABLE, "a NUL")
        records = np.flatnonzero(~(wrong | broken | nul))
        try:
            batch = self._parse(chosen(lines, records))
        except _RejectedError:
            for index in records.tolist():
                detail = self._problem(lines[index].as_py())  # bounded: one line
                if detail:
                    verdicts.mark(index, Verdict.UNPARSABLE, detail)
            records = records[verdicts.codes[records] == 0]
            batch, records = self._halves(lines, records, verdicts)
        columns = [self._column(batch, value, records, verdicts) for value in self._values]
        return ReadValues(records, columns)

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return whether a required value is missing or null."""
        return Verdict.NULL_IN_REQUIRED

    def _halves(
        self, lines: pa.BinaryArray, records: Indices, verdicts: Verdicts
    ) -> tuple[pa.RecordBatch, Indices]:
        """Parse lines that Python's `csv` takes; those that Arrow does not are no rows."""
        try:
            return self._parse(chosen(lines, records)), records
        except _RejectedError:
            if len(records) <= 1:
                verdicts.mark_all(records, Verdict.UNPARSABLE, "its quotes are not read")
                return self._parse(chosen(lines, [])), records[:0]
        half = len(records) // 2
        first, good = self._halves(lines, records[:half], verdicts)
        second, more = self._halves(lines, records[half:], verdicts)
        return pa.concat_batches([first, second]), np.concatenate([good, more])

    def _parse(self, lines: pa.BinaryArray) -> pa.RecordBatch:
        names = [_ORDINAL, *self._names]
        if not len(lines):
            return pa.RecordBatch.from_pylist([], pa.schema([(n, pa.string()) for n in names]))
        ordinals = pa.array(np.arange(len(lines))).cast(pa.string()).cast(pa.binary())
        text = pc.binary_join_element_wise(ordinals, lines, self._delimiter.encode())
        text = pc.binary_join_element_wise(text, b"", b"\n")
        _, _, data = bounds_of(text)
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
                pa.csv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char=self._quote or False,
                    newlines_in_values=False,
                    ignore_empty_lines=False,
                ),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                ),
            )
        except REFUSALS as error:
            raise_if_memory(error)
            raise _RejectedError from None
        (batch,) = table.combine_chunks().to_batches()
        if not batch.column(0).equals(ordinals.cast(pa.string())):
            raise _RejectedError
        for column in batch.columns:
            if pc.any(pc.match_substring(column, "\n")).as_py():  # bounded: one flag
                raise _RejectedError
        return batch

    def _problem(self, line: bytes) -> str:
        """Return what Python's `csv` has against a line. What stands behind a closing quote belongs
        to the field, as `csv` and Arrow take it."""
        try:
            fields = self._split(line, strict=False)
            if self._quote:
                self._split(line, strict=True)
        except csv.Error as error:
            if "unexpected end" in str(error):
                return "a quote is not closed"
        except ValueError:
            return "it is not one line"
        if len(fields) != len(self._names):
            return f"{len(fields)} fields, not {len(self._names)}"
        return ""

    def _split(self, line: bytes, *, strict: bool) -> list[str]:
        (fields,) = csv.reader(
            [line.decode()],
            delimiter=self._delimiter,
            quotechar=self._quote or None,
            quoting=csv.QUOTE_MINIMAL if self._quote else csv.QUOTE_NONE,
            strict=strict,
        )
        return fields

    def _column(
        self, batch: pa.RecordBatch, value: Value, records: Indices, verdicts: Verdicts
    ) -> pa.Array:
        (name,) = value.path
        texts = batch.column(name)
        texts = pc.if_else(pc.equal(texts, self._null), None, texts)
        if value.raw != "number":
            return texts
        numbers, wrong = cast_or_null(
            texts, lambda part: decimals_of(part, 9), pa.decimal256(DIGITS_MAX, 9)
        )
        verdicts.mark_all(records[wrong], Verdict.TIME_UNREADABLE, name)
        return numbers


def check_text(settings: DecoderSettings, values: Sequence[Value]) -> None:
    """Refuse a definition that can never read. Raises: InvalidError."""
    names = settings.fields
    if not names or len(set(names)) < len(names):
        hint = 'name the fields of a line, each once: fields = ["id", "at"]'
        raise InvalidError("text needs the names of its fields", at="decoder.fields", hint=hint)
    same = settings.delimiter == settings.quote
    if same or not (settings.delimiter + settings.quote).isascii() or settings.delimiter in "\r\n":
        hint = "use two different characters of ASCII, such as a comma and a quote"
        raise InvalidError("not a delimiter and a quote", at="decoder.delimiter", hint=hint)
    for value in values:
        path = ".".join(value.path)
        if len(value.path) > 1 or value.path[0] not in names:
            hint = did_you_mean(path, names, what="field")
            raise InvalidError(
                "a line has no such field", at="decoder.fields", path=path, hint=hint
            )
        if isinstance(value.raw, ListOf | MapOf | StructOf):
            hint = "keep it as text, or send JSON"
            raise InvalidError(
                "a field of a line has no parts", path=path, type=value.raw, hint=hint
            )


def _without_line_end(payloads: pa.BinaryArray) -> pa.BinaryArray:
    """Return payloads without one line break at their end."""
    return pc.replace_substring_regex(payloads, r"\r?\n\z", "")
