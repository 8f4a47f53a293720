"""Decodes for a scan the row groups of parts of files, each by itself, read ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import tee

import msgspec
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectRanges, ObjectReader
from lakebed.ports.sorted_files import ReadFigures
from lakebed.sorted_files.reading.column_matching import Match, matched
from lakebed.sorted_files.reading.part_reading import (
    RowGroupsByArrow,
    reads_of_row_group,
    row_groups_met,
    row_groups_wanted,
)
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.read_ahead import ReadAhead
from lakebed.sorted_files.reading.row_requests import RowRequest
from lakebed.sorted_files.reading.tails import Tail, Tails

TAILS_BYTES_FIRST = 1 << 20
"""Bytes of tails that a scan begins with; each time twice as many, for its reader may stop soon."""


class RowGroupRead(msgspec.Struct, frozen=True):
    """A row group to decode.

    part_read: what is wanted of its file.
    row_bytes: of a row in memory.
    is_inside: every key of it is wanted.
    match: of the columns to be read: without keys that only ranges ask for.
    spans: what is read of its file; None: more than may be held, so it is read piece by piece.
    """

    part_read: PartRead
    tail: Tail
    row_group: int
    row_bytes: int
    is_inside: bool
    match: Match
    spans: tuple[tuple[int, int], ...] | None


class FetchedRowGroup(msgspec.Struct, frozen=True):
    """A row group whose bytes are there.

    objects: gives them, and what else is read of the file.
    """

    read: RowGroupRead
    objects: ObjectReader


class RowGroupScan:
    """The row groups that some reads want. Not for two threads at a time, but for `batches`.

    reads: of one request, in about the order in which they are to be read.
    """

    def __init__(
        self,
        objects: ObjectReader,
        tails: Tails,
        request: RowRequest,
        reads: Sequence[PartRead],
        *,
        bytes_max: int,
        figures: ReadFigures,
    ) -> None:
        self._objects = objects
        self._tails = tails
        self._request = request
        self._reads = reads
        self._figures = figures
        self._lean = columns_scanned(request)
        self._row_group_reads, ahead = tee(self._all_row_group_reads())
        expected = ((r.part_read.part.path, r.spans) for r in ahead if r.spans is not None)
        self._ahead = ReadAhead(objects, expected, bytes_max=bytes_max, figures=figures)

    def next(self) -> FetchedRowGroup | None:
        """Return the next row group, its bytes read; None: there is none.

        Raises:
            ObjectMissingError: a file is not there. CorruptError: it contradicts the schema.
        """
        read = next(self._row_group_reads, None)
        if read is None:
            return None
        if read.spans is None:
            return FetchedRowGroup(read, self._objects)
        path = read.part_read.part.path
        bodies = self._ahead.read(path, read.spans)
        return FetchedRowGroup(read, _ReadBefore(path, read.spans, bodies))

    def close(self) -> None:
        """Read nothing more."""
        self._ahead.close()

    def batches(self, found: FetchedRowGroup, *, rows_max: int) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of a row group, which may be none of a batch. rows_max: in each.

        Raises:
            CorruptError: its bytes contradict a checksum or the columns.
        """
        read = found.read
        share = msgspec.structs.replace(read.part_read.share, batch_rows=rows_max)
        by_arrow = RowGroupsByArrow(
            found.objects, read.part_read.part, read.tail, match=read.match, share=share
        )
        for stored in by_arrow.batches(read.row_group):
            batch = read.match.fitted(stored)
            wanted = read.part_read.wanted
            for kept in wanted.kept(batch) if read.is_inside else wanted.apply(batch):
                for rows in read.part_read.selected([kept]):
                    given = self._request.given
                    yield rows if given is None else rows.select(given)

    def _all_row_group_reads(self) -> Iterator[RowGroupRead]:
        """Yield what is to be decoded. Tails are read many at once."""
        begin, tails_bytes = 0, TAILS_BYTES_FIRST
        while begin < len(self._reads):
            end, size = begin, 0
            room = min(tails_bytes, self._tails.bytes_at_once)
            while end < len(self._reads) and (end == begin or size <= room):
                size += _tail_bytes(self._reads[end].part)
                end += 1
            some = self._reads[begin:end]
            tails = self._tails.of_many([read.part for read in some], self._figures)
            for read, tail in zip(some, tails, strict=True):
                yield from self._row_group_reads_of(read, tail)
            begin, tails_bytes = end, 2 * tails_bytes

    def _row_group_reads_of(self, read: PartRead, tail: Tail) -> Iterator[RowGroupRead]:
        path = read.part.path
        whole = matched(read.columns, tail.columns, path=path)
        is_lean = self._lean is not self._request.columns
        lean = matched(self._lean, tail.columns, path=path) if is_lean else whole
        met = row_groups_met(tail, read.wanted)
        wanted = row_groups_wanted(tail, read.wanted, whole)
        self._figures.row_groups += len(tail.row_groups)
        self._figures.row_groups_met += len(met)
        self._figures.row_groups_read += len(wanted)
        for row_group in wanted:
            is_inside = read.wanted.covers(*met[row_group])
            match = lean if is_inside and lean.names else whole
            spans = reads_of_row_group(read.part, tail, row_group, match=match, share=read.share)
            yield RowGroupRead(
                part_read=read,
                tail=tail,
                row_group=row_group,
                row_bytes=tail.row_groups[row_group].row_bytes,
                is_inside=is_inside,
                match=match,
                spans=None if spans is None else tuple(spans),
            )


class _ReadBefore:
    """Gives bytes that were read already, once: nothing keeps them longer than the decoder."""

    def __init__(
        self, path: str, spans: Sequence[tuple[int, int]], bodies: Sequence[bytes]
    ) -> None:
        self._path = path
        self._bodies = dict(zip(spans, bodies, strict=True))

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range, each of which was read."""
        if path != self._path:
            raise AssertionError("a row group lies in one file")
        return [self._bodies.pop(span) for span in ranges]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range."""
        return [self.read(path, ranges) for path, ranges in wanted]


def columns_scanned(request: RowRequest) -> pa.Schema:
    """Return the columns to read of row groups of which every key is wanted."""
    boxes = request.key_boxes
    if request.given is None or (boxes is not None and boxes.tested):
        return request.columns
    asked = {*request.given}
    if request.early is not None:
        asked |= request.early.fields
    if request.work is not None:
        asked |= request.work.looked_at
    return pa.schema([column for column in request.columns if column.name in asked])


def _tail_bytes(part: FilePart) -> int:
    return part.file.size - part.file.tail_offset
