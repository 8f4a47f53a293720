"""Merges ranges of keys for another process, which joins them into its file."""

from __future__ import annotations

from importlib import import_module

from lakebed.errors import LakebedError
from lakebed.ports.object_store import ObjectReader, ObjectStore
from lakebed.sorted_files.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.engines import engine_for
from lakebed.sorted_files.merge_memory import MergeMemory
from lakebed.sorted_files.part_sources import reads_of
from lakebed.sorted_files.range_messages import (
    Answer,
    MergeTold,
    RangeFailed,
    RangeMerged,
    RangeTold,
    decode_told,
    encode,
)
from lakebed.sorted_files.row_group_transfer import hand_over
from lakebed.sorted_files.row_requests import row_request
from lakebed.sorted_files.stretch_merge import StretchMerge


def load_kernels() -> None:
    """Load what a merge by kernels takes, before the first is asked for. Compiles nothing."""
    from lakebed.kernels.compiling import load_kept  # noqa: PLC0415  loads llvmlite

    for module in ("compiled_engine", "page_reading"):
        import_module(f"lakebed.sorted_files.{module}")
    import_module("lakebed.parquet_bytes.column_encoding")
    load_kept()


class RangeMerger:
    """objects: of the lake. scratch: where ranges are left for who asked."""

    def __init__(self, objects: ObjectReader, scratch: ObjectStore) -> None:
        self._objects = objects
        self._scratch = scratch
        self._told: MergeTold | None = None
        self._work: tuple[StretchMerge, RowGroupEncoder] | None = None

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to a line, without its end; None: it asks for none."""
        told = decode_told(line)
        if isinstance(told, MergeTold):
            if self._work is not None:
                self._work[1].close()
            self._told, self._work = told, None
            return None
        try:
            return encode(self._merged(told))
        except (LakebedError, OSError, MemoryError) as error:
            return encode(RangeFailed(f"{type(error).__name__}: {error}"))

    def _merged(self, asked: RangeTold) -> Answer:
        assert self._told is not None, "a merge is told before its ranges"
        told = self._told
        if self._work is None:
            self._work = self._work_of(told)
        merge, encoder = self._work
        handed = hand_over(
            self._scratch,
            merge.request.schema,
            merge.rows(asked.within),
            path=asked.path,
            encoder=encoder,
        )
        return RangeMerged(asked.path, handed)

    def _work_of(self, told: MergeTold) -> tuple[StretchMerge, RowGroupEncoder]:
        """Return the merge, and what encodes the rows of all its ranges."""
        memory = MergeMemory(told.memory)
        request = row_request(told.text.schema(), None, told.row_processing())
        parts = [read.part for read in told.reads]
        share = memory.share_of(parts, paged_columns=len(request.columns))
        groups = [None if read.groups is None else range(*read.groups) for read in told.reads]
        reads = reads_of(request, parts, share, groups)
        engine = engine_for(told.job_rows)
        outlines, statistics = memory.outlines(self._objects), told.value_statistics
        return (
            StretchMerge(self._objects, outlines, request, reads, engine),
            RowGroupEncoder(request.schema, compiled=True, value_statistics=statistics),
        )
