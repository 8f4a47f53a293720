"""Collect garbage: files that lost their last reference, after the delay, unless a pin, a tag or a
follower needs them.

First the horizon is raised in the log, so that no pin can be put on a version that may lose files
(protocol H38). Then objects are deleted, then the entry forgets them (H23): all of it repeats
harmlessly, and a kill in between is mended by the next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.paths import file_path
from lakebed.observe import events, usage
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.log_entries.file_changes import RemoveGarbage
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT, RaiseHorizon
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.kept_versions import (
    TABLES,
    followers_of,
    horizon_of,
    kept_versions,
    newest_garbage,
    unneeded,
)
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
        now = table.due_time(lambda now: self._is_due(table, now))
        if not self._is_due(table, now):
            return 0
        self._raise_horizon(table, now)
        collected = 0
        proven: frozenset[Garbage] = frozenset()
        last: Garbage | None = None
        while True:
            with table.head.reading() as state:
                state.prove(*TABLES)
                start, due = start_of(state), _first(state, now, last, FILES_AT_ONCE)
                if not proven.issuperset(due):
                    state.prove("garbage")
                    proven = frozenset(_first(state, now, last, FILES_OF_A_PROOF))
            if not due:
                break
            self._objects.delete([file_path(table.id, g.file) for g in due])
            usage.count("deleted_bytes", sum(g.size for g in due))
            change = RemoveGarbage(tuple(g.file for g in due))
            table.head.commit(table.own(start, change))
            collected, last = collected + len(due), due[-1]
        if collected:
            events.emit(events.GARBAGE_COLLECTED, table=table.name, files_count=collected)
        return collected

    def _is_due(self, table: OpenTable, now: Micros) -> bool:
        with table.head.reading() as state:
            return next(due_garbage(state, now), None) is not None

    def _raise_horizon(self, table: OpenTable, now: Micros) -> None:
        """Commit that versions older than what is due may lose files, and end pins whose time is
        over. A lake that older releases still work on has no such entry, and no late pins."""
        with table.head.reading() as state:
            state.prove(*TABLES, "garbage")  # a horizon is never lowered again
            start, horizon = start_of(state), horizon_of(state)
            upto = newest_garbage(state, before=past_delay(state, now))
            ended = any(pin.until < now for pin in state.pins()) or any(
                one.until < now and not one.is_behind for one in followers_of(state)
            )
        if horizon is None and table.head.formats().entry < VERSION_FORMAT:
            return
        if horizon is None or horizon < upto or ended:
            table.head.commit(table.own(start, RaiseHorizon(upto)))


def past_delay(state: TableState, now: Micros) -> Micros:
    """Return the time before which garbage must have been made to be past its delay now."""
    return Micros(now - state.settings().garbage_seconds_min * MICROS_PER_SECOND)


def due_garbage(state: TableState, now: Micros) -> Iterator[Garbage]:
    """Yield garbage that is past its delay and that no version needs now, oldest first (H24)."""
    kept = kept_versions(state, now=now)
    return unneeded(state, kept, before=past_delay(state, now))


def collectable(state: TableState, now: Micros, behind: Garbage | None) -> Iterator[Garbage]:
    """Yield what may be deleted of a state, whatever is committed later: it lies below the horizon,
    and no pin, tag or follower of the state needs it (H38). behind: where to go on."""
    before, horizon = past_delay(state, now), horizon_of(state)
    if horizon is None:  # then there are no late pins, which an older release would not know
        return unneeded(state, kept_versions(state, now=now), before=before, behind=behind)
    found = unneeded(state, kept_versions(state), before=before, behind=behind)
    return takewhile(lambda garbage: garbage.number <= horizon, found)


def next_garbage(table: OpenTable) -> Micros | None:
    """Return when the oldest garbage is due that no version needs, or when the first pin ends that
    keeps some; None: there is none of both."""
    with table.head.reading() as state:
        first = next(unneeded(state, kept_versions(state), before=_NEVER), None)
        if first is not None:
            delay = state.settings().garbage_seconds_min * MICROS_PER_SECOND
            return Micros(first.at + delay)
        if not state.garbage(files_max=1):
            return None
        ends = [pin.until for pin in state.pins()]
        ends += [one.until for one in followers_of(state) if not one.is_behind]
        return min(ends, default=None)


_NEVER = Micros(1 << 62)


def _first(state: TableState, now: Micros, behind: Garbage | None, files: int) -> list[Garbage]:
    return list(islice(collectable(state, now, behind), files))
