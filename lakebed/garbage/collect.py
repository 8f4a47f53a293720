"""Collect garbage: files that lost their last reference, after the delay. Objects first, then the
entry (protocol H23): both repeat harmlessly, and a kill between them is mended by the next run."""

from __future__ import annotations

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.paths import file_path
from lakebed.observe import events
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.log_entries.file_changes import RemoveGarbage
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.state import Garbage, TableState

FILES_AT_ONCE = 1_000

FILES_OF_A_PROOF = 50_000
"""A proof reads all garbage of the table. One for each 1,000 of 750,000 files would read 280
million rows, one for each 50,000 reads 6 million."""


class CollectGarbage:
    """Deletes what is garbage for long enough. Safe to kill anywhere, and to run twice at once."""

    def __init__(self, *, objects: ObjectStore) -> None:
        self._objects = objects

    def run(self, table: OpenTable) -> int:
        """Delete due files, in bounded groups. Returns how many."""
        collected = 0
        proven: frozenset[Garbage] = frozenset()
        while True:
            now = table.due_time(lambda now: bool(self._due(table, now)))
            with table.head.reading() as state:
                state.prove("pins")
                start, due = start_of(state), self._due(table, now)
                if not proven.issuperset(due):
                    state.prove("garbage")
                    proven = frozenset(state.garbage(files_max=FILES_OF_A_PROOF))
            if not due:
                break
            self._objects.delete([file_path(table.id, g.file) for g in due])
            change = RemoveGarbage(tuple(g.file for g in due))
            table.head.commit(table.own(start, change))
            collected += len(due)
        if collected:
            events.emit(events.GARBAGE_COLLECTED, table=table.name, files_count=collected)
        return collected

    def _due(self, table: OpenTable, now: Micros) -> list[Garbage]:
        with table.head.reading() as state:
            delay = state.settings().garbage_seconds_min * MICROS_PER_SECOND
            return due_garbage(state, Micros(now - delay), now)


def due_garbage(state: TableState, before: Micros, now: Micros) -> list[Garbage]:
    """Return garbage from before, oldest first, that no living pin still reads (H24)."""
    pinned = [pin.number for pin in state.pins() if pin.until >= now]
    found = state.garbage(before=before, files_max=FILES_AT_ONCE)
    if not pinned:
        return found
    return [g for g in found if g.number <= min(pinned)]


def next_garbage(table: OpenTable) -> Micros | None:
    """Return when the oldest garbage is due; None: there is none."""
    with table.head.reading() as state:
        oldest = state.garbage(files_max=1)
        delay = state.settings().garbage_seconds_min * MICROS_PER_SECOND
    return Micros(oldest[0].at + delay) if oldest else None
