"""Chooses the pages of a file that may hold wanted rows: rows of row groups, and for each column
its pages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import msgspec

from lakebed.model.predicates.bounds import NOTHING_KNOWN, FieldBounds
from lakebed.sorted_files.reading.column_matching import Match, matched
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.page_index_parts import (
    ColumnIndex,
    FileIndex,
    NotByPagesError,
    Page,
)
from lakebed.sorted_files.reading.part_reading import row_groups_wanted
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.row_group_bounds import NO_VALUES, bounds_of_pages
from lakebed.sorted_files.reading.tails import Tail


class ColumnPages(msgspec.Struct, frozen=True):
    """Pages `[low, high)` of a column, which hold the rows `[first, end)` of a row group."""

    column: ColumnIndex
    low: int
    high: int
    first: int
    end: int

    def __iter__(self) -> Iterator[Page]:
        """Yield the pages in the order in which they lie, the dictionary first."""
        if self.column.dictionary is not None:
            yield self.column.dictionary
        yield from self.column.pages[self.low : self.high]


class RowSpan(msgspec.Struct, frozen=True):
    """Rows `[first, end)` of a row group that may be wanted.

    columns: in the order of the match.
    """

    row_group: int
    first: int
    end: int
    columns: tuple[ColumnPages, ...]


class BoundedPages(msgspec.Struct, frozen=True):
    """A tested column of a row group: what is known of its values in each page, and with which row
    each begins."""

    first_rows: tuple[int, ...]
    pages: tuple[FieldBounds, ...]

    def at(self, row: int) -> FieldBounds:
        """Return what is known of the page that holds a row."""
        return self.pages[bisect_right(self.first_rows, row) - 1]


class Choice(msgspec.Struct, frozen=True):
    """The part of a file that is to be read.

    keys: indices of the row keys among the match's names.
    row_groups: how many were looked at.
    """

    match: Match
    keys: tuple[int, ...]
    row_spans: tuple[RowSpan, ...]
    row_groups: int


def tests_pages(read: PartRead, tail: Tail) -> bool:
    """Return whether a test may rule out pages of a file: those of some column of values have
    bounds."""
    values = read.wanted.bounded_fields.difference(field.name for field in read.wanted.fields)
    if not values or not tail.row_groups:
        return False
    match = matched(read.columns, tail.columns, path=read.part.path)
    stored = (match.indices[read.columns.get_field_index(name)] for name in values)
    names = {match.names[one] for one in stored if one is not None}
    row_group = tail.metadata.row_group(0)
    columns = map(row_group.column, range(row_group.num_columns))
    return any(one.has_column_index for one in columns if one.path_in_schema in names)


def choose_pages(read: PartRead, tail: Tail, index: FileIndex, match: Match) -> Choice:
    """Return the pages of a file that may hold wanted rows. match: of the file's columns.

    Raises:
        NotByPagesError: a column is nested, or the file's page index does not say.
    """
    stored_columns = _flat_columns(match, index)
    keys = _key_indices(read, tail, match)
    key_columns = [stored_columns[key] for key in keys]
    row_spans = []
    row_groups = row_groups_wanted(tail, read.wanted, match)
    for row_group in row_groups:
        by_key = index.key_pages(row_group, read.wanted.fields, key_columns)
        tested = _tested_pages(read, tail, index, match, row_group)
        for low, high in by_key.spans_in(read.wanted.ranges):
            rows = by_key.first_rows[low], by_key.end_row(high)
            for first, end in _spans_kept(read.wanted, tested, *rows):
                columns = _column_pages(index.columns(row_group, stored_columns), first, end)
                row_spans.append(RowSpan(row_group, first, end, columns))
    return Choice(match, keys, tuple(row_spans), len(row_groups))


def _tested_pages(
    read: PartRead, tail: Tail, index: FileIndex, match: Match, row_group: int
) -> dict[str, BoundedPages]:
    """Return what is known of the pages of tested columns, without those of which nothing is."""
    found: dict[str, BoundedPages] = {}
    for name in read.wanted.bounded_fields:
        wanted = read.columns.get_field_index(name)
        matching = match.indices[wanted]
        if matching is None:  # the file is older than the field
            found[name] = BoundedPages((0,), (NO_VALUES,))
            continue
        column = index.flat_columns[match.names[matching]]
        bounds = index.bounds(row_group, column)
        if bounds is None:
            continue
        stored = tail.columns.field(match.names[matching]).type
        physical = index.footer.columns[column].physical
        pages = bounds_of_pages(bounds, physical, stored, read.columns.field(wanted).type)
        found[name] = BoundedPages(index.pages(row_group, column).first_rows, pages)
    return found


def _spans_kept(
    wanted: RowFilter, tested: Mapping[str, BoundedPages], first: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the rows among `[first, end)` that bounds of pages do not rule out."""
    begins = {row for column in tested.values() for row in column.first_rows if first < row < end}
    kept: int | None = None
    for start, _ in pairwise([first, *sorted(begins), end]):
        if not tested or wanted.may_want_columns(_bounds_at(tested, start)):
            kept = start if kept is None else kept
        elif kept is not None:
            yield kept, start
            kept = None
    if kept is not None:
        yield kept, end


def _bounds_at(tested: Mapping[str, BoundedPages], row: int) -> Callable[[str], FieldBounds]:
    return lambda name: tested[name].at(row) if name in tested else NOTHING_KNOWN


def _flat_columns(match: Match, index: FileIndex) -> tuple[int, ...]:
    """Return the indices of the columns to read among Parquet's."""
    flat = index.flat_columns
    found = tuple(flat.get(name, -1) for name in match.names)
    if min(found) < 0:
        raise NotByPagesError("a nested column")
    return found


def _key_indices(read: PartRead, tail: Tail, match: Match) -> tuple[int, ...]:
    """Return the indices of the row keys among the columns to read."""
    found = []
    for field in read.wanted.fields:
        wanted = read.columns.get_field_index(field.name)
        index = match.indices[wanted]
        assert index is not None, "a key is in every file"
        if tail.columns.field(match.names[index]).type != read.columns.field(wanted).type:
            raise NotByPagesError("a key was widened")
        found.append(index)
    return tuple(found)


def _column_pages(
    columns: tuple[ColumnIndex, ...], first: int, end: int
) -> tuple[ColumnPages, ...]:
    """Return the pages of each column that hold some rows."""
    found: list[ColumnPages] = []
    for column in columns:
        rows = column.first_rows
        if found and rows is found[-1].column.first_rows:
            last = found[-1]
            found.append(ColumnPages(column, last.low, last.high, last.first, last.end))
            continue
        low, high = bisect_right(rows, first) - 1, bisect_left(rows, end)
        stop = rows[high] if high < len(rows) else column.rows
        found.append(ColumnPages(column, low, high, rows[low], stop))
    return tuple(found)
