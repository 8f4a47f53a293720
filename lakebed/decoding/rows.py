"""Rows of a table, from the values of records: casts, required columns, keys and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.config.decoders import ColumnsOf, DecoderSettings
from lakebed.decoding.auto_keys import auto_keys
from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.masks import (
    INTEGER,
    Mask,
    bools,
    cast_or_null,
    copied,
    decimals_of,
    integers_of,
    keys_too_long,
)
from lakebed.decoding.times import MICROS, Times, own_times
from lakebed.decoding.values import Indices, ReadValues
from lakebed.decoding.wanted import LINEAGE, OF_RECORD, Column, Wanted
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import Field, Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.user_files.json_columns import converted


@dataclass(frozen=True, slots=True)
class _Block:
    """Records while rows are made of them.

    read: values of those that can be read.
    own: these records, as their source gives them.
    dropped: by the index of a value, the records in which it is left out.
    """

    read: ReadValues
    own: pa.RecordBatch
    verdicts: Verdicts
    source_split: str
    dropped: dict[int, list[Indices]] = field(default_factory=dict)

    def drop(self, value: int, mask: Mask) -> None:
        """Note that a value is left out in some of the records that could be read."""
        self.dropped.setdefault(value, []).append(self.read.records[mask])

    def mark(self, mask: Mask, verdict: Verdict, detail: str) -> None:
        """Say of some of the records that could be read that they are no rows."""
        self.verdicts.mark_all(self.read.records[mask], verdict, detail)


@dataclass(frozen=True, slots=True)
class MadeOfValues:
    """The rows that were made of values.

    kept: the index of each row's record.
    times: of the rows' events.
    dropped: how many rows are without a value that was left out, by its path.
    """

    rows: pa.RecordBatch
    kept: Indices
    times: pa.Array
    dropped: dict[str, int]


WhyNull = Callable[[int, int], Verdict]
"""A function that returns why a value is null, by the indices of its record and of the value."""


class RowMaker:
    """Makes rows of values that were read.

    version: of the definition, for lineage.
    """

    def __init__(
        self,
        wanted: Wanted,
        settings: DecoderSettings,
        said: ColumnsOf,
        schema: Schema,
        *,
        version: int,
    ) -> None:
        self._wanted = wanted
        self._said = said
        self._schema = schema
        self._version = version
        self._columns = arrow_schema(schema)
        time = settings.time
        self._is_own_time = time is not None and not time.path
        self._time = Times(time) if time is not None and time.path else None
        self._times = [Times(c.time) if c.time is not None else None for c in wanted.columns]

    def rows(
        self,
        read: ReadValues,
        records: pa.RecordBatch,
        verdicts: Verdicts,
        *,
        source_split: str,
        why_null: WhyNull,
    ) -> MadeOfValues:
        """Return the rows of records."""
        own = records.take(pa.array(read.records))
        block = _Block(read, own, verdicts, source_split)
        times = self._event_times(block)
        columns = []
        for index, column in enumerate(self._wanted.columns):
            made = self._column(index, column, block)
            if not column.field.nullable and made.null_count:
                _mark_nulls(column, made, block, why_null)
            columns.append(made)
        loose = pa.RecordBatch.from_arrays(columns, names=self._columns.names)
        names = ", ".join(field.name for field in self._schema.key_fields)
        block.mark(keys_too_long(loose, self._schema.key_fields), Verdict.KEY_TOO_LONG, names)
        good = verdicts.codes[read.records] == Verdict.ROW
        rows, kept = loose, read.records
        if not good.all():
            mask = pa.array(good)
            rows, times, kept = loose.filter(mask), times.filter(mask), read.records[good]
        rows = pa.RecordBatch.from_arrays(rows.columns, schema=self._columns)
        return MadeOfValues(rows, kept, times, self._dropped(block, kept))

    def _dropped(self, block: _Block, kept: Indices) -> dict[str, int]:
        """Return how many rows are without a value that was left out, by its path."""
        for value, records in block.read.dropped.items():
            block.dropped.setdefault(value, []).append(records)
        counts = {
            ".".join(self._wanted.values[value].path): int(
                np.isin(np.unique(np.concatenate(records)), kept).sum()
            )
            for value, records in block.dropped.items()
        }
        return {path: count for path, count in counts.items() if count}

    def _event_times(self, block: _Block) -> pa.Array:
        if self._is_own_time:
            times = own_times(block.own.column("time"))
            missing = bools(times.is_null())
            block.mark(missing, Verdict.TIME_UNREADABLE, "the source gives no time")
            return times
        if self._time is None or self._wanted.time is None:
            return pa.nulls(len(block.own), MICROS)
        times, outside = self._time.read(block.read.columns[self._wanted.time])
        path = ".".join(self._wanted.values[self._wanted.time].path)
        block.mark(outside, Verdict.TIME_OUT_OF_BOUNDS, path)
        block.mark(bools(times.is_null()), Verdict.TIME_UNREADABLE, path)
        return times

    def _column(self, index: int, column: Column, block: _Block) -> pa.Array:
        field, type_ = column.field, self._columns.field(index).type
        if column.value is None:
            return self._of_record(field.name, type_, block)
        raw = block.read.columns[column.value]
        times = self._times[index]
        if times is not None:
            made, outside = times.read(raw)
            block.mark(outside, Verdict.TIME_OUT_OF_BOUNDS, field.name)
            unread = bools(pc.and_(raw.is_valid(), made.is_null()))
            block.mark(unread, Verdict.TIME_UNREADABLE, field.name)
            return made
        made, wrong = _cast(copied(raw), field, type_)
        if wrong.any() and self._wanted.values[column.value].drops:
            block.drop(column.value, wrong)
        elif wrong.any():
            too_large = wrong & _look_like_numbers(raw, type_)
            detail = f"{field.name}: no {field.type}"
            block.mark(too_large, Verdict.OUT_OF_RANGE, detail)
            block.mark(wrong, Verdict.TYPE_MISMATCH, detail)
        return made

    def _of_record(self, name: str, type_: pa.DataType, block: _Block) -> pa.Array:
        """Return a column that the record itself gives; nulls, where it gives none."""
        said = self._said
        if name == said.auto_key:
            return auto_keys(said.feed, block.source_split, block.own.column("position"), type_)
        if said.lineage and name in LINEAGE:
            if name == "_position":
                return block.own.column("position")
            value = block.source_split if name == "_split" else self._version
            return pa.repeat(pa.scalar(value, type_), len(block.own))
        if name in (OF_RECORD[given] for given in said.meta) or name == said.rest:
            source = block.own.column("value" if name == said.rest else name.removeprefix("_"))
            made, wrong = cast_or_null(source, lambda part: part.cast(type_), type_)
            block.mark(wrong, Verdict.NOT_UTF8, name)
            return made
        return pa.nulls(len(block.own), type_)


def _mark_nulls(column: Column, made: pa.Array, block: _Block, why_null: WhyNull) -> None:
    for row in np.flatnonzero(bools(made.is_null())).tolist():  # bounded: bad records
        record = int(block.read.records[row])
        if not block.verdicts.codes[record]:
            verdict = Verdict.NULL_IN_REQUIRED
            if column.value is not None:
                verdict = why_null(record, column.value)
            block.verdicts.mark(record, verdict, column.field.name)


def _cast(raw: pa.Array, field: Field, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    if raw.type == type_:
        return raw, np.zeros(len(raw), np.bool_)
    if pa.types.is_string(raw.type) and pa.types.is_integer(type_):
        return cast_or_null(raw, lambda part: integers_of(part, type_), type_)
    if pa.types.is_string(raw.type) and pa.types.is_decimal(type_):
        return cast_or_null(raw, lambda part: decimals_of(part, type_.scale).cast(type_), type_)
    return cast_or_null(
        raw, lambda part: converted(part, field.type, field.name, None).cast(type_), type_
    )


def _look_like_numbers(raw: pa.Array, type_: pa.DataType) -> Mask:
    """Return which values are numbers, so that only their size can be what is wrong with them."""
    kinds = pa.types
    if kinds.is_string(raw.type) and kinds.is_integer(type_):
        return bools(pc.match_substring_regex(raw, INTEGER))
    if kinds.is_string(raw.type) and (kinds.is_floating(type_) or kinds.is_decimal(type_)):
        return bools(pc.match_substring_regex(raw, "^[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?$"))
    return np.full(len(raw), kinds.is_decimal(raw.type) or kinds.is_integer(raw.type), np.bool_)
