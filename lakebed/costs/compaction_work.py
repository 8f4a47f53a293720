"""Counts how much compaction rewrites until a table is at rest, by the planner that plans it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from lakebed.compaction.plan import plan_compactions
from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import FileName, PartitionId
from lakebed.model.shared_files import plan_files

_LEAF = PartitionId(1)
_EVERYWHERE = KeyBounds(b"", None)


class CompactionWork(NamedTuple):
    """The files that ingest has written, and the work that compaction has done on them.

    files_in: how many files ingest wrote, by their rows.
    files_merged: how many files merges wrote, by their rows.
    rows_rewritten: by all merges.
    merges: how many jobs ran.
    inputs: how many files they read.
    leaves: how many there are in the end.
    """

    files_in: Counter[int]
    files_merged: Counter[int]
    rows_rewritten: float
    merges: int
    inputs: int
    leaves: int


def work_to_rest(*, rows: int, job_rows: int, settings: TableSettings) -> CompactionWork:
    """Return what compaction does while rows come in, job after job, and until nothing is due.

    Keys are spread evenly, so all leaves look alike and one stands for all: it is planned after
    each job, and split when it has too many rows.

    rows: all of them.
    job_rows: of each ingest job, which writes its files by the plan of all ingest: one for a leaf,
        or for several neighbours that get few rows.
    """
    leaf: dict[FileName, int] = {}
    made, leaves, taken = 0, 1, 0
    files_in, files_merged = Counter[int](), Counter[int]()
    rewritten, merges, inputs = 0.0, 0, 0
    while taken < rows:
        arrived = min(job_rows, rows - taken)
        taken += arrived
        made += 1
        files_in.update(_files_of_job(arrived, leaves, settings.shared_file_rows_max))
        leaf[_name(made)] = arrived // leaves
        while sum(leaf.values()) > settings.leaf_rows_max:
            leaves *= 2
            leaf = {name: held // 2 for name, held in leaf.items()}
        while file_groups := plan_compactions([_reference(*one) for one in leaf.items()], settings):
            for file_group in file_groups:
                made += 1
                merged = sum(leaf.pop(name) for name in file_group)
                leaf[_name(made)] = merged
                files_merged[merged] += leaves
                rewritten += merged * leaves
                merges += leaves
                inputs += len(file_group) * leaves
    return CompactionWork(files_in, files_merged, rewritten, merges, inputs, leaves)


@lru_cache
def _files_of_job(rows: int, leaves: int, shared_file_rows_max: int) -> Mapping[int, int]:
    """Return how many files an ingest job writes, by their rows."""
    counts = [(leaf + 1) * rows // leaves - leaf * rows // leaves for leaf in range(leaves)]
    leaf_groups = plan_files(counts, shared_file_rows_max=shared_file_rows_max)
    return Counter(sum(counts[leaf] for leaf in leaf_group) for leaf_group in leaf_groups)


def _name(number: int) -> FileName:
    return FileName(number.to_bytes(16))


def _reference(name: FileName, rows: int) -> FileReference:
    file = StoredFile(name, size=rows, tail_offset=0, checksum=0, tail_checksum=0)
    return FileReference(file, _LEAF, rows, _EVERYWHERE)
