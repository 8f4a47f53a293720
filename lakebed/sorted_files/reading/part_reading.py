"""Reading the wanted rows of one file, batch by batch, in key order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES
from lakebed.sorted_files.reading.column_matching import Match, matched
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.range_file import RangeFile, joined_spans
from lakebed.sorted_files.reading.row_group_bounds import RowGroupBounds, column_count
from lakebed.sorted_files.reading.tails import Described, Tail

BATCH_ROWS_MAX = 65_536


class Share(msgspec.Struct, frozen=True):
    """The memory that one reader may hold.

    batch_bytes: in memory.
    file_bytes: as they are stored.
    is_ahead: row groups are on their way as `reads_expected` says, all of their pages.
    """

    batch_bytes: int
    batch_rows: int
    file_bytes: int
    is_ahead: bool = False

    def rows_of(self, row_bytes: int) -> int:
        """Return how many rows of so many bytes a batch has."""
        return max(1, min(self.batch_rows, self.batch_bytes // max(1, row_bytes)))


def read_part(
    objects: ObjectReader,
    part: FilePart,
    tail: Described,
    *,
    columns: pa.Schema,
    wanted: RowFilter,
    share: Share,
    among: Container[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a file.

    columns: those to give, whatever they were when it was written.
    among: row groups of which no others are read.

    A row group is read with one request where the share allows it, else piece by piece.

    Raises:
        ObjectMissingError: the file is not there.
        CorruptError: its bytes contradict a checksum or the columns.
    """
    match = matched(columns, tail.columns, path=part.path)
    row_groups = row_groups_wanted(tail, wanted, match, among)
    by_arrow = RowGroupsByArrow(objects, part, tail, match=match, share=share)
    for row_group, is_whole in row_groups.items():
        for batch in by_arrow.batches(row_group):
            fitted = match.fitted(batch)
            yield from [fitted] if is_whole else wanted.apply(fitted)


