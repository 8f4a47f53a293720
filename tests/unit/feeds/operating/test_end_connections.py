"""What tables know of a feed that is dropped is forgotten once, whoever dies, and no worker of the
old definition commits for it any more (protocol R17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.bootstrap.feeds.endings import end_connections
from lakebed.errors import InvalidError, LakebedError, UnavailableError, UnknownOutcomeError
from lakebed.feed_errors import DefinitionMovedError
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.operating import end_connections as module
from lakebed.feeds.operating.end_connections import EndConnections
from lakebed.feeds.quarantine import Quarantine
from lakebed.model.names import TransactionNumber
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connections
from tests.unit.feeds.operating.ending_stories import RECORDS, ROWS, TABLES, Events, take_turns


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    given = Events(tmp_path)
    yield given
    given.lake.close()


def test_what_tables_know_of_a_dropped_feed_is_forgotten_and_its_rows_stay(events: Events) -> None:
    assert min(events.positions().values()) >= 1
    assert events.rows() == ROWS
    events.feeds.drop("events", cascade=True)
    assert events.rows() == ROWS
    events.check_forgotten()


def test_a_connection_that_is_dropped_takes_nothing_from_others(events: Events) -> None:
    before = events.positions()
    events.feeds.disconnect("by-type")
    assert events.positions() == {**dict.fromkeys(TABLES, 0), "events_landing": 1}
    assert before["events_landing"] == 1
    events.feeds.start("events")
    events.write(*RECORDS)
    events.run()
    assert events.rows() == {**ROWS, "events_landing": 6}


@pytest.mark.parametrize("record", RECORDS)
def test_a_worker_that_wakes_up_late_commits_nothing_and_does_not_begin_anew(
    events: Events, record: str
) -> None:
    asleep, before = events.pipelines(), events.rows()
    events.write(record)
    for pipeline in asleep:
        pipeline.turn()  # it has read the record, and opened its source split
    fresh = events.pipelines()  # these have read nothing yet
    events.feeds.drop("events", cascade=True)
    for pipeline in asleep + fresh:
        for _ in range(3):
            with pytest.raises(DefinitionMovedError, match="was dropped"):
                take_turns(pipeline)
    assert events.rows() == before
    events.check_forgotten()


def test_a_worker_between_its_mark_and_its_quarantine_is_refused(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source split that the table has never seen: no position refuses it, the definition does."""
    (events.folder / "other.json").write_text("no json\n")
    before = events.rows()
    web, app, _ = events.pipelines()
    drop = partial(events.feeds.drop, "events", cascade=True)
    mark = Quarantine.mark

    def dropped_first(self: Any, *given: Any) -> Any:  # noqa: ANN401 - as it takes
        with suppress(InvalidError):
            drop()
        return mark(self, *given)

    monkeypatch.setattr(Quarantine, "mark", dropped_first)
    for pipeline in (web, app):
        with pytest.raises(DefinitionMovedError, match="was dropped"):
            take_turns(pipeline)
    assert events.rows() == before
    events.check_forgotten()


def test_a_definition_of_the_same_name_begins_anew(events: Events) -> None:
    events.feeds.drop("events", cascade=True)
    assert events.apply() == []
    events.run()
    assert {name: count for name, count in events.rows().items() if name in {"web", "app"}} == {
        "web": 2,
        "app": 2,
    }
    assert events.positions()["web"] == 1
    events.feeds.stop("events")
    events.feeds.drop("events", cascade=True)
    assert events.positions() == dict.fromkeys(TABLES, 0)
    with events.table("web").head.reading() as state:
        ended = [one.has_ended for one in connections(state)]
    assert ended == [True] * 3, "both, and that of a file, which `apply` ends"


