"""Which pages of a file may hold wanted rows: rows of row groups, and for each column its pages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from lakebed.parquet_bytes.footer import Chunk
from lakebed.sorted_files.column_matching import Match, matched
from lakebed.sorted_files.page_index_parts import FileIndex, NotByPagesError
from lakebed.sorted_files.part_sources import PartRead
from lakebed.sorted_files.reading import groups_wanted
from lakebed.sorted_files.tails import Tail


class Page(NamedTuple):
    """Where a page is, header included, and its CRC-32."""

    offset: int
    size: int
    checksum: int


class ColumnPages(msgspec.Struct, frozen=True):
    """Pages of one column that hold the rows `[first, end)` of a row group, and their dictionary.

    all_pages: how many the column has in the group.
    """

    leaf: int
    chunk: Chunk
    dictionary: Page | None
    pages: tuple[Page, ...]
    first: int
    end: int
    all_pages: int

    def __iter__(self) -> Iterator[Page]:
        """Yield all pages in the order in which they lie."""
        if self.dictionary is not None:
            yield self.dictionary
        yield from self.pages


class RowRun(msgspec.Struct, frozen=True):
    """Rows `[first, end)` of a row group that may be wanted. columns: in the order of the match."""

    group: int
    first: int
    end: int
    columns: tuple[ColumnPages, ...]


class Choice(msgspec.Struct, frozen=True):
    """What is to be read of a file. groups: row groups that were looked at."""

    match: Match
    runs: tuple[RowRun, ...]
    groups: int

    def pages(self) -> Iterator[Page]:
        """Yield every page; one that several runs need, several times."""
        for run in self.runs:
            for column in run.columns:
                yield from column


def choose_pages(read: PartRead, tail: Tail, index: FileIndex) -> Choice:
    """Return the pages of a file that may hold wanted rows.

    Raises:
        NotByPagesError: a column is nested, or the file's page index does not tell.
        CorruptError: the file's columns contradict the wanted ones.
    """
    match = matched(read.columns, tail.columns, path=read.part.path)
    leaves = _flat_leaves(match, index)
    key_leaves = _key_leaves(read, tail, match, leaves)
    runs = []
    groups = groups_wanted(tail, read.wanted, match)
    for group in groups:
        by_key = index.key_pages(group, read.wanted.fields, key_leaves)
        for low, high in by_key.runs_in(read.wanted.ranges):
            first, end = by_key.first_rows[low], by_key.end_row(high)
            columns = tuple(_column_pages(index, group, leaf, first, end) for leaf in leaves)
            runs.append(RowRun(group, first, end, columns))
    return Choice(match, tuple(runs), len(groups))


def _flat_leaves(match: Match, index: FileIndex) -> list[int]:
    """Return the places of the columns to read among Parquet's."""
    by_path = {leaf.path: place for place, leaf in enumerate(index.footer.leaves)}
    if any((name,) not in by_path for name in match.names):
        raise NotByPagesError("a nested column")
    return [by_path[name,] for name in match.names]


def _key_leaves(read: PartRead, tail: Tail, match: Match, leaves: list[int]) -> list[int]:
    """Return the places of the row keys among Parquet's columns."""
    found = []
    for field in read.wanted.fields:
        wanted = read.columns.get_field_index(field.name)
        place = match.places[wanted]
        assert place is not None, "a key is in every file"
        if tail.columns.field(match.names[place]).type != read.columns.field(wanted).type:
            raise NotByPagesError("a key was widened")
        found.append(leaves[place])
    return found


def _column_pages(index: FileIndex, group: int, leaf: int, first: int, end: int) -> ColumnPages:
    inside = index.group(group)
    chunk, shape = inside.chunks[leaf], index.footer.leaves[leaf]
    if shape.repetition_max or shape.definition_max > 1:
        raise NotByPagesError("a nested column")
    pages = index.pages(group, leaf)
    rows = pages.first_rows
    low, high = bisect_right(rows, first) - 1, bisect_left(rows, end)
    checksums = index.checksums(group, leaf)
    dictionary = None
    if chunk.dictionary_page_offset is not None:
        at = chunk.dictionary_page_offset
        dictionary = Page(at, pages.offsets[0] - at, checksums[0])
        checksums = checksums[1:]
    return ColumnPages(
        leaf=leaf,
        chunk=chunk,
        dictionary=dictionary,
        pages=tuple(Page(pages.offsets[n], pages.sizes[n], checksums[n]) for n in range(low, high)),
        first=rows[low],
        end=rows[high] if high < len(rows) else inside.rows,
        all_pages=len(rows),
    )
