"""Row groups read page by page and decoded by kernels, for merges.

Only flat columns in our own kind of pages are known here. A row group that has others, or that is
not what it should be, ends early: the caller leaves the rest of it to Arrow, and block checksums
then distinguish damage from what is merely unknown.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.parquet_bytes.decoding import (
    Flat,
    PageLocations,
    RowGroupPages,
    address_of,
    decode_dictionary,
    flat_of,
    page_locations,
)
from lakebed.parquet_bytes.footer import Chunk
from lakebed.parquet_bytes.thrift import MalformedError
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES
from lakebed.sorted_files.reading.column_matching import matched
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.open_row_groups import OpenRowGroups
from lakebed.sorted_files.reading.part_reading import RowGroupsByArrow, Share, row_groups_wanted
from lakebed.sorted_files.reading.range_file import (
    GAP_BYTES_MAX,
    aligned,
    joined_spans,
    read_verified,
)
from lakebed.sorted_files.reading.tails import Described


def read_part_by_pages(
    objects: ObjectReader,
    part: FilePart,
    tail: Described,
    *,
    columns: pa.Schema,
    wanted: RowFilter,
    share: Share,
    among: Container[int] | None = None,
    open_row_groups: OpenRowGroups[OpenRowGroup],
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a file, as `reading.read_part` does.

    open_row_groups: what is known of the row group that was read last, for who reads the same
    columns of the next keys.
    """
    match = matched(columns, tail.columns, path=part.path)
    row_groups = row_groups_wanted(tail, wanted, match, among)
    paged = PagedRowGroups(objects, part, tail, match.names, open_row_groups)
    by_arrow = RowGroupsByArrow(objects, part, tail, match=match, share=share)

    def rows_in(row_group: int, rows: range, *, is_whole: bool) -> Iterator[pa.RecordBatch]:
        done, rows_max = rows.start, share.rows_of(tail.row_groups[row_group].row_bytes)
        pages = paged.batches(row_group, rows_max, share.file_bytes, rows, keeps_last=not is_whole)
        for begin, batch in pages:
            done = begin + len(batch)
            yield batch
        if done >= rows.stop:
            return
        for batch in by_arrow.batches(row_group, skip=done):
            done += len(batch)
            yield batch
            if done >= rows.stop:
                return

    for row_group, is_whole in row_groups.items():
        rows = range(tail.rows_of(row_group))
        if not is_whole and not share.is_ahead:
            rows = rows_met(tail, row_group, wanted)
        for batch in rows_in(row_group, rows, is_whole=is_whole):
            fitted = match.fitted(batch)
            yield from [fitted] if is_whole else wanted.apply(fitted)


def rows_met(tail: Described, row_group: int, wanted: RowFilter) -> range:
    """Return rows of a row group outside of which none is wanted, as far as the file's sample
    tells."""
    count, sample = tail.rows_of(row_group), tail.sample
    if not wanted.ranges:
        return range(count)
    before = sum(map(tail.rows_of, range(row_group)))
    low, high = wanted.ranges[0].min, wanted.ranges[-1].max
    begin, end = 0, count
    below = bisect_left(sample.keys, low) - 1  # the last one that is known to lie below all
    if below >= 0:
        begin = below * sample.stride - sample.slack - before
    if high is not None:
        above = bisect_left(sample.keys, high)
        if above < len(sample.keys):
            end = above * sample.stride + sample.slack - before
    begin = min(max(begin, 0), count)
    return range(begin, max(begin, min(end, count)))


