"""Chooses the last parts of files to rewrite by schedule, so that the rest of each can be deleted.

A part of which other leaves have merged theirs away keeps the whole object. Its leaf mostly gets
new files, and the part is merged with them. Where it gets none for a day, the part is rewritten if
it is at most half of the object: a byte that is written then frees at least one that was written
before, so all of these jobs together write no more than everybody else has written.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.model.names import MICROS_PER_SECOND, FileName, Micros, PartitionId, base_of
from lakebed.statestore.table_state.file_parts import last_parts, leaves_with_last_parts, row_bytes
from lakebed.statestore.table_state.state import TableState

LAST_PART_SECONDS = 86_400
"""Age of a file from which on its last part is not left to the next compaction of its leaf."""
LAST_PART_SHARE_MAX = 0.5
"""Greatest share of an object's bytes that a last part may have, if it is rewritten by schedule."""


def due_last_parts(state: TableState, now: Micros) -> Mapping[PartitionId, tuple[FileName, ...]]:
    """Return by leaf the files whose last part is due to be rewritten, oldest first.

    The state does not know how many rows the object has: a row is taken to be as large as those of
    the table's whole files. A wrong guess costs one rewriting, for its output is whole.
    """
    old = state.number_older_than(Micros(now - LAST_PART_SECONDS * MICROS_PER_SECOND))
    leaves = leaves_with_last_parts(state, old) if old else []
    each = row_bytes(state) if leaves else 0.0
    found: dict[PartitionId, tuple[FileName, ...]] = {}
    if not each:
        return found
    for leaf in leaves:
        free = [r for r, job in state.references(leaf) if job is None]
        small = tuple(
            r.file.name
            for r in last_parts(state, free)
            if base_of(r.file.name) <= old
            and r.rows * each <= LAST_PART_SHARE_MAX * r.file.tail_offset
        )
        if small:
            found[leaf] = small
    return found
