"""Merges ranges of keys for another process, which joins them into its file."""

from __future__ import annotations

from importlib import import_module

from lakebed.errors import LakebedError
from lakebed.observe.usage import PROCESS, Counts
from lakebed.ports.object_store import ObjectReader, ObjectStore
from lakebed.sorted_files.merging.memory_shares import MergeMemory
from lakebed.sorted_files.merging.range_messages import (
    Answer,
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
    decode_message,
    encode,
)
from lakebed.sorted_files.merging.row_group_transfer import hand_over
from lakebed.sorted_files.merging.stretch_merge import StretchMerge
from lakebed.sorted_files.reading.part_sources import reads_of
from lakebed.sorted_files.reading.row_requests import row_request
from lakebed.sorted_files.sorting.engines import engine_for
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder


def load_kernels() -> None:
    """Load what a merge by kernels takes, before the first is asked for. Compiles nothing."""
    from lakebed.kernels.toolchain.compiling import load_kept  # noqa: PLC0415  loads llvmlite

    import_module("lakebed.sorted_files.sorting.compiled_engine")
    import_module("lakebed.sorted_files.reading.page_reading")
    import_module("lakebed.parquet_bytes.column_encoding")
    load_kept()


class RangeMerger:
    """objects: of the lake. scratch: where ranges are left for who asked."""

    def __init__(self, objects: ObjectReader, scratch: ObjectStore) -> None:
        self._objects = objects
        self._scratch = scratch
        self._merge_task: MergeTask | None = None
        self._work: tuple[StretchMerge, RowGroupEncoder] | None = None

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to a line, without its end; None: it asks for none."""
        message = decode_message(line)
        if isinstance(message, MergeTask):
            if self._work is not None:
                self._work[1].close()
            self._merge_task, self._work = message, None
            return None
        try:
            return encode(self._merged(message))
        except (LakebedError, OSError, MemoryError) as error:
            return encode(RangeFailed(f"{type(error).__name__}: {error}"))

    def _merged(self, range_task: RangeTask) -> Answer:
        assert self._merge_task is not None, "a merge is sent before its ranges"
        if self._work is None:
            self._work = self._work_of(self._merge_task)
        merge, encoder = self._work
        handed = hand_over(
            self._scratch,
            merge.request.schema,
            merge.rows(range_task.within),
            path=range_task.path,
            encoder=encoder,
        )
        return RangeMerged(range_task.path, handed, _used())

    def _work_of(self, merge_task: MergeTask) -> tuple[StretchMerge, RowGroupEncoder]:
        """Return the merge, and what encodes the rows of all its ranges."""
        memory = MergeMemory(merge_task.memory)
        request = row_request(merge_task.text.schema(), None, merge_task.row_processing())
        parts = [read.part for read in merge_task.reads]
        share = memory.share_of(parts, paged_columns=len(request.columns))
        row_groups = [
            None if read.row_groups is None else range(*read.row_groups)
            for read in merge_task.reads
        ]
        reads = reads_of(request, parts, share, row_groups)
        engine = engine_for(merge_task.job_rows)
        summaries, statistics = memory.summaries(self._objects), merge_task.value_statistics
        return (
            StretchMerge(self._objects, summaries, request, reads, engine),
            RowGroupEncoder(request.schema, compiled=True, value_statistics=statistics),
        )


def _used() -> Counts:
    """Return what this process counted since it was last asked, all of it for this merge."""
    found: Counts = {}
    for entry in PROCESS.take():
        for counter, amount in entry.counts.items():
            found[counter] = found.get(counter, 0.0) + amount
    return found