def test_a_feed_of_a_file_that_was_applied_and_dropped_has_another_id(tmp_path: Path) -> None:
    """Its id follows from its name: the file is not run under it again, and a definition gets a new
    one."""
    text = f'[feed.f]\nfiles = "{tmp_path}/*.log"\ndecoder = {{ format = "json" }}\n'
    text += '[connection.c]\nfeed = "f"\ntable = "t"\n'
    (tmp_path / "a.log").write_text('{"id": 1}\n')
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("t", lakebed.schema_of(row_keys={"id": "int64"}, values={}))
        lakebed.Feeds(lake, text).run()
        feeds = lakebed.FeedDefinitions(lake)
        assert [one.name for one in feeds.apply(text) if one.goes_on] == ["c"]
        first = read_definitions(lake._app.feeds.definitions).connection("c").id
        feeds.drop("f", cascade=True)
        failures: list[LakebedError] = []
        lakebed.Feeds(lake, text).run(failed=lambda _, error: failures.append(error))
        assert [error.code() for error in failures] == ["definition-moved"]
        assert "another name" in str(failures[0].hint)
        assert table.query().read_all().num_rows == 1
        assert [one.name for one in feeds.apply(text) if one.goes_on] == []
        known = read_definitions(lake._app.feeds.definitions)
        assert known.connection("c").id != first
        assert known.number < 20, "no version was lifted to that of what has ended"


def test_of_two_that_forget_at_once_the_log_takes_one(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, is_first = module.commit_until_known, True

    def raced(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        nonlocal is_first
        if is_first:
            is_first = False
            assert end_connections(events.app).run() == []
        return commit(table, transaction)

    monkeypatch.setattr(module, "commit_until_known", raced)
    events.feeds.drop("events", cascade=True)
    events.check_forgotten()


@pytest.mark.parametrize("lands", [True, False])
def test_an_answer_of_a_log_that_is_lost_is_looked_for(
    events: Events, monkeypatch: pytest.MonkeyPatch, *, lands: bool
) -> None:
    commit = module.commit_until_known

    def unanswered(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        if lands:
            commit(table, transaction)
        raise UnknownOutcomeError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(module, "commit_until_known", unanswered)
        events.feeds.drop("events", cascade=True)
    assert len(events.app.feeds.definitions.endings().waiting) == 2
    assert end_connections(events.app).run() == []
    events.check_forgotten()


def test_a_table_that_is_away_holds_up_no_other_and_no_new_definition_but_its_own(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = module.commit_until_known

    def away(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        if table.name == "events_landing":
            raise UnavailableError("the log does not answer")
        return commit(table, transaction)

    with monkeypatch.context() as patch:
        patch.setattr(module, "commit_until_known", away)
        dropped = events.feeds.drop("events", cascade=True)
        assert dropped == ["connection.by-type", "feed.events"]
        assert events.positions() == {**dict.fromkeys(TABLES, 0), "events_landing": 1}
        (waiting,) = events.app.feeds.definitions.endings().waiting
        assert (waiting.kind, waiting.name) == ("feed", "events")
        with pytest.raises(UnavailableError, match="the log does not answer"):
            events.apply()
        events.feeds.define("feed", "other", {"files": "x"})
    events.apply()
    events.check_forgotten()


def test_tables_that_are_dropped_or_offline_or_cleared_meanwhile(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = module.commit_until_known
    changed = set[str]()

    def changed_first(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        if table.name == "web" and "web" not in changed:
            events.lake.table("web").clear()
        if table.name == "events_quarantine" and "events_quarantine" not in changed:
            events.lake.drop_table("events_quarantine")
        changed.add(table.name)
        return commit(table, transaction)

    monkeypatch.setattr(module, "commit_until_known", changed_first)
    events.lake.set_online("app", online=False)
    events.lake.drop_table("events_landing")
    events.feeds.drop("events", cascade=True)
    assert changed == {"web", "app", "events_quarantine"}
    for name in ("web", "app"):
        assert events.lake.table(name).positions() == []
    assert events.app.feeds.definitions.endings().waiting == ()


def test_who_may_not_cross_out_forgets_all_the_same(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As workers of an instance, which change no list of the registry."""
    with monkeypatch.context() as patch:
        patch.setattr(EndConnections, "run", lambda _: [])
        events.feeds.drop("events", cascade=True)
    for _ in range(2):
        assert end_connections(events.app, may_cross_out=False).run() == []
        assert len(events.app.feeds.definitions.endings().waiting) == 2
    assert end_connections(events.app).run() == []
    events.check_forgotten()
