"""How much compaction rewrites until a table is at rest: counted by the planner that plans it."""

from __future__ import annotations

from typing import NamedTuple

from lakebed.compaction.plan import plan_compactions
from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import FileName, PartitionId

_LEAF = PartitionId(1)
_EVERYWHERE = KeyBounds(b"", None)


class CompactionWork(NamedTuple):
    """What compaction has done.

    rows_rewritten: by all merges.
    merges: how many jobs ran.
    inputs: how many files they read.
    leaves: how many there are in the end.
    """

    rows_rewritten: float
    merges: int
    inputs: int
    leaves: int


def work_to_rest(*, rows: int, job_rows: int, settings: TableSettings) -> CompactionWork:
    """Return what compaction does while rows come in, job after job, and until nothing is due.

    Keys are spread evenly, so all leaves look alike and one stands for all: it is planned after
    each job, and split when it has too many rows.

    rows: all of them. job_rows: of each ingest job, one file for all leaves.
    """
    leaf: dict[FileName, int] = {}
    made, leaves, taken = 0, 1, 0
    rewritten, merges, inputs = 0.0, 0, 0
    while taken < rows:
        arrived = min(job_rows, rows - taken)
        taken += arrived
        made += 1
        leaf[_name(made)] = arrived // leaves
        while sum(leaf.values()) > settings.leaf_rows_max:
            leaves *= 2
            leaf = {name: held // 2 for name, held in leaf.items()}
        while file_groups := plan_compactions([_reference(*one) for one in leaf.items()], settings):
            for file_group in file_groups:
                made += 1
                merged = sum(leaf.pop(name) for name in file_group)
                leaf[_name(made)] = merged
                rewritten += merged * leaves
                merges += leaves
                inputs += len(file_group) * leaves
    return CompactionWork(rewritten, merges, inputs, leaves)


def _name(number: int) -> FileName:
    return FileName(number.to_bytes(16))


def _reference(name: FileName, rows: int) -> FileReference:
    file = StoredFile(name, size=rows, tail_offset=0, checksum=0, tail_checksum=0)
    return FileReference(file, _LEAF, rows, _EVERYWHERE)
