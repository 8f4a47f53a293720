"""Who drops a feed is killed before and after each effect: what its tables know is forgotten once,
by whoever comes next; or the feed is there as before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

import pytest

from lakebed.backends.faulty import Crash, CrashPlan
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.backends.local.feed_registry import SqliteFeedRegistry
from lakebed.bootstrap.feeds.endings import known_in
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.feeds.drop_definitions import DropDefinitions
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.operating import end_connections as module
from lakebed.feeds.operating.end_connections import EndConnections
from lakebed.model.feeds.definitions import DefinitionChange
from lakebed.model.feeds.endings import Ending
from lakebed.model.names import TransactionNumber
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from tests.unit.feeds.operating.ending_stories import ROWS, Events


class CrashingRegistry(SqliteFeedRegistry):
    """A registry whose user dies at one of its effects."""

    plan: CrashPlan

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        with self.plan.effect("definitions"):
            return super().change(changes, expected_number=expected_number)

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        with self.plan.effect("endings"):
            return super().change_endings(announced, ended, expected_number)


def dropping(events: Events, plan: CrashPlan, monkeypatch: pytest.MonkeyPatch) -> DropDefinitions:
    """Return what an operator does who dies at an effect."""
    registry = CrashingRegistry(events.folder / "lake")
    registry.plan = plan
    commit = module.commit_until_known

    def effect(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        with plan.effect("log append"):
            return commit(table, transaction)

    monkeypatch.setattr(module, "commit_until_known", effect)
    app = events.app
    end = EndConnections(
        registry=registry, known_in=partial(known_in, app), find_table=app.catalog.find_id
    )
    return DropDefinitions(registry, end)


EFFECTS = ["endings", "definitions", *["log append"] * 5, "endings"]


def finished_by_the_next_command(events: Events) -> None:
    events.feeds.define("policy", "Mine", {"extends": "Basic"})
    events.feeds.drop_policy("Mine")


def finished_by_a_worker(events: Events) -> None:
    worker = feed_worker(events.app)
    worker.turn()
    worker.close()


def finished_by_the_keeper(events: Events) -> None:
    events.lake.run()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, len(EFFECTS) + 1))
def test_who_drops_may_be_killed_at_every_effect(
    at: int, moment: Moment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Events(tmp_path / "given")
    plan = CrashPlan(at, moment)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        dropping(events, plan, patch).run("feed", "events", cascade=True)
    assert plan.effects == EFFECTS[:at]
    is_dropped = not read_definitions(events.app.feeds.definitions).entries
    assert is_dropped == (at > 2 or (at, moment) == (2, "after"))
    finishes = (finished_by_the_next_command, finished_by_a_worker, finished_by_the_keeper)
    finishes[at % 3](events)
    if not is_dropped:
        assert not events.forgotten().total(), "what is defined is known"
        events.feeds.drop("events", cascade=True)
    events.check_forgotten()
    assert events.rows() == ROWS
    events.lake.close()


def test_the_effects_of_dropping_are_those_that_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, plan = Events(tmp_path / "given"), CrashPlan()
    dropping(events, plan, monkeypatch).run("feed", "events", cascade=True)
    assert plan.effects == EFFECTS
    events.check_forgotten()
    events.lake.close()
