"""One pass of rows through a table's processing, made ready for a schema and some columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.group_ages import group_ages
from lakebed.model.predicates.language import fields_of
from lakebed.model.processing import (
    Latest,
    Processing,
    ProcessingPass,
    age_off_limit,
    fold_of,
)
from lakebed.model.schema import Schema
from lakebed.processing.folding import folded
from lakebed.processing.group_aging import AgingGroups
from lakebed.processing.predicate_masks import mask_of
from lakebed.processing.row_merging import (
    AggregatedRows,
    MergeRows,
    merged_rows,
    row_merge,
)
from lakebed.processing.value_order import integers_of, without_nulls

_LEAST = int(np.iinfo(np.int64).min)


class RowWork:
    """The processing of rows before and after they are put in order.

    columns: names of those that are asked for; None: all.
    """

    def __init__(
        self, schema: Schema, given: ProcessingPass, columns: Collection[str] | None = None
    ) -> None:
        self._schema = schema
        self._processing = processing = given.processing
        self._at = given.at
        self._stage = given.stage
        self._keys = [field.name for field in schema.key_fields]
        self.takes_in = given.stage == "ingest"
        """Whether selected rows are changed, too."""
        needed = columns_needed(schema, processing, columns)
        self.columns = tuple(f.name for f in schema.fields if f.name in needed)
        """Those that must be read, in the order of the schema."""
        self.looked_at = processing.fields
        """Columns whose values decide what becomes of rows, beside keys."""
        self.keeps_rows = not processing.merges_rows
        """Whether each row that it gives is one that it was given."""
        self.iterator = processing.iterator
        """What is to be done with the rows that `merged` gives."""
        self.merge: MergeRows | None = row_merge(processing, schema, self.columns)
        self._group_ages = group_ages(given, schema)

    @property
    def folds(self) -> Mapping[str, str] | None:
        """Return what rows with equal keys may be folded by before `merged`; None: they may not."""
        if self._group_ages is not None:
            return None
        return self.merge.folds if isinstance(self.merge, AggregatedRows) else None

    def selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are not left out, in their order."""
        mask = self.mask(batch)
        rows = batch if mask is None else batch.filter(mask)
        return _taken_in(rows, self._processing.aggregate or {}) if self.takes_in else rows

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return which rows are not left out; None: all stay. Null is as false."""
        processing, mask = self._processing, None
        if processing.filter is not None:
            mask = pc.fill_null(mask_of(batch, processing.filter), fill_value=False)
            if processing.latest is not None and processing.latest.delete is not None:
                mask = pc.or_(mask, _is_true(batch.column(processing.latest.delete)))
        if processing.age_off is not None and (self._group_ages is None or self.takes_in):
            limit = age_off_limit(processing.age_off, self._schema, self._at)
            young = _at_least(batch.column(processing.age_off.field), limit)
            mask = young if mask is None else pc.and_(mask, young)
        return None if mask is None or mask.true_count == len(mask) else mask

    def merged(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of selected rows that are sorted by their keys."""
        rows = iter(batches)
        if self._group_ages is not None and self.merge is not None:
            rows = AgingGroups(self._group_ages, self._keys, self.merge).merged(rows)
        elif self.merge is not None:
            rows = merged_rows(rows, self._keys, self.merge)
        latest = self._processing.latest
        for batch in rows:
            if self._stage == "query" and latest is not None and latest.delete is not None:
                yield batch.filter(pc.invert(_is_true(batch.column(latest.delete))))
            else:
                yield batch


def columns_needed(
    schema: Schema, processing: Processing, columns: Collection[str] | None
) -> frozenset[str]:
    """Return the columns that must be read to give those that are asked for. columns: None: all."""
    if columns is None or processing.iterator is not None:
        return frozenset(field.name for field in schema.fields)
    needed = {field.name for field in schema.key_fields} | set(columns)
    if processing.filter is not None:
        needed |= fields_of(processing.filter)
    if processing.age_off is not None:
        needed.add(processing.age_off.field)
    if processing.latest is not None:
        needed |= _that_choose(processing.latest, schema, columns)
    for name in processing.aggregate or ():
        if name in columns and (fold := fold_of((processing.aggregate or {})[name])).by:
            needed.add(fold.by)  # and those that tell ties apart
            needed |= {n for n, f in (processing.aggregate or {}).items() if fold_of(f) == fold}
    return frozenset(needed)


def _that_choose(latest: Latest, schema: Schema, columns: Collection[str]) -> set[str]:
    """Return what tells which of some rows is the latest, as far as these columns show it.

    Rows that tie are told apart field by field: whichever wins, has the greatest values in the
    first fields. So fields behind the last one that is asked for decide nothing that is seen.
    """
    first = {latest.sequence, *([latest.delete] if latest.delete else [])}
    others = [field for field in schema.values if field.name not in first]
    last = max((field.number for field in others if field.name in columns), default=0)
    return first | {field.name for field in others if field.number <= last}


def _taken_in(rows: pa.RecordBatch, aggregate: Mapping[str, str]) -> pa.RecordBatch:
    """Return new rows as groups of one: each counts once, maps have each key once, ascending."""
    for name, text in aggregate.items():
        index, function = rows.schema.get_field_index(name), fold_of(text).function
        column = rows.column(index)
        if function == "count":
            column = pa.array(np.ones(len(rows), np.int64))
        elif pa.types.is_map(column.type) and function in ("sum", "min", "max") and len(rows):
            column = folded(column, np.arange(len(rows)), function, name)
        else:
            continue
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _is_true(column: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(column, fill_value=False)


def _at_least(column: pa.Array, limit: int) -> pa.BooleanArray:
    """Return which values are not below the limit. Null is not: it has no time."""
    flags = integers_of(without_nulls(column)) >= max(limit, _LEAST)
    bits = pa.py_buffer(
        np.packbits(flags, bitorder="little")
    )  # `pa.array` takes thirty times as long
    young = pa.BooleanArray.from_buffers(pa.bool_(), len(column), [None, bits], 0)
    return pc.or_(young, column.is_null()) if column.null_count else young
