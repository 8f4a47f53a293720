"""Sweep: objects that never got a reference, left by workers that were killed or fenced.

First the floor is raised in the log, so that their writers can no longer commit; only then,
with a state at least as new as that entry, what the state does not know below the floor is deleted
(H11).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lakebed.errors import ConflictError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TransactionNumber, base_of
from lakebed.model.paths import (
    base_prefix,
    commits_prefix,
    file_of,
    files_prefix,
    runs_prefix,
    table_prefix,
)
from lakebed.observe import events
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.log_entries.file_changes import RaiseFloor
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.time_records import old_before

PATHS_AT_ONCE = 1_000

PATHS_OF_A_PROOF = 50_000
"""A proof reads the whole state, so that a killed bulk import of 100,000 files costs two of them,
not a hundred."""


class SweepObjects:
    """Deletes objects that nothing will ever refer to. Safe to kill anywhere, and to run twice."""

    def __init__(self, *, objects: ObjectStore) -> None:
        self._objects = objects

    def run(self, table: OpenTable) -> int:
        """Raise the floor where that is worth an entry, delete below it. Returns how many
        objects."""
        now = table.due_time(lambda now: bool(self._raised(table, now)))
        with table.head.reading() as state:
            state.prove("entry_times")
            start = start_of(state)
        changes = self._raised(table, now)
        if changes:
            try:
                table.head.commit(table.own(start, *changes))
            except ConflictError:
                return 0  # the next tick tries again; without the entry nothing is deleted
        return self._delete_unknown(table) + self._delete_on_the_way(table)

    def _raised(self, table: OpenTable, now: Micros) -> tuple[RaiseFloor, ...]:
        """Return how the floor is raised; nothing: it is not worth an entry."""
        with table.head.reading() as state:
            settings = state.settings()
            floor = state.head().floor
            pending = settings.pending_seconds_max * MICROS_PER_SECOND
            wanted = state.number_older_than(Micros(now - pending))
            old = old_before(state, now, settings.job_id_seconds_min)
            users_below = state.number_older_than(old)
        if wanted > floor and (wanted > floor + 1 or self._is_any_unknown(table, wanted)):
            return (RaiseFloor(wanted, users_below),)
        return ()

    def _is_any_unknown(self, table: OpenTable, upto: TransactionNumber) -> bool:
        with table.head.reading() as state:
            paths = self._candidates(table.id, TransactionNumber(upto + 1))
            if any(_is_unknown(state, path) for path in paths):
                return True
        return next(self._on_the_way(table.id, upto), None) is not None

    def _delete_unknown(self, table: OpenTable) -> int:
        with table.head.reading() as state:  # as new as the entry that raised the floor
            floor = state.head().floor
        swept = 0
        candidates = self._candidates(table.id, floor)
        while page := list(islice(candidates, PATHS_OF_A_PROOF)):
            with table.head.reading() as state:
                unknown = [path for path in page if _is_unknown(state, path)]
                if unknown:
                    state.prove()  # that it does not know them
            if unknown:
                self._objects.delete(unknown)
            swept += len(unknown)
        if swept:
            events.emit(events.OBJECTS_SWEPT, table=table.name, objects_count=swept)
        return swept

    def _delete_on_the_way(self, table: OpenTable) -> int:
        """Delete what was on its way and comes to nothing: its bases lie below the floor."""
        with table.head.reading() as state:
            floor = state.head().floor
        paths, swept = self._on_the_way(table.id, floor), 0
        while page := list(islice(paths, PATHS_AT_ONCE)):
            self._objects.delete(page)
            swept += len(page)
        return swept

    def _on_the_way(self, table: TableId, below: TransactionNumber) -> Iterator[str]:
        """Yield queued commits and sorted runs whose base lies below a number."""
        for prefix in (commits_prefix(table), runs_prefix(table)):
            yield from self._objects.list(prefix, below=prefix + base_prefix(below))

    def _candidates(self, table: TableId, below: TransactionNumber) -> Iterator[str]:
        """Yield files whose base lies below a number; names sort by base."""
        prefix = files_prefix(table)
        for path in self._objects.list(prefix, below=prefix + base_prefix(below)):
            file = file_of(path)
            if file is not None and base_of(file) < below:
                yield path


class DeleteTableObjects:
    """Deletes every object of a table whose log ends in a tombstone. Safe to repeat."""

    def __init__(self, *, objects: ObjectStore) -> None:
        self._objects = objects

    def run(self, table: TableId) -> int:
        """Delete them. Late PUTs of workers that did not know yet are found by the next run."""
        deleted = 0
        paths = self._objects.list(table_prefix(table))
        while page := list(islice(paths, PATHS_AT_ONCE)):
            self._objects.delete(page)
            deleted += len(page)
        return deleted


def _is_unknown(state: TableState, path: str) -> bool:
    file = file_of(path)
    return file is not None and not state.knows_file(file)
