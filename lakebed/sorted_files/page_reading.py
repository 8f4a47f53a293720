"""Row groups read page by page and decoded by kernels, for merges.

Only flat columns in our own kind of pages are known here. A row group that has others, or that is
not what it should be, ends early: the caller leaves the rest of it to Arrow, and block checksums
then tell damage from what is merely unknown.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.parquet_bytes.decoding import (
    NO_DICTIONARY,
    Dictionary,
    Flat,
    Pages,
    Places,
    decode_dictionary,
    decode_pages,
    flat_of,
    places_of,
)
from lakebed.parquet_bytes.footer import Chunk, Footer
from lakebed.parquet_bytes.thrift import MalformedError
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.column_matching import matched
from lakebed.sorted_files.conditions import RowFilter
from lakebed.sorted_files.range_file import aligned, joined_spans, read_verified
from lakebed.sorted_files.reading import GroupsByArrow, Share, groups_wanted
from lakebed.sorted_files.tails import Tail


def read_part_by_pages(
    objects: ObjectReader,
    part: FilePart,
    tail: Tail,
    *,
    columns: pa.Schema,
    wanted: RowFilter,
    share: Share,
    among: Container[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a file, as `reading.read_part` does."""
    match = matched(columns, tail.columns, path=part.path)
    groups = groups_wanted(tail, wanted, match, among)
    paged = PagedGroups(objects, part, tail, match.names)
    by_arrow = GroupsByArrow(objects, part, tail, match=match, groups=groups, share=share)

    def whole(group: int, rows_max: int) -> Iterator[pa.RecordBatch]:
        given = 0
        for batch in paged.batches(group, rows_max, share.file_bytes):
            given += len(batch)
            yield batch
        if given < tail.metadata.row_group(group).num_rows:
            yield from by_arrow.batches(group, skip=given)

    for group, is_whole in groups.items():
        for batch in whole(group, share.rows_of(tail.notes.groups[group].row_bytes)):
            fitted = match.fitted(batch)
            yield from [fitted] if is_whole else wanted.apply(fitted)


