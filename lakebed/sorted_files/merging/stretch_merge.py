"""The merge of row groups of several files: of all their rows, or of one range of keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import pyarrow as pa

from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import Sample, split_points
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.format.row_groups import rows_of_row_group
from lakebed.sorted_files.merging.memory_shares import overlap
from lakebed.sorted_files.reading.conditions import RowFilter
from lakebed.sorted_files.reading.file_summaries import FileSummaries
from lakebed.sorted_files.reading.part_reading import Share, row_groups_met
from lakebed.sorted_files.reading.part_sources import PartRead, RowGroupSources
from lakebed.sorted_files.reading.row_requests import RowRequest
from lakebed.sorted_files.sorting.engines import PLAIN, Engine

FILLED = 0.95
"""Share of a row group that is planned to be filled: samples do not show where a range ends to the
row, and what is above is a row group of few rows."""


class StretchMerge:
    """reads: what is wanted of each file."""

    def __init__(
        self,
        objects: ObjectReader,
        summaries: FileSummaries,
        request: RowRequest,
        reads: Sequence[PartRead],
        engine: Engine,
    ) -> None:
        self.request = request
        self.reads = reads
        self._summaries = summaries
        at_once = overlap([read.part.key_range for read in reads])
        self._row_groups = RowGroupSources(objects, summaries, at_once)
        self._engine = engine
        self._end: bytes | None = None
        """Of the range that was merged last."""

    def rows(self, within: KeyRange = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Yield what processing makes of the rows of a range of row keys, in order."""
        if within.min != self._end:
            self._row_groups.forget_rows()
        self._end = within.max
        by_pages = self._engine is not PLAIN
        reads = [self._inside(read, within) for read in self.reads]
        reads = [read for read in reads if not read.part.key_range.is_empty]
        sources = [self._row_groups.source(read, by_pages=by_pages) for read in reads]
        request = self.request
        merged = self._engine.merge(sources, request.schema.key_fields, request.folds)
        return request.processed(merged, [read.part for read in reads])

    def share(self, share: Share) -> None:
        """Let each input hold another share from now on."""
        self.reads = [msgspec.structs.replace(read, share=share) for read in self.reads]

    def row_groups(self) -> int:
        """Return how many row groups are read."""
        return sum(len(self._row_groups_of(read)) for read in self.reads)

    def row_groups_out(self) -> int:
        """Return how many row groups the rows that are read would fill almost; at least one."""
        return max(1, math.ceil(sum(map(self._filled_by, self.reads)) / FILLED))

    def _filled_by(self, read: PartRead) -> float:
        """Return how many row groups the rows of a file would fill, as far as its sample shows."""
        known, row_groups = self._summaries.of(read.part), self._row_groups_of(read)
        rows = {row_group: known.rows_of(row_group) for row_group in row_groups}
        if not rows:
            return 0
        full = sum(n / rows_of_row_group(known.row_groups[g].row_bytes) for g, n in rows.items())
        return full * min(1, self._sample(read).rows / sum(rows.values()))

    def ranges(self, count_max: int) -> list[KeyRange]:
        """Return ranges of row keys, ascending, with about as many rows each: they hold all keys
        together."""
        samples, row_keys = [self._sample(r) for r in self.reads], self.request.schema.row_keys
        cuts = split_points(samples, count_max, row_keys)
        return [KeyRange(low or b"", high) for low, high in pairwise((b"", *cuts, None))]

    def _inside(self, read: PartRead, within: KeyRange) -> PartRead:
        if within == EVERYTHING:
            return read
        key_range = read.part.key_range.meets(within)
        request = self.request
        wanted = RowFilter(request.schema.row_keys, (key_range,), request.key_boxes, request.early)
        part = msgspec.structs.replace(read.part, key_range=key_range)
        return msgspec.structs.replace(read, part=part, wanted=wanted)

    def _row_groups_of(self, read: PartRead) -> Sequence[int]:
        if read.row_groups is not None:
            return read.row_groups
        return list(row_groups_met(self._summaries.of(read.part), read.wanted))

    def _sample(self, read: PartRead) -> Sample:
        """Return the sample of a file's row groups that are read."""
        known, row_groups = self._summaries.of(read.part), self._row_groups_of(read)
        if not row_groups:
            return Sample((), known.sample.stride, 0)
        firsts, end = known.firsts, row_groups[-1] + 1
        span = KeyRange(firsts[row_groups[0]], firsts[end] if end < len(firsts) else None)
        return known.sample.inside(span.meets(read.part.key_range))