class PagedRowGroups:
    """Reads row groups of one file. names: of the file's columns to read. open_row_groups: what is
    already known of row groups, one of each file, with these columns."""

    def __init__(
        self,
        objects: ObjectReader,
        part: FilePart,
        tail: Described,
        names: Sequence[str],
        open_row_groups: OpenRowGroups[OpenRowGroup],
    ) -> None:
        self._objects = objects
        self._part = part
        self._tail = tail
        self._schema = pa.schema([tail.columns.field(name) for name in names])
        self._open_row_groups = open_row_groups

    def batches(
        self, row_group: int, rows_max: int, bytes_max: int, wanted: range, *, keeps_last: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the pages of a row group that have wanted rows, up to where anything is not as
        expected, and the index of the first row of each batch.

        rows_max, bytes_max: of a batch, and of pages as stored, unless one page has more.
        keeps_last: the last batch, for who reads the next rows.
        """
        read = self._open_row_groups.take(self._part.path, row_group) or self._row_group(row_group)
        if read is None:
            return
        first_rows = read.locations.first_rows
        rows = int(first_rows[-1])
        page = max(0, int(np.searchsorted(first_rows, wanted.start, "right")) - 1)
        pages = int(np.searchsorted(first_rows, wanted.stop))
        size = max(1, sum(chunk.end - chunk.start for chunk in read.chunks))
        room = max(0, bytes_max - len(read.chunks) * BLOCK_BYTES)  # reading ends at blocks
        ahead = rows if size <= bytes_max else rows * room // size
        if page > 0 and not read.has_dictionaries and not self._load_dictionaries(read):
            return
        decoded = read.decoded
        read.decoded = None
        if decoded is not None and page in decoded.pages:
            yield int(first_rows[decoded.pages.start]), decoded.batch
            page = decoded.pages.stop
        while page < pages:
            decoded = None  # not held while the next rows are made
            begin = int(first_rows[page])
            last = max(page + 1, int(np.searchsorted(first_rows, begin + rows_max, "right")) - 1)
            last = min(last, pages)
            if last > read.loaded:
                loaded = int(np.searchsorted(first_rows, begin + ahead))
                if not self._load(read, page, min(pages, max(last, loaded))):
                    return
            arrays = read.pages.decode(page, last)
            if arrays is None:
                return
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            decoded = _Decoded(range(page, last), batch)
            del arrays, batch
            yield begin, decoded.batch
            page = last
        read.forget_bytes()
        read.decoded = decoded if keeps_last else None
        self._open_row_groups.put(self._part.path, row_group, read)

    def _row_group(self, row_group: int) -> OpenRowGroup | None:
        """Return a row group; None if one of its columns is not known."""
        try:
            footer, found = self._tail.row_group_of(row_group)
        except MalformedError:
            return None
        column_indices = {column.path: index for index, column in enumerate(footer.columns)}
        if any((name,) not in column_indices for name in self._schema.names):
            return None
        wanted = [column_indices[name,] for name in self._schema.names]
        chunks = [found.chunks[index] for index in wanted]
        columns = [footer.columns[index] for index in wanted]
        flats = [
            flat
            for field, column, chunk in zip(self._schema, columns, chunks, strict=True)
            if (flat := flat_of(field, column, chunk)) is not None
        ]
        locations = page_locations(footer, found, chunks)
        if locations is None or len(flats) < len(chunks):
            return None
        return OpenRowGroup(flats, chunks, locations)

    def _load_dictionaries(self, read: OpenRowGroup) -> bool:
        """Read the dictionaries of a row group that is not read from its begin. Whether they are
        as expected."""
        tail_offset = self._part.file.tail_offset
        for index, chunk in enumerate(read.chunks):
            if chunk.dictionary_page_offset is not None:
                span = aligned(chunk.start, chunk.data_page_offset, tail_offset)
                (raw,) = read_verified(self._objects, self._part, self._tail, [span])
                if not read.take_dictionary(index, raw, span[0]):
                    return False
        read.has_dictionaries = True
        return True

    def _load(self, read: OpenRowGroup, page: int, last: int) -> bool:
        """Read the blocks of pages from one up to another, with one call to the store. Whether
        dictionaries are as expected."""
        tail_offset = self._part.file.tail_offset
        wanted = read.missing(page, last, tail_offset)
        ranges = sorted(w for w in wanted if w[0] < w[1])
        is_all = page == 0 and last == len(read.locations.first_rows) - 1
        gap_max = GAP_BYTES_MAX
        if not is_all:  # what lies between them is at most as much as what is wanted
            gap_max = min(gap_max, sum(end - start for start, end in ranges) // max(1, len(ranges)))
        spans = joined_spans(ranges, tail_offset, gap_max=gap_max)
        parts = read_verified(self._objects, self._part, self._tail, spans)
        begins = [start for start, _ in spans]
        for index, (start, stop) in enumerate(wanted):
            raw = memoryview(b"")
            if start < stop:
                span = bisect_right(begins, start) - 1
                offset = start - begins[span]
                raw = parts[span][offset : offset + stop - start]
                if not is_all and len(raw) < len(parts[span]):
                    raw = memoryview(bytes(raw))  # else one column keeps what is of others
            if not read.add(index, raw, start):
                return False
        read.loaded, read.has_dictionaries = last, True
        return True


class _Decoded(NamedTuple):
    """The rows of some pages."""

    pages: range
    batch: pa.RecordBatch


class OpenRowGroup:
    """A row group being read page after page. loaded: up to which page. has_dictionaries: whether
    they are known, if there are any. decoded: the last rows that were read, of which the next keys
    may be."""

    def __init__(
        self, flats: Sequence[Flat], chunks: Sequence[Chunk], locations: PageLocations
    ) -> None:
        self.chunks = chunks
        self.locations = locations
        self.pages = RowGroupPages(flats, locations)
        self.has_dictionaries = False
        self.decoded: _Decoded | None = None
        self._flats = flats
        self.forget_bytes()

    def forget_bytes(self) -> None:
        """Keep where pages are, and dictionaries, but no page."""
        self.loaded = 0
        self.pages.forget_room()
        self._raw = [memoryview(b"")] * len(self.chunks)
        self._raw_starts = [0] * len(self.chunks)

    def missing(self, page: int, last: int, data_end: int) -> list[tuple[int, int]]:
        """Return the blocks of each column to be read for pages from one up to another. What
        precedes them is forgotten, but not the block that they share with it."""
        firsts = self.locations.starts[:, page].tolist()
        stops = self.locations.ends[:, last - 1].tolist()
        wanted = []
        for index, (chunk, first, stop) in enumerate(zip(self.chunks, firsts, stops, strict=True)):
            begin = first if self.has_dictionaries else chunk.start
            start, end = aligned(begin, stop, data_end)
            raw, raw_start = self._raw[index], self._raw_starts[index]
            held = raw_start + len(raw)
            if raw_start <= start < held:
                self._raw[index], self._raw_starts[index] = raw[start - raw_start :], start
                start = max(start, min(held, end))
            else:
                self._raw[index], self._raw_starts[index] = memoryview(b""), start
            wanted.append((start, end))
        return wanted

    def add(self, index: int, raw: memoryview, start: int) -> bool:
        """Take a column's blocks that were missing. Whether its dictionary is as expected."""
        held, raw_start = self._raw[index], self._raw_starts[index]
        if len(raw) and start != raw_start + len(held):
            raise AssertionError("blocks follow each other")
        if len(raw):
            held = memoryview(b"".join((held, raw))) if len(held) else raw
            self._raw[index] = held
        self.pages.lies_at(index, address_of(held) - raw_start)
        return self.has_dictionaries or self.take_dictionary(index, held, raw_start)

    def take_dictionary(self, index: int, raw: memoryview | bytes, start: int) -> bool:
        """Take a column's dictionary, if it has one, from bytes of the file that begin at `start`.
        Whether it is as expected."""
        chunk = self.chunks[index]
        if chunk.dictionary_page_offset is None:
            return True
        body = memoryview(raw)[chunk.start - start : chunk.data_page_offset - start]
        dictionary = decode_dictionary(self._flats[index], body)
        if dictionary is not None:
            self.pages.take_dictionary(index, dictionary)
        return dictionary is not None
