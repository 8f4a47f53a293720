"""A world whose feed lets each value in once within a time, with its checker and its twins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.feeds.owned_splits import NewestOwners
from lakebed.feeds.pacing import known_items
from lakebed.feeds.pacing.known_items import KnownItems
from lakebed.model.names import ITEM_BYTES, MICROS_PER_SECOND, Micros
from lakebed.ports.record_source import Records
from lakebed.statestore.log_entries import feed_changes
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state import feed_records
from lakebed.statestore.table_state.feed_records import Connection
from lakebed.statestore.table_state.state import TableState
from tests.simulation import violation as v
from tests.simulation.auditor import Auditor
from tests.simulation.ending import check_exact
from tests.simulation.feeds import fed_actors
from tests.simulation.feeds.fed_checks import check_ledger, ids_in, quarantined_ids, records_of
from tests.simulation.feeds.fed_rows import ModelRows, is_filtered
from tests.simulation.feeds.fed_twins import FedTwin, Patch
from tests.simulation.feeds.fed_world import FedWorld, OwnsAs
from tests.simulation.machine import Machine
from tests.simulation.violation import FED_ONCE, Violation

VALUES = 25
"""Different ones: each comes again and again, from all source splits."""


def value_of(id_: int) -> int:
    """Return the value of a record that is let in once."""
    return id_ % VALUES


class OnceRows(ModelRows):
    """Makes rows of those records whose value is not known yet."""

    def __call__(
        self, split: str, records: Records[list[Any]], known: KnownBefore[list[Any]]
    ) -> MadeRows[list[Any]]:
        """Return what became of some records."""
        made = super().__call__(split, records, known)
        first: dict[int, Any] = {}
        for row in made.rows or ():
            first.setdefault(value_of(row[3]), row)
        assert known.are_new is not None
        new = known.are_new([value.to_bytes(ITEM_BYTES, "big") for value in first])
        rows = [row for row, is_new in zip(first.values(), new, strict=True) if is_new]
        return msgspec.structs.replace(
            made,
            rows=rows or None,
            rows_count=len(rows),
            deduplicated=made.rows_count - len(rows),
        )


class OwnsSome(OwnsAs):
    """A worker that owns every other source split: so two meet in a value, and in no position."""

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return its source splits."""
        names = [name for name in splits if crc32(name.encode()) % 2 == self._owner % 2]
        return super().owned(names, newest)


class OnceWorld(FedWorld):
    """What one seed decides. Nothing is cleared, replayed or left out here: those have worlds."""

    rows_type = OnceRows

    def __init__(self, seed: int, scratch: Path) -> None:
        super().__init__(seed, scratch)
        self.once_seconds = self.rng.choice((600, 172_800, 345_600))
        for actor in (fed_actors.clear, fed_actors.replay):
            self.weights[self.actors.index(actor)] = 0

    def owned_as(self, owner: int) -> OwnsAs:
        """Return what a worker believes to own."""
        return OwnsSome(owner)

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Compare what the feed filled with what its source ever gave."""
        if table.id == self.fed.id:
            check_once(self, machine, table)
        check_exact(machine, table)


def check_once(world: OnceWorld, machine: Machine, table: OpenTable) -> None:
    """Rows of one value are far enough apart, and each record that is none had one before it."""
    rows, bad = ids_in(machine, table), quarantined_ids(world, machine, table)
    stored: dict[int, list[tuple[int, Micros]]] = defaultdict(list)
    known: list[tuple[int, int]] = []
    counted = set[int]()
    for one in sorted(world.fed_auditor.taken, key=lambda taken: taken.number):
        for position, id_ in records_of(world, one):
            counted.add(id_)
            if id_ in rows:
                stored[value_of(id_)].append((one.number, one.at))
            elif id_ not in bad and not is_filtered(position) and not one.is_gap:
                known.append((value_of(id_), one.number))
    least = (world.once_seconds or 0) * MICROS_PER_SECOND
    for value, times in stored.items():
        for (first, at), (second, then) in pairwise(times):
            if then - at < least:
                story = f"entries {first} and {second} let value {value} in, {then - at} us apart"
                raise Violation(FED_ONCE, story)
    for value, number in known:
        if not any(first <= number for first, _ in stored[value]):
            raise Violation(FED_ONCE, f"entry {number} left value {value} out, which was not there")
    check_ledger(world, table, bad.keys() & counted, rows.keys())


def values_are_forgotten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: what a feed has seen is forgotten whenever something old is."""
    monkeypatch.setattr(feed_changes, "number_before", lambda state, _: state.head().number)


def looks_then_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: a worker looks which values are known long before it commits, and no entry is refused
    for one that another worker has let in since."""
    looked: dict[tuple[int, bytes], bool] = {}
    look = known_items.taken_before

    def long_ago(
        table: OpenTable, connection: FeedConnection, items: Sequence[bytes]
    ) -> set[bytes]:
        all_ = [value.to_bytes(ITEM_BYTES, "big") for value in range(VALUES)]
        found = look(table, connection, all_)
        for item in all_:
            looked.setdefault((id(table), item), item in found)
        known = {item for item in items if looked[id(table), item]}
        looked.update({(id(table), item): True for item in items})  # its own, from now on
        return known

    monkeypatch.setattr(known_items, "taken_before", long_ago)

    def put(state: TableState, connection: Connection, items: Iterable[bytes], number: int) -> None:
        there = set(feed_records.taken_items(state, connection, items))
        feed_records.put_items(state, connection, [i for i in items if i not in there], number)

    monkeypatch.setattr(feed_changes, "taken_items", lambda *_: [])
    monkeypatch.setattr(feed_changes, "put_items", put)


def all_are_taken_for_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: a value that a refused round has met is taken for one that is in the table."""
    met = set[bytes]()
    are_new = KnownItems.are_new

    def remembers(self: KnownItems, items: list[bytes]) -> list[bool]:
        found = [
            new and item not in met for item, new in zip(items, are_new(self, items), strict=True)
        ]
        self.fresh[:] = [item for item in self.fresh if item not in met]
        met.update(items)
        return found

    monkeypatch.setattr(KnownItems, "are_new", remembers)


def _twin(patch: Patch) -> FedTwin:
    return FedTwin(frozenset({v.FED_ONCE}), (patch,), OnceWorld)


ONCE_TWINS = {
    "forgets what it has seen": _twin(values_are_forgotten_at_once),
    "looks, then commits": _twin(looks_then_commits),
    "remembers what was refused": _twin(all_are_taken_for_known),
}
