"""Makes one file of many: copies row groups, or merges them, here or by helpers."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from lakebed.model.files import FilePart
from lakebed.ports.object_store import ObjectReader
from lakebed.sorted_files.merging.helper_processes import MergeHelpers
from lakebed.sorted_files.merging.memory_shares import MergeMemory, memory_needed
from lakebed.sorted_files.merging.parallel_merge import merged_together
from lakebed.sorted_files.merging.range_messages import MergeTask, RowGroupsRead
from lakebed.sorted_files.merging.stretch_merge import StretchMerge
from lakebed.sorted_files.merging.stretches import RowGroupStretch, stored_row_groups, stretches_of
from lakebed.sorted_files.reading.file_summaries import FileSummaries
from lakebed.sorted_files.reading.part_reading import Share
from lakebed.sorted_files.reading.part_sources import PartRead, reads_of
from lakebed.sorted_files.reading.row_requests import RowRequest
from lakebed.sorted_files.sorting.engines import PLAIN, Engine
from lakebed.sorted_files.writing.file_writing import Content

HELPED_ROW_GROUPS_MIN = 16
"""Row groups of a merge for which helpers are asked: fewer are merged before one is there."""


class FileMerge(msgspec.Struct, frozen=True):
    """A merge of files, by this process and its helpers.

    memory: of all processes.
    is_limited: whether the merge keeps to that memory or is refused.
    merge_task: what helpers learn of the merge, but for what is read.
    """

    objects: ObjectReader
    request: RowRequest
    engine: Engine
    memory: MergeMemory
    is_limited: bool
    helpers: MergeHelpers | None
    merge_task: MergeTask

    def contents(self, parts: Sequence[FilePart]) -> Generator[Content]:
        """Yield rows and row groups in the order of their keys.

        Raises:
            MergeMemoryError: the limit of memory cannot be kept; nothing was read but tails.
        """
        summaries = self.memory.summaries(self.objects)
        reads = reads_of(self.request, parts, self._share(parts, self.memory))
        helpers = self._helpers(reads, summaries)
        if self.request.work is not None:  # every row is looked at
            stretches = [RowGroupStretch(tuple(reads), is_copied=False)]
        else:
            stretches = stretches_of(reads, summaries, self.request.columns)
        for stretch in stretches:
            if stretch.is_copied:
                (read,) = stretch.reads
                yield from stored_row_groups(self.objects, read, summaries.whole(read.part))
                continue
            merge = StretchMerge(self.objects, summaries, self.request, stretch.reads, self.engine)
            if helpers is None or merge.row_groups() < HELPED_ROW_GROUPS_MIN:
                yield from merge.rows()
                continue
            memory = self.memory.shared_by(helpers.count + 1)
            merge.share(self._share(parts, memory))
            yield from merged_together(merge, helpers, self._merge_task(stretch, memory))

    def _helpers(self, reads: Sequence[PartRead], summaries: FileSummaries) -> MergeHelpers | None:
        """Return who helps. An iterator sees all rows of a leaf, in one process."""
        work, helpers = self.request.work, self.helpers
        if self.engine is PLAIN or (work is not None and work.iterator is not None):
            helpers = None
        if self.is_limited:
            smallest, inputs = memory_needed(reads, summaries)
            self.memory.check(smallest, inputs)
            if helpers and self.memory.shared_by(helpers.count + 1).size < smallest:
                helpers = None
        return helpers

    def _share(self, parts: Sequence[FilePart], memory: MergeMemory) -> Share:
        paged_columns = 0 if self.engine is PLAIN else len(self.request.columns)
        return memory.share_of(parts, paged_columns=paged_columns)

    def _merge_task(self, stretch: RowGroupStretch, memory: MergeMemory) -> MergeTask:
        reads = (
            RowGroupsRead(
                read.part,
                None if read.row_groups is None else (read.row_groups.start, read.row_groups.stop),
            )
            for read in stretch.reads
        )
        return msgspec.structs.replace(self.merge_task, reads=tuple(reads), memory=memory.size)
