"""Leaves that may have another job, with their files that no job holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lakebed.model.files import FileReference
from lakebed.model.names import PartitionId
from lakebed.statestore.table_state.state import LeafFigures, TableState


class FreeLeaf(msgspec.Struct, frozen=True):
    """A leaf that may have another job.

    files: those that no job holds, in no order.
    running: how many jobs it has.
    allowed: how many it may have more.
    """

    partition: PartitionId
    files: list[FileReference]
    running: int
    allowed: int


def fullest_first(state: TableState) -> list[LeafFigures]:
    """Return what lies in each leaf, those with most files first."""
    return sorted(state.leaf_figures(), key=lambda figures: -figures.files)


def free_leaves(
    state: TableState,
    leaves: Iterable[LeafFigures],
    *,
    files_min: Callable[[PartitionId], int] = lambda _: 2,
    everything: bool = False,
) -> Iterator[FreeLeaf]:
    """Yield those of some leaves that may have another job, in their order.

    files_min: how many files that no job holds make one.
    everything: a job for each file, whatever the settings say.
    """
    jobs_max = state.settings().leaf_jobs_max
    for leaf in leaves:
        if leaf.files - leaf.claimed < files_min(leaf.partition):
            continue
        references = state.references(leaf.partition)
        running = len({job for _, job in references if job is not None})
        allowed = len(references) if everything else jobs_max - running
        if allowed > 0:
            free = [reference for reference, job in references if job is None]
            yield FreeLeaf(leaf.partition, free, running, allowed)
