"""The leaves that new rows go to, as one state has them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.errors import TableBusyError
from lakebed.model.files import FileReference
from lakebed.model.names import PartitionId
from lakebed.model.ranges import KeyRange
from lakebed.ports.sorted_files import FileWritten
from lakebed.statestore.table_state.state import TableState


class Leaves(msgspec.Struct, frozen=True):
    """Leaves in key order, and where their keys lie."""

    ids: tuple[PartitionId, ...]
    key_ranges: tuple[KeyRange, ...]

    def references(self, written: FileWritten, indices: Sequence[int]) -> list[FileReference]:
        """Return references to a file that was written for some leaves, by index."""
        return [
            FileReference(written.file, self.ids[index], part.rows, part.bounds)
            for index, part in zip(indices, written.key_ranges, strict=True)
            if part is not None
        ]


def leaves_of(state: TableState) -> Leaves:
    """Return the leaves of a state."""
    tree = state.tree()
    ids = tuple(tree.leaves())
    return Leaves(ids, tuple(tree.key_range(leaf) for leaf in ids))


def refuse_if_busy(state: TableState, leaves: Leaves, counts: Sequence[int]) -> None:
    """Raise TableBusyError where a leaf that gets rows holds too many files already.

    This is back-pressure: without it lookups and merges have no bound. counts: rows by leaf.
    """
    files_max = state.settings().leaf_files_max
    for leaf, count in zip(leaves.ids, counts, strict=True):
        if count and state.file_count(leaf) >= files_max:
            hint = "let compaction catch up (`lakebed run`), then send the same request again"
            raise TableBusyError("a leaf holds too many files", partition=leaf, hint=hint)
