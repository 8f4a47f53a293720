"""A file's columns as those that are wanted now: files keep the columns they were written with.

A field's number says which column holds it, whatever its name was; a field that was added later is
null; one that has been widened since is cast.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.sorted_files.format.arrow_schema import FIELD_ID
from lakebed.sorted_files.format.fitting_types import fits


class Match(msgspec.Struct, frozen=True):
    """The columns to read of a file, and the way in which they become the wanted ones.

    names: in the file, in the order of `wanted`, without those it lacks.
    indices: for each wanted column its index among `names`; None: the file is older than the field.
    """

    wanted: pa.Schema
    names: tuple[str, ...]
    indices: tuple[int | None, ...]
    is_same: bool
    """True if the columns read are the wanted ones already."""

    def fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns `names` of a file as the wanted ones."""
        if self.is_same:
            return batch
        columns: list[pa.Array] = []
        for field, index in zip(self.wanted, self.indices, strict=True):
            if index is None:
                columns.append(pa.nulls(len(batch), field.type))
            else:
                column = batch.column(index)
                columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.wanted)


def matched(wanted: pa.Schema, found: pa.Schema, *, path: str) -> Match:
    """Return how a file's columns become the wanted ones. path: of the file, for errors.

    Raises:
        CorruptError: a column that must be there is not, or is of a type that never became the
            wanted one.
    """
    by_number = {number_of(column): column for column in found}
    newest = max(by_number, default=0)
    names: list[str] = []
    indices: list[int | None] = []
    is_same = True
    for column in wanted:
        number = number_of(column)
        own = by_number.get(number)
        # Numbers only rise: a file with a higher one was written when this field was there.
        if own is None and column.nullable and number > newest:
            indices.append(None)
            is_same = False
            continue
        if own is None or own.nullable != column.nullable or not fits(own.type, column.type):
            raise CorruptError(
                "a file's columns contradict the table's schema",
                path=path,
                field=column.name,
                wanted=column.type,
                got=None if own is None else own.type,
            )
        is_same = is_same and own.name == column.name and own.type == column.type
        indices.append(len(names))
        names.append(own.name)
    return Match(wanted, tuple(names), tuple(indices), is_same)


def number_of(column: pa.Field) -> int:
    """Return the number of a field of a file; 0: it has none."""
    return int((column.metadata or {}).get(FIELD_ID, 0))