class PagedGroups:
    """Reads row groups of one file. names: of the file's columns to read."""

    def __init__(
        self, objects: ObjectReader, part: FilePart, tail: Tail, names: Sequence[str]
    ) -> None:
        self._objects = objects
        self._part = part
        self._tail = tail
        self._schema = pa.schema([tail.columns.field(name) for name in names])
        self._footer: Footer | None = None
        self._leaves: list[int] = []
        try:
            footer = Footer(tail.raw, part.file.tail_offset)
        except MalformedError:
            return
        places = {leaf.path: place for place, leaf in enumerate(footer.leaves)}
        if all((name,) in places for name in names):
            self._footer = footer
            self._leaves = [places[name,] for name in names]

    def batches(self, group: int, rows_max: int, bytes_max: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, up to where anything is not as expected.

        rows_max, bytes_max: of a batch, and of pages as stored, unless one page has more.
        """
        columns = self._columns(group)
        if not columns:
            return
        rows = columns[0].rows
        size = max(1, sum(column.end - column.start for column in columns))
        ahead = rows if size <= bytes_max else rows * bytes_max // size
        at = 0
        while at < rows:
            end = _piece_end(columns, at, rows_max)
            if not all(column.has(end) for column in columns):
                self._load(columns, max(end, at + ahead))
            arrays = [column.take(end) for column in columns]
            if any(array is None or len(array) != end - at for array in arrays):
                return
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            at = end

    def _columns(self, group: int) -> list[_Column]:
        """Return the columns of a row group; none if one of them is not known."""
        if self._footer is None:
            return []
        columns = []
        try:
            found = self._footer.group(group)
            for leaf, field in zip(self._leaves, self._schema, strict=True):
                chunk = found.chunks[leaf]
                flat = flat_of(field, self._footer.leaves[leaf], chunk)
                places = places_of(self._footer, found, chunk)
                if flat is None or places is None:
                    return []
                columns.append(_Column(flat, chunk, places))
        except MalformedError:
            return []
        return columns

    def _load(self, columns: Sequence[_Column], end: int) -> None:
        """Read the blocks of all pages that begin below a row, with one call to the store."""
        tail_offset = self._part.file.tail_offset
        wanted = [column.missing(end, tail_offset) for column in columns]
        spans = joined_spans(sorted(w for w in wanted if w[0] < w[1]), tail_offset)
        parts = read_verified(self._objects, self._part, self._tail, spans)
        begins = [start for start, _ in spans]
        for column, (start, stop) in zip(columns, wanted, strict=True):
            if start < stop:
                place = bisect_right(begins, start) - 1
                offset = start - begins[place]
                column.add(parts[place][offset : offset + stop - start], start)


class _Column:
    """A column chunk being read from its first page to its last."""

    def __init__(self, flat: Flat, chunk: Chunk, places: Places) -> None:
        self._flat = flat
        self._starts = places.starts
        self._ends = places.ends
        self._first_rows = self.boundaries = places.first_rows
        self._page_rows = np.diff(places.first_rows)
        self.rows = places.first_rows[-1]
        self.start, self.end = chunk.start, chunk.end
        self._dictionary: Dictionary | None = NO_DICTIONARY
        self._dictionary_end = 0
        if chunk.dictionary_page_offset is not None:
            self._dictionary, self._dictionary_end = None, chunk.data_page_offset
        self._page = 0
        """The next to decode."""
        self._loaded_page = 0
        """The first that is not loaded."""
        self._raw = memoryview(b"")
        self._raw_start = 0
        self._held: pa.Array | None = None
        """Rows of decoded pages that were not taken yet."""

    def has(self, end: int) -> bool:
        """Whether all pages that begin below a row are loaded."""
        return self._first_rows[self._loaded_page] >= end

    def missing(self, end: int, data_end: int) -> tuple[int, int]:
        """Return the blocks to be read, so that all pages are held that begin below a row. What
        precedes them is forgotten, but for the block that they share with pages to come."""
        last = bisect_left(self._first_rows, end, hi=len(self._starts))
        self._loaded_page = max(self._loaded_page, last)
        if self._page == self._loaded_page:
            return data_end, data_end
        first = self.start if self._dictionary is None else int(self._starts[self._page])
        stop = int(self._ends[self._loaded_page - 1])
        start, stop = aligned(first, stop, data_end)
        held = self._raw_start + len(self._raw)
        if self._raw_start <= start < held:
            self._raw = self._raw[start - self._raw_start :]
            self._raw_start = start
            return max(start, min(held, stop)), stop
        self._raw, self._raw_start = memoryview(b""), start
        return start, stop

    def add(self, raw: memoryview, start: int) -> None:
        """Take blocks that were missing."""
        assert start == self._raw_start + len(self._raw), "blocks follow each other"
        self._raw = memoryview(b"".join((self._raw, raw))) if len(self._raw) else raw
        if self._dictionary is None:
            begin = self.start - self._raw_start
            dictionary = self._raw[begin : self._dictionary_end - self._raw_start]
            self._dictionary = decode_dictionary(self._flat, dictionary)

    def take(self, end: int) -> pa.Array | None:
        """Return the rows from the last ones taken up to `end`; None: they are not as expected."""
        last = bisect_left(self._first_rows, end, hi=len(self._starts))
        if last > self._page:
            if self._dictionary is None:
                return None
            some = slice(self._page, last)
            starts, ends = self._starts[some], self._ends[some]
            pages = Pages(
                self._raw, starts - self._raw_start, ends - self._raw_start, self._page_rows[some]
            )
            decoded = decode_pages(self._flat, pages, self._dictionary)
            if decoded is None:
                return None
            self._page = last
            held = self._held
            self._held = decoded if held is None else pa.concat_arrays([held, decoded])
        if self._held is None:
            return None
        rows = len(self._held) - (self._first_rows[self._page] - end)
        taken = self._held.slice(0, rows)
        self._held = self._held.slice(rows) if rows < len(self._held) else None
        return taken


def _piece_end(columns: Sequence[_Column], at: int, rows_max: int) -> int:
    """Return the last row up to which a piece goes: where pages end, if they do so soon enough."""
    ends = []
    for column in columns:
        place = bisect_right(column.boundaries, at + rows_max) - 1
        ends.append(column.boundaries[place] if column.boundaries[place] > at else 0)
    best = max(ends)
    if best > at:
        return best
    return min(column.boundaries[bisect_right(column.boundaries, at)] for column in columns)
