"""Twins of what keeps versions, each with exactly one rule broken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from lakebed.deletes import rewrite_leaves
from lakebed.garbage import collect as collect_module
from lakebed.garbage.collect import CollectGarbage, due_garbage
from lakebed.model.names import Micros
from lakebed.query.follow_changes import CommittedChange, Following
from lakebed.statestore import write_snapshot as write_snapshot_module
from lakebed.statestore.log_entries import version_changes
from lakebed.statestore.log_entries.version_changes import RaiseHorizon
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import KeptVersions
from lakebed.statestore.table_state.state import Garbage, Moment, TableState
from tests.simulation import violation as v
from tests.simulation.versions.stalled_world import StalledWorld
from tests.simulation.versions.versioned_world import VersionedWorld

Patch = Callable[[pytest.MonkeyPatch], None]


def collects_without_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes what its state does not keep, and says so to nobody before."""

    def collectable(state: TableState, now: Micros, behind: Garbage | None) -> Iterator[Garbage]:
        return due_garbage(state, now)

    monkeypatch.setattr(CollectGarbage, "_raise_horizon", lambda *_: None)
    monkeypatch.setattr(collect_module, "collectable", collectable)


def pins_below_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes it that a version is whole if the log has it."""
    monkeypatch.setattr(version_changes, "is_kept", lambda *_: True)


def collects_with_an_old_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks which versions are kept, raises the horizon, and does not look again: it spares what
    was kept before."""
    kept_versions, raise_horizon = collect_module.kept_versions, CollectGarbage._raise_horizon
    known = threading.local()

    def raised(self: CollectGarbage, table: OpenTable, now: Micros) -> None:
        with table.head.reading() as state:
            known.kept = kept_versions(state)
        raise_horizon(self, table, now)

    def as_known(state: TableState, **given: Any) -> KeptVersions:  # noqa: ANN401 - as given
        return kept_versions(state, **given) if given else known.kept

    monkeypatch.setattr(CollectGarbage, "_raise_horizon", raised)
    monkeypatch.setattr(collect_module, "kept_versions", as_known)


def oldest_pin_keeps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that became garbage behind the oldest version that is kept stays."""

    def need(self: KeptVersions, _file: bytes, number: int) -> bool:
        oldest = [*self._numbers[:1], *([] if self._followed is None else [self._followed])]
        return any(number > one for one in oldest)

    monkeypatch.setattr(KeptVersions, "need", need)


def looks_at_the_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version needs what became garbage right behind it, and nothing that went later."""

    def need(self: KeptVersions, _file: bytes, number: int) -> bool:
        if self._followed is not None and number > self._followed:
            return True
        return any(number - 3 <= n < number for n in self._numbers)

    monkeypatch.setattr(KeptVersions, "need", need)


def empties_without_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the log, and lets versions below get tags meanwhile and afterwards."""

    def applied(self: RaiseHorizon, state: TableState, moment: Moment) -> None:
        state.write("INSERT OR IGNORE INTO horizon VALUES (1, 0)")

    monkeypatch.setattr(RaiseHorizon, "apply", applied)
    monkeypatch.setattr(CollectGarbage, "run", lambda *_: 0)


def keeps_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the log below versions with tags, which have no snapshot of their own."""
    monkeypatch.setattr(write_snapshot_module, "_are_written", lambda *_: True)


def drops_snapshots_of_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes them, and drops them with the others that are older than the log."""
    truncate = write_snapshot_module.Snapshots.truncate

    def all_of_them(self: Any, log: Any, below: Any, **_: object) -> Any:  # noqa: ANN401 - as given
        return truncate(self, log, below)

    monkeypatch.setattr(write_snapshot_module.Snapshots, "truncate", all_of_them)


def forgets_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the log as if nobody followed."""
    monkeypatch.setattr(write_snapshot_module, "_followed", lambda _: None)


def acknowledges_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves a follower when it is asked what is next, before it was given that."""

    def changes(self: Following[Any]) -> Iterator[CommittedChange]:
        for change in self._changes.changes(self._table, self.position):
            self.acknowledge(change.upto)
            if change.number % 3:
                yield change

    monkeypatch.setattr(Following, "__iter__", changes)


def tells_no_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewrites files without rows, and the entry looks like that of a compaction."""
    monkeypatch.setattr(rewrite_leaves, "_recorded", lambda *_: ())


class VersionTwin(msgspec.Struct, frozen=True):
    """One broken rule, and the checkers of which one must notice it, in worlds of one kind."""

    checkers: frozenset[str]
    patch: Patch
    world: type[VersionedWorld] = VersionedWorld


def _twin(
    patch: Patch, *checkers: str, world: type[VersionedWorld] = VersionedWorld
) -> VersionTwin:
    return VersionTwin(frozenset(checkers), patch, world)


VERSION_TWINS: dict[str, VersionTwin] = {
    "collects without a horizon": _twin(collects_without_horizon, v.KEPT, v.FOLLOWED),
    "pin below the horizon": _twin(pins_below_the_horizon, v.KEPT),
    "collects with a state older than the horizon": _twin(
        collects_with_an_old_state, v.KEPT, world=StalledWorld
    ),
    "oldest pin keeps all": _twin(oldest_pin_keeps_all, v.LEAKS),
    "what went later is not needed": _twin(looks_at_the_end_alone, v.KEPT),
    "log emptied without a horizon": _twin(empties_without_horizon, v.KEPT, v.FOLLOWED),
    "tag without a snapshot": _twin(keeps_no_snapshot, v.KEPT),
    "snapshot of a tag dropped": _twin(drops_snapshots_of_tags, v.KEPT),
    "follower's log is emptied": _twin(forgets_followers, v.FOLLOWED),
    "a delete tells no follower": _twin(tells_no_delete, v.FOLLOWED),
    "acknowledged before it was given": _twin(acknowledges_first, v.FOLLOWED),
}
