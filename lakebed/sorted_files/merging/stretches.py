"""Row groups that a merge need not touch: they are copied as they are stored.

A row group is copied when no other part has a key within its bounds, all of it lies in its
part's key range, its columns are stored as the writer would store them, and it is not one of many
that are small. Its bytes are verified by block checksums while they are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError
from lakebed.parquet_bytes.encoded import EncodedRowGroup, chunks_of
from lakebed.parquet_bytes.thrift import MalformedError
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.row_groups import ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX
from lakebed.sorted_files.reading.file_summaries import FileSummaries
from lakebed.sorted_files.reading.part_reading import chunk_ranges, row_groups_met
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.range_file import aligned, read_verified
from lakebed.sorted_files.reading.tails import Described, Tail
from lakebed.sorted_files.writing.page_checksums import page_checksums
from lakebed.sorted_files.writing.stored_row_group import Known, StoredRowGroup

FILL_MIN = 0.5
"""Smallest share of what row groups may have, rows or bytes, on average over those copied
together."""


class RowGroupStretch(msgspec.Struct, frozen=True):
    """Row groups that follow each other in key order: of one part, to be copied, or of several,
    to be merged."""

    reads: tuple[PartRead, ...]
    is_copied: bool


class _Piece(msgspec.Struct, frozen=True):
    """Row groups of one part.

    first: their lowest key.
    """

    first: bytes
    part: int
    row_groups: range
    is_copied: bool


def stretches_of(
    reads: Sequence[PartRead], summaries: FileSummaries, columns: pa.Schema
) -> list[RowGroupStretch]:
    """Return what is copied and what is merged, in the order of keys.

    columns: of the file to be written.
    reads: of whole key ranges, without other conditions.
    """
    summaries.read([read.part for read in reads])
    found = [_spans(read, summaries.of(read.part)) for read in reads]
    lows = sorted(spans[0].low for spans in found if spans)
    highs = sorted(spans[-1].high for spans in found if spans)

    def is_alone(span: _Span) -> bool:
        return span.is_inside and bisect_right(lows, span.high) - bisect_left(highs, span.low) == 1

    pieces: list[_Piece] = []
    for index, (read, spans) in enumerate(zip(reads, found, strict=True)):
        tail = summaries.of(read.part)
        fits = _same_columns(tail.columns, columns)
        for alone, members in groupby(spans, is_alone):
            together = list(members)
            row_groups = range(together[0].row_group, together[-1].row_group + 1)
            copied = alone and fits and _is_full(tail, row_groups)
            pieces.append(_Piece(together[0].low, index, row_groups, copied))
    pieces.sort(key=lambda piece: (piece.first, piece.part, piece.row_groups[0]))
    stretches: list[RowGroupStretch] = []
    for is_copied, neighbours in groupby(pieces, lambda piece: piece.is_copied):
        chosen = [
            msgspec.structs.replace(reads[piece.part], row_groups=piece.row_groups)
            for piece in neighbours
        ]
        if is_copied:
            stretches += [RowGroupStretch((read,), is_copied=True) for read in chosen]
        else:
            stretches.append(RowGroupStretch(tuple(chosen), is_copied=False))
    return stretches


def stored_row_groups(
    objects: ObjectReader, read: PartRead, tail: Tail
) -> Iterator[StoredRowGroup]:
    """Yield the row groups of a part that are copied, read when they are asked for.

    Raises:
        ObjectMissingError: the file is not there.
        CorruptError: its bytes contradict their checksums, or its footer itself.
    """
    assert read.row_groups is not None, "what is copied is named"
    notes, part = tail.notes, read.part
    lasts = [*(row_group.first for row_group in notes.row_groups[1:]), notes.last]
    starts = _starts(tail)
    try:
        footer = tail.footer
        for row_group in read.row_groups:
            ranges = chunk_ranges(tail.metadata, row_group, range(len(footer.columns)))
            span = aligned(ranges[0][0], ranges[-1][1], part.file.tail_offset)
            (data,) = read_verified(objects, part, tail, [span])
            encoded = EncodedRowGroup(
                starts[row_group + 1] - starts[row_group],
                chunks_of(footer, row_group, data, span[0]),
            )
            yield StoredRowGroup(
                encoded=encoded,
                note=notes.row_groups[row_group],
                checksums=notes.pages[row_group] or page_checksums(encoded),
                last=lasts[row_group],
                known=_known(tail, row_group, starts),
            )
    except MalformedError as error:
        raise CorruptError(
            "a file's footer is wrong", path=part.path, problem=str(error)
        ) from error


class _Span(msgspec.Struct, frozen=True):
    """Bounds of a row group's row keys.

    is_inside: all of it is wanted.
    """

    row_group: int
    low: bytes
    high: bytes
    is_inside: bool


def _spans(read: PartRead, tail: Described) -> list[_Span]:
    """Return the bounds of the row groups that hold wanted rows."""
    return [
        _Span(row_group, low, high, read.wanted.wants_all(low, high))
        for row_group, (low, high) in row_groups_met(tail, read.wanted).items()
    ]


def _same_columns(found: pa.Schema, columns: pa.Schema) -> bool:
    """Return whether a file has these columns, in this order, with these numbers. What Arrow calls
    the entries of a map differs before and after Parquet, and is not compared."""
    return len(found) == len(columns) and all(
        own.equals(wanted) and own.metadata == wanted.metadata
        for own, wanted in zip(found, columns, strict=True)
    )


def _is_full(tail: Described, row_groups: range) -> bool:
    """Return whether these row groups are as large as row groups are, or almost."""
    rows = [tail.rows_of(row_group) for row_group in row_groups]
    sizes = [n * tail.row_groups[g].row_bytes for n, g in zip(rows, row_groups, strict=True)]
    least = FILL_MIN * len(row_groups)
    return bool(
        sum(rows) >= least * ROW_GROUP_ROWS_MAX or sum(sizes) >= least * ROW_GROUP_BYTES_MAX
    )


def _starts(tail: Tail) -> list[int]:
    """Return the rows before each row group, and all."""
    counts = map(tail.rows_of, range(len(tail.row_groups)))
    return list(accumulate(counts, initial=0))


def _known(tail: Tail, row_group: int, starts: Sequence[int]) -> Known:
    """Return the rows of a row group that the file's sample gives, and its first."""
    sample = tail.notes.sample
    known = [(0, tail.notes.row_groups[row_group].first, 0)]
    index = starts[row_group] // sample.stride + 1
    while index < len(sample.keys) and index * sample.stride < starts[row_group + 1]:
        at = index * sample.stride - starts[row_group]
        known.append((at, sample.keys[index], sample.slack))
        index += 1
    return known
