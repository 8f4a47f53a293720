"""Defines what is asked of a merge: which rows and columns to read, and what to do with merged
rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading.conditions import KeyBoxes
from lakebed.sorted_files.reading.row_tests import RowTest
from lakebed.sorted_files.sorting.iterating import iterated


class RowRequest(msgspec.Struct, frozen=True):
    """The rows and columns that a reader wants.

    columns: to be read.
    given: to be passed on; None: all.
    key_boxes: None for all rows.
    early: keeps rows that are read.
    late: keeps rows as processing made them.
    """

    schema: Schema
    columns: pa.Schema
    given: list[str] | None
    key_boxes: KeyBoxes | None
    early: RowTest | None
    late: RowTest | None
    work: RowWork | None

    @property
    def is_merged(self) -> bool:
        """Return whether rows of several files may become one, so that no scan can be without
        order."""
        return self.work is not None and not self.work.keeps_rows

    @property
    def folds(self) -> Mapping[str, str] | None:
        """Return what rows with equal keys may be folded by while they are merged."""
        return None if self.work is None else self.work.folds

    def processed(
        self, merged: Iterator[pa.RecordBatch], parts: Sequence[FilePart]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of merged rows of some parts, with the columns that are asked for."""
        if self.work is not None:
            merged = self.work.merged(merged)
            if self.work.iterator is not None:
                merged = iterated(self.schema, merged, self.work.iterator, _key_range_of(parts))
        if self.late is not None:
            merged = map(self.late.apply, merged)
        if self.given is None:
            return merged
        given = self.given
        return (batch.select(given) for batch in merged)


def row_request(
    schema: Schema, condition: Selection | None, processing: ProcessingPass | None
) -> RowRequest:
    """Return what a condition asks for, of a table with this processing."""
    test = None if condition is None else condition.where
    if test is not None and not isinstance(test, RowTest):
        raise AssertionError(f"not a test of rows: {test}")
    given = None
    if condition is not None and condition.columns is not None:
        given = [schema.field(name).name for name in condition.columns]
    keys = {field.name for field in schema.key_fields}
    needed = None if given is None else keys.union(given, test.fields if test else ())
    work = None if processing is None else RowWork(schema, processing, needed)
    is_late = work is not None and not work.keeps_rows and test is not None
    if is_late and test is not None and work is not None and work.iterator is None:
        is_late = not test.fields <= keys  # rows that become one have equal keys
    columns = arrow_schema(schema)
    if work is not None or needed is not None:
        wanted = needed if work is None else work.columns
        columns = pa.schema([column for column in columns if column.name in (wanted or ())])
    return RowRequest(
        schema=schema,
        columns=columns,
        given=given,
        key_boxes=None if condition is None else _key_boxes(schema, condition),
        early=None if is_late else test,
        late=test if is_late else None,
        work=work,
    )


def _key_boxes(schema: Schema, condition: Selection) -> KeyBoxes:
    return KeyBoxes(schema.row_keys, condition.boxes, condition.reach)


def _key_range_of(parts: Sequence[FilePart]) -> KeyRange:
    """Return the range that holds the key ranges of all parts."""
    ends = [part.key_range.max for part in parts if part.key_range.max is not None]
    bounded = len(ends) == len(parts) > 0
    least = min((part.key_range.min for part in parts), default=b"")
    return KeyRange(least, max(ends) if bounded else None)
