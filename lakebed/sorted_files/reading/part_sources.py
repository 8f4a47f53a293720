"""Parts of files as sources of a merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from lakebed.model.files import FilePart
from lakebed.model.ranges import KeyRange
from lakebed.ports.object_store import ObjectReader
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.file_summaries import FileSummaries
from lakebed.sorted_files.reading.open_row_groups import OpenRowGroups
from lakebed.sorted_files.reading.part_reading import Share, read_part
from lakebed.sorted_files.reading.row_requests import RowRequest
from lakebed.sorted_files.reading.tails import Tails
from lakebed.sorted_files.sorting.window_merge import Source

if TYPE_CHECKING:  # loads llvmlite
    from lakebed.sorted_files.reading.page_reading import OpenRowGroup


class PartRead(msgspec.Struct, frozen=True):
    """The request of a merge to read one part.

    columns: to be read.
    share: what reading it may hold.
    work: what leaves rows out before they are merged.
    row_groups: of its file, None: whichever hold wanted rows.
    """

    part: FilePart
    wanted: RowFilter
    columns: pa.Schema
    share: Share
    work: RowWork | None = None
    row_groups: range | None = None

    def selected(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what processing leaves of wanted rows, before they are merged."""
        return iter(batches) if self.work is None else map(self.work.selected, batches)


def reads_of(
    request: RowRequest,
    parts: Sequence[FilePart],
    share: Share,
    row_groups: Sequence[range | None] | None = None,
) -> list[PartRead]:
    """Return what is to be read of each part. row_groups: of each."""
    if request.key_boxes is not None and request.key_boxes.is_empty:
        return []
    return [
        read_of(request, part, (part.key_range,), share, among)
        for part, among in zip(parts, row_groups or [None] * len(parts), strict=True)
    ]


def read_of(
    request: RowRequest,
    part: FilePart,
    key_ranges: Sequence[KeyRange],
    share: Share,
    row_groups: range | None = None,
) -> PartRead:
    """Return what is to be read of a part, of some key ranges inside of its own."""
    wanted = RowFilter(request.schema.row_keys, key_ranges, request.key_boxes, request.early)
    return PartRead(part, wanted, request.columns, share, request.work, row_groups)


class RowGroupSources:
    """Reads row group by row group, when a merge gets there. For reads of the same columns, of so
    many files at a time."""

    def __init__(self, objects: ObjectReader, tails: Tails | FileSummaries, at_once: int) -> None:
        self._objects = objects
        self._tails = tails
        self._open_row_groups: OpenRowGroups[OpenRowGroup] = OpenRowGroups(at_once)

    def forget_rows(self) -> None:
        """Keep no rows from what was read so far: what is read next does not follow it."""
        for known in self._open_row_groups.all():
            known.decoded = None

    def source(self, read: PartRead, *, by_pages: bool = False) -> Source:
        """Return the wanted rows of a part. by_pages: decoded by kernels, where they know how."""
        part, wanted, work = read.part, read.wanted, read.work
        reader: Callable[..., Iterator[pa.RecordBatch]] = read_part
        mask = None
        if by_pages:
            if work is not None and not work.takes_in:
                mask = work.mask  # the merge leaves them out
            from lakebed.sorted_files.reading.page_reading import (  # noqa: PLC0415  loads llvmlite
                read_part_by_pages,
            )

            reader = partial(read_part_by_pages, open_row_groups=self._open_row_groups)

        def look() -> bytes | None:
            tail = self._tails.of(part)
            first = tail.row_groups[read.row_groups[0] if read.row_groups else 0].first
            return first if wanted.may_want(first, tail.last) else None

        def open_() -> Iterator[pa.RecordBatch]:
            batches = reader(
                self._objects,
                part,
                self._tails.of(part),
                columns=read.columns,
                wanted=wanted,
                share=read.share,
                among=read.row_groups,
            )
            return batches if mask is not None else read.selected(batches)

        lowest = wanted.ranges[0].min if wanted.ranges else part.key_range.min
        return Source(lowest, open_, look, mask)