class RowGroupsByArrow:
    """Row groups of one file as Arrow reads them; every byte is verified by block checksums."""

    def __init__(
        self,
        objects: ObjectReader,
        part: FilePart,
        tail: Described,
        *,
        match: Match,
        share: Share,
    ) -> None:
        self._tail = tail
        self._names = list(match.names)
        self._stored = _stored_columns(tail.columns, match.names)
        self._share = share
        self._file = RangeFile(objects, part, tail, memory_bytes=share.file_bytes)
        self._guard = _Guard(part, self._file)
        self._opened: tuple[pq.FileMetaData, bool, pq.ParquetFile] | None = None

    def batches(self, row_group: int, *, skip: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group without the first ones, in the file's columns."""
        rows = self._share.rows_of(self._tail.row_groups[row_group].row_bytes)
        metadata, index = self._tail.metadata_of(row_group)
        chunks = chunk_ranges(metadata, index, self._stored)
        at_once = _fits(chunks, self._share)
        self._file.load(chunks if at_once else [])
        with self._guard:
            batches = self._parquet(metadata, at_once=at_once).iter_batches(
                rows, row_groups=[index], columns=self._names, use_threads=False
            )
        while (batch := self._guard.next_of(batches)) is not None:
            if skip >= len(batch):
                skip -= len(batch)
                continue
            # Selected again: a name with a dot in it finds members of structs, too.
            yield batch.select(self._names).slice(skip)
            skip = 0

    def _parquet(self, metadata: pq.FileMetaData, *, at_once: bool) -> pq.ParquetFile:
        """Return the file for Arrow, which is opened anew only where it must be."""
        opened = self._opened
        if opened is None or opened[0] is not metadata or opened[1] != at_once:
            parquet = pq.ParquetFile(
                pa.PythonFile(self._file, mode="r"),
                metadata=metadata,
                pre_buffer=False,
                buffer_size=0 if at_once else BLOCK_BYTES,
                # RangeFile has compared every byte, page headers too: once is enough.
                page_checksum_verification=False,
            )
            self._opened = opened = metadata, at_once, parquet
        return opened[2]


def reads_expected(
    part: FilePart, tail: Tail, *, columns: pa.Schema, wanted: RowFilter, share: Share
) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return what `read_part` will ask for, row group by row group, each with its index; nothing
    of those that it reads piece by piece.

    Raises:
        CorruptError: the columns contradict the file's.
    """
    match = matched(columns, tail.columns, path=part.path)
    found = (
        (row_group, reads_of_row_group(part, tail, row_group, match=match, share=share))
        for row_group in row_groups_wanted(tail, wanted, match)
    )
    return [(row_group, spans) for row_group, spans in found if spans is not None]


def reads_of_row_group(
    part: FilePart, tail: Tail, row_group: int, *, match: Match, share: Share
) -> list[tuple[int, int]] | None:
    """Return what is read of a file for one of its row groups; None: it is read piece by piece."""
    ranges = chunk_ranges(tail.metadata, row_group, _stored_columns(tail.columns, match.names))
    return joined_spans(ranges, part.file.tail_offset) if _fits(ranges, share) else None


def bytes_read(
    part: FilePart, tail: Tail, columns: pa.Schema, among: Iterable[int] | None = None
) -> int:
    """Return how many bytes of a file are read for some columns, without its tail: whole blocks.
    among: row groups of which no others are read; None: all are.

    Raises:
        CorruptError: the columns contradict the file's.
    """
    match = matched(columns, tail.columns, path=part.path)
    stored = _stored_columns(tail.columns, match.names)
    spans = (
        span
        for row_group in (range(len(tail.row_groups)) if among is None else among)
        for span in joined_spans(
            chunk_ranges(tail.metadata, row_group, stored), part.file.tail_offset
        )
    )
    return sum(end - start for start, end in spans)


class _Guard:
    """Around calls of Arrow; lets out only our own errors."""

    def __init__(self, part: FilePart, file: RangeFile) -> None:
        self._part = part
        self._file = file

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (pa.ArrowException, OSError, ValueError, KeyError)):
            if self._file.problem is not None:
                raise self._file.problem from error
            raise CorruptError(
                "a file cannot be read", path=self._part.path, problem=str(error)
            ) from error

    def next_of(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """Return the next batch, None at the end."""
        with self:
            return next(batches, None)


def _fits(ranges: Sequence[tuple[int, int]], share: Share) -> bool:
    """Return whether a row group can be read with one request."""
    return sum(end - start for start, end in ranges) <= share.file_bytes


def row_groups_wanted(
    tail: Described, wanted: RowFilter, match: Match, among: Container[int] | None = None
) -> dict[int, bool]:
    """Return the row groups to read, and whether all rows of each are wanted."""
    return {
        row_group: wanted.wants_all(first, last)
        for row_group, (first, last) in row_groups_met(tail, wanted).items()
        if (among is None or row_group in among)
        and (
            not wanted.asks_bounds
            or wanted.may_want_columns(RowGroupBounds(tail, row_group, match).of)
        )
    }


def row_groups_met(tail: Described, wanted: RowFilter) -> dict[int, tuple[bytes, bytes]]:
    """Return the row groups whose keys may be wanted: the first key of each, and of the next."""
    firsts, last = tail.firsts, tail.last
    found: dict[int, tuple[bytes, bytes]] = {}
    for r in wanted.ranges:
        end = len(firsts) if r.max is None else bisect_left(firsts, r.max)
        # One that ends where the range begins may have rows of just that key.
        begin = max(0, bisect_left(firsts, r.min) - 1)
        for row_group in range(begin, end):
            behind = firsts[row_group + 1] if row_group + 1 < len(firsts) else last
            if r.min <= behind:
                found[row_group] = firsts[row_group], behind
    return found


def _stored_columns(columns: pa.Schema, names: Sequence[str]) -> list[int]:
    """Return the indices of Parquet's columns that belong to these fields."""
    wanted = set(names)
    stored_columns: list[int] = []
    index = 0
    for column in columns:
        count = column_count(column.type)
        if column.name in wanted:
            stored_columns += range(index, index + count)
        index += count
    return stored_columns


def chunk_ranges(
    metadata: pq.FileMetaData, row_group: int, stored_columns: Sequence[int]
) -> list[tuple[int, int]]:
    """Return where the chunks of some of Parquet's columns lie, in the order of the file."""
    chunks = metadata.row_group(row_group)
    ranges = []
    for column in stored_columns:
        chunk = chunks.column(column)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page:
            start = min(start, chunk.dictionary_page_offset)
        ranges.append((start, start + chunk.total_compressed_size))
    return sorted(ranges)
