"""Computes what a merge may hold, and how its inputs share it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.errors import MergeMemoryError
from lakebed.model.files import FilePart
from lakebed.model.ranges import KeyRange
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES
from lakebed.sorted_files.format.row_groups import ROW_GROUP_BYTES_MAX
from lakebed.sorted_files.reading.file_summaries import FileSummaries
from lakebed.sorted_files.reading.part_reading import BATCH_ROWS_MAX, Share
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.writing.writer_options import page_rows

PAGED_BYTES_MAX = 2 * 1024 * 1024
"""Most bytes of one part that is read by pages, decoded, and as stored but for one block of each
column: what is read ends at blocks."""
TAILS_FRACTION = 16
"""Divisor of a merge's memory: one part is for whole tails; of the other files it keeps
summaries."""
WINDOW_ROWS = 120_000
"""Rows of all inputs that a merge holds: its windows have about half, which suits the caches."""
BATCHES_WAITING = 1.5
"""Batches of each input that wait in memory."""


class MergeMemory(msgspec.Struct, frozen=True):
    """size: in bytes."""

    size: int

    def shared_by(self, processes: int) -> MergeMemory:
        """Return what each of several processes may hold."""
        return MergeMemory(self.size // processes)

    def summaries(self, objects: ObjectReader) -> FileSummaries:
        """Return room for what is kept of files."""
        return FileSummaries(objects, whole_bytes_max=self.size // TAILS_FRACTION)

    def share_of(self, parts: Sequence[FilePart], *, paged_columns: int = 0) -> Share:
        """Return what each of these parts may hold, see `share`."""
        inputs = overlap([part.key_range for part in parts])
        return self.share(inputs, paged_columns=paged_columns)

    def share(self, inputs: int, *, paged_columns: int = 0) -> Share:
        """Return what each of so many inputs may hold. paged_columns: how many are read by pages;
        0: row groups are read.

        A fourth of the memory is batches that wait (one and a half per input), a fourth their
        files' bytes; the window's copies, or those of a row group, take the rest.
        """
        each = self.size // (4 * max(1, inputs))
        rows = max(1024, min(BATCH_ROWS_MAX, 2 * WINDOW_ROWS // max(1, inputs)))
        file_bytes = each
        if paged_columns:  # more is no faster, and there are no windows
            file_bytes = min(each, PAGED_BYTES_MAX + paged_columns * BLOCK_BYTES)
            each, rows = min(each, PAGED_BYTES_MAX), BATCH_ROWS_MAX
        batch_bytes = max(1, int(each / BATCHES_WAITING))
        return Share(batch_bytes=batch_bytes, batch_rows=rows, file_bytes=file_bytes)

    def check(self, smallest: int, inputs: int) -> None:
        """Raise MergeMemoryError where it is less than a merge needs."""
        if self.size < smallest:
            raise MergeMemoryError(
                "a merge needs more memory than it may take",
                merge_bytes=self.size,
                smallest=smallest,
                files=inputs,
                hint="allow as much as `smallest`, or merge fewer files at a time",
            )


def decoded_by_pages(share: Share) -> Share:
    """Return a share whose row groups are read ahead as before, but decoded by pages: few at a
    time, which suits the caches."""
    batch_bytes = min(share.batch_bytes, int(PAGED_BYTES_MAX / BATCHES_WAITING))
    return msgspec.structs.replace(
        share, batch_bytes=batch_bytes, batch_rows=BATCH_ROWS_MAX, is_ahead=True
    )


def memory_needed(reads: Sequence[PartRead], summaries: FileSummaries) -> tuple[int, int]:
    """Return the least bytes that a merge can be limited to, and how many inputs meet.

    Each part needs the rows of a page as they are stored, in whole blocks of each column, and
    decoded, each of which is a fourth of all; row groups need half.
    """
    summaries.read([read.part for read in reads])
    rows = {g.row_bytes for read in reads for g in summaries.of(read.part).row_groups}
    leaves = max((len(read.columns) for read in reads), default=0)
    page = max((page_rows(row) * row for row in rows), default=0)
    each = max(page + leaves * BLOCK_BYTES, int(page * BATCHES_WAITING))
    inputs = overlap([read.part.key_range for read in reads])
    return max(4 * inputs * each, 6 * max(ROW_GROUP_BYTES_MAX, *rows, 0)), inputs


def overlap(key_ranges: Sequence[KeyRange]) -> int:
    """Return how many key ranges at most hold one key."""
    ends = sorted(
        [(r.min, 1) for r in key_ranges] + [(r.max, -1) for r in key_ranges if r.max is not None]
    )
    most = depth = 0
    for _, step in ends:
        depth += step
        most = max(most, depth)
    return most
