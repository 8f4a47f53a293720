"""A feed that was run from a file and is applied later goes on there: no record is taken twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory.record_source import MemoryBroker, MemoryRecordSource, MemorySplit
from lakebed.bootstrap.feeds import definitions, pipelines
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.config.feed_sources import FilesFeed
from lakebed.errors import InvalidError, UnavailableError
from lakebed.feed_errors import DefinitionMovedError
from lakebed.feeds.operating import end_connections as module
from lakebed.landing.push.receiver import RequestHead
from lakebed.model.feeds.definitions import DefinitionChange
from lakebed.model.names import ConnectionId, TransactionNumber
from lakebed.statestore.log_entries.feed_changes import Define
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable

TEXT = """
[feed.hits]
source = {{ {source} }}
decoder = {{ format = "json" }}
version = {version}
{landing}
[connection.all]
feed = "hits"
{into}
policy = "FaultTolerant"
"""


class Lake:
    """A feed of files, run from its file or by the lake's definitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.feeds = lakebed.FeedDefinitions(self.lake)
        schema = lakebed.schema_of(row_keys={"n": "int64"}, values={})
        self.lake.create_table("hits", schema)
        self.source = f'files = "{folder}/*.log"'
        self.landing, self.version = "", 1
        self.into = 'table = "hits"'

    @property
    def text(self) -> str:
        return TEXT.format(
            source=self.source, landing=self.landing, version=self.version, into=self.into
        )

    def write(self, *numbers: int) -> None:
        with (self.folder / "a.log").open("a") as file:
            file.writelines(f'{{"n":{n}}}\n' for n in numbers)

    def lose_definitions(self) -> None:
        self.lake.close()
        for name in ("feeds.sqlite", "feeds.made"):
            (self.folder / "lake" / name).unlink()
        self.lake = lakebed.connect(self.folder / "lake")
        self.feeds = lakebed.FeedDefinitions(self.lake)

    def run_file(self) -> None:
        assert not [one.code for one in lakebed.Feeds(self.lake, self.text).run() if one.code]

    def apply(self) -> dict[str, bool]:
        plan = self.feeds.apply(self.text)
        if self.feeds.standing("hits").standing == "stopped":
            self.feeds.start("hits")
        return {f"{one.kind}.{one.name}": one.goes_on for one in plan}

    def run(self) -> None:
        assert not [one.code for one in lakebed.Feeds(self.lake).run() if one.code]

    def counts(self, table: str = "hits") -> Counter[object]:
        rows = self.lake.table(table).query().read_all().to_pylist()
        return Counter(row.get("n", row.get("position")) for row in rows)


def _away(*_: object, **__: object) -> list[int]:
    raise UnavailableError("the registry does not answer", hint="try again")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    given = Lake(tmp_path)
    yield given
    given.lake.close()


@pytest.mark.parametrize("landing", ["", "landing = true"])
def test_it_goes_on_where_its_file_was_taken_to(lake: Lake, landing: str) -> None:
    lake.landing = landing
    lake.write(1, 2)
    lake.run_file()
    lake.write(3)
    plan = lakebed.FeedDefinitions(lake.lake).apply(lake.text, dry_run=True)
    assert [one.goes_on for one in plan] == [bool(landing), True]
    assert lake.apply() == {"feed.hits": bool(landing), "connection.all": True}
    lake.run()
    lake.write(4)
    lake.run()
    assert lake.counts() == {1: 1, 2: 1, 3: 1, 4: 1}
    if landing:
        assert set(lake.counts("hits_landing").values()) == {1}
        assert lake.feeds.verify_landing("hits").findings == ()
    assert not any(lake.apply().values()), "what the lake defines is kept"


@pytest.fixture
def without_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are landed first, as objects and queues are."""
    monkeypatch.setattr(FilesFeed, "is_ordered", False)


@pytest.mark.usefixtures("without_order")
def test_a_connection_of_a_feed_without_order_has_the_id_of_a_file_only_if_its_feed_has(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its positions would count what another feed has landed."""
    queue = MemoryBroker()
    monkeypatch.setattr(pipelines, "record_source", lambda *_: MemoryRecordSource(queue))
    queue.write("q", b'{"n":1}', b'{"n":2}')
    assert lake.apply() == {"feed.hits": False, "connection.all": False}
    lake.run()
    lake.lose_definitions()
    queue.splits["q"] = MemorySplit(1, [])  # what was landed has left the queue
    queue.write("q", b'{"n":3}', b'{"n":4}', b'{"n":5}')
    lake.apply()
    lake.run()
    assert set(lake.counts()) == {1, 2, 3, 4, 5}


@pytest.mark.usefixtures("without_order")
@pytest.mark.parametrize("is_first", [True, False])
def test_a_connection_of_a_feed_without_order_goes_on_with_its_feed(
    lake: Lake, *, is_first: bool
) -> None:
    lake.write(1, 2)
    lake.run_file()
    if is_first:
        feed, _, _ = lake.text.partition("[connection.all]")
        assert [one.goes_on for one in lake.feeds.apply(feed)] == [True]
    assert lake.apply()["connection.all"]
    lake.write(3)
    lake.run()
    assert lake.counts() == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("is_first", [True, False], ids=["the file", "the lake"])
@pytest.mark.parametrize("landing", ["", "landing = true"])
def test_what_its_process_holds_when_it_is_applied_is_there_once(
    lake: Lake, landing: str, *, is_first: bool
) -> None:
    """Whoever of the two commits first: they take it by the same id."""
    lake.landing = landing
    lake.write(1, 2)
    feeds = lakebed.Feeds(lake.lake, lake.text)
    pipelines = [one.pipeline for one in feeds._feeds or ()]
    assert all(one.turn().has_read for one in pipelines)
    assert not any(lake.apply().values()), "no table knows it"
    if not is_first:
        lake.run()
    for one in pipelines:
        with nullcontext() if is_first else pytest.raises(DefinitionMovedError):
            assert one.turn(is_draining=True).committed
    lake.run()
    lake.write(3)
    lake.run()
    assert [one.code for one in feeds.run()] == ["definition-moved"] * len(pipelines)
    assert lake.counts() == {1: 1, 2: 1, 3: 1}
    if landing:
        assert set(lake.counts("hits_landing").values()) == {1}
        assert lake.feeds.verify_landing("hits").findings == ()


def test_what_its_process_holds_of_a_route_is_refused_when_it_is_applied(lake: Lake) -> None:
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "hits" } }'
    lake.write(1, 2)
    feeds = lakebed.Feeds(lake.lake, lake.text)
    pipelines = [one.pipeline for one in feeds._feeds or ()]
    assert all(one.turn().has_read for one in pipelines)
    lake.feeds.apply(lake.text, dry_run=True)
    lake.apply()
    for one in pipelines:
        with pytest.raises(DefinitionMovedError):
            one.turn(is_draining=True)
    lake.run()
    assert lake.counts() == {1: 1, 2: 1}


def test_a_route_runs_on_from_its_file_when_its_definitions_cannot_be_changed(lake: Lake) -> None:
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "hits" } }'
    lake.write(1, 2)
    too_many = "".join(f"[policy.p{n}]\n" for n in range(100))
    with pytest.raises(InvalidError, match="too many definitions change at once"):
        lake.feeds.apply(too_many + lake.text)
    lake.run_file()
    assert lake.counts() == {1: 1, 2: 1}


def test_a_route_that_apply_ended_before_it_died_is_applied_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "hits" } }'
    lake.write(1, 2)
    feeds = lakebed.Feeds(lake.lake, lake.text)
    with monkeypatch.context() as patch:
        patch.setattr(lake.lake._app.feeds.definitions, "change", _away)
        with pytest.raises(UnavailableError):
            lake.feeds.apply(lake.text)
    assert {one.code for one in feeds.run()} == {"definition-moved"}
    lake.apply()
    lake.run()
    assert lake.counts() == {1: 1, 2: 1}


def test_a_route_whose_process_commits_while_it_is_applied_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "hits" } }'
    lake.write(1, 2)
    commit = module.commit_until_known

    def raced(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        monkeypatch.undo()
        lake.run_file()
        return commit(table, transaction)

    monkeypatch.setattr(module, "commit_until_known", raced)
    for dry_run in (False, False, True):
        with pytest.raises(InvalidError, match="would be taken twice") as caught:
            lake.feeds.apply(lake.text, dry_run=dry_run)
        assert "its file does not run any more either" in str(caught.value.hint)
    assert lake.feeds.feeds() == []
    assert lake.counts() == {1: 1, 2: 1}
    assert {one.code for one in lakebed.Feeds(lake.lake, lake.text).run()} == {"definition-moved"}
    lake.lake.table("hits").clear(from_start=True)
    lake.feeds.apply(lake.text.replace("connection.all", "connection.again"))
    lake.feeds.start("hits")
    lake.run()
    assert lake.counts() == {1: 1, 2: 1}


@pytest.mark.parametrize("table", ["hits", "more"])
def test_a_route_that_a_table_knows_without_positions_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Its process goes on where tables have not ended it."""
    lake.lake.create_table("more", lakebed.schema_of(row_keys={"n": "int64"}, values={}))
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "more" } }'
    lake.write(1, 2)

    def raced(known: OpenTable, connection: ConnectionId) -> bool:
        if known.name == table:
            define = module._named(b"begin", connection, known.id, (Define(connection, 1),))
            module._committed(known, lambda _: False, define)
        return module.end_unknown(known, connection)

    monkeypatch.setattr(definitions, "end_unknown", raced)
    with pytest.raises(InvalidError, match="would be taken twice") as caught:
        lake.apply()
    is_ended = table == "more"
    assert ("any more" in str(caught.value.hint)) == is_ended
    assert ("run it from its file on" in str(caught.value.hint)) != is_ended
    assert lake.feeds.feeds() == []


@pytest.mark.parametrize("is_first", [True, False], ids=["the file", "the lake"])
def test_of_a_file_that_makes_its_landing_table_while_it_is_applied_one_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    """Who saw no landing table gives another id: it is planned anew, or the file is refused."""
    lake.landing = "landing = true"
    lake.write(1, 2)
    registry = lake.lake._app.feeds.definitions
    change, lift = registry.change, registry.lift
    started: list[lakebed.Feeds] = []

    def changed(changes: Sequence[DefinitionChange], *, expected_number: int) -> list[int]:
        monkeypatch.setattr(registry, "change", change)
        started.append(lakebed.Feeds(lake.lake, lake.text))
        return change(changes, expected_number=expected_number)

    def lifted(number: int) -> None:
        monkeypatch.setattr(registry, "lift", lift)
        lake.feeds.apply(lake.text)
        lift(number)

    if is_first:
        monkeypatch.setattr(registry, "change", changed)
        lake.apply()
        assert started[0].run()
    else:
        monkeypatch.setattr(registry, "lift", lifted)
        with pytest.raises(InvalidError, match="the lake defines this feed"):
            lakebed.Feeds(lake.lake, lake.text)
        lake.feeds.start("hits")
    lake.run()
    assert lake.counts() == {1: 1, 2: 1}
    assert lake.counts("hits_landing") == {0: 1, len('{"n":1}\n'): 1}


def test_of_a_file_whose_first_process_died_with_its_landing_table_one_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process finds the table, and has apply plan anew all the same."""
    lake.landing = "landing = true"
    lake.write(1, 2)
    registry = lake.lake._app.feeds.definitions
    change = registry.change
    started: list[lakebed.Feeds] = []

    def changed(changes: Sequence[DefinitionChange], *, expected_number: int) -> list[int]:
        monkeypatch.undo()
        with monkeypatch.context() as patch:
            patch.setattr(registry, "lift", _away)
            with pytest.raises(UnavailableError):
                lakebed.Feeds(lake.lake, lake.text)
        started.append(lakebed.Feeds(lake.lake, lake.text))
        return change(changes, expected_number=expected_number)

    monkeypatch.setattr(registry, "change", changed)
    lake.apply()
    assert started[0].run()
    lake.run()
    assert lake.counts() == {1: 1, 2: 1}
    assert lake.counts("hits_landing") == {0: 1, len('{"n":1}\n'): 1}


def test_its_versions_rise_above_that_of_the_file(lake: Lake) -> None:
    """A worker that still runs the file is refused then, and stops."""
    lake.version = 41
    lake.write(1)
    lake.run_file()
    old = lakebed.Feeds(lake.lake, lake.text)
    lake.apply()
    assert {one.version for one in lake.feeds.describe("hits")[1]} == {42}
    lake.write(2)
    lake.run()
    lake.write(3)
    assert [one.code for one in old.run()] == ["definition-moved"]
    lake.run()
    assert lake.counts() == {1: 1, 2: 1, 3: 1}


def test_one_that_was_never_run_from_a_file_begins_where_feeds_begin(lake: Lake) -> None:
    lake.write(1)
    assert lake.apply() == {"feed.hits": False, "connection.all": False}
    lake.run()
    lake.feeds.stop("hits")
    lake.feeds.drop("hits", cascade=True)
    assert not any(lake.apply().values()), "ids of definitions are never used again"
    lake.run()
    assert lake.counts() == {1: 2}


def test_the_bad_records_of_the_file_are_replayed(lake: Lake) -> None:
    with (lake.folder / "a.log").open("a") as file:
        file.write('{"m":1}\n')
    lake.run_file()
    lake.apply()
    (bad,) = lake.feeds.quarantined("hits")
    assert bad.connection == "all"
    (done,) = lake.feeds.replay("hits")
    assert (done.tally.read, done.tally.quarantined) == (1, 1)


@pytest.mark.parametrize("is_landed", [True, False])
def test_what_was_pushed_does_not_go_on_and_is_refused(lake: Lake, *, is_landed: bool) -> None:
    """Receivers of the file put into another folder: what waits there would never be landed."""
    lake.source = "push = true"
    receiver, _ = receiver_of(lake.lake._app, "hits", lake.text)
    length = ("content-length", "7")
    head = RequestHead("POST", "/hits", [("content-type", "application/json"), length])
    assert receiver.respond(head, lambda _: b'{"n":1}').status == 200
    if is_landed:
        lake.run_file()
    for dry_run in (True, False):
        with pytest.raises(InvalidError, match="pushed into it while a file defined it") as raised:
            lake.feeds.apply(lake.text, dry_run=dry_run)
    assert "another name" in str(raised.value.hint)
    assert lake.feeds.feeds() == []


def test_a_route_that_was_run_from_a_file_is_refused(lake: Lake) -> None:
    lake.into = 'route = { field = "n", as = "int64", tables = { 1 = "hits", 2 = "hits" } }'
    lake.write(1, 2)
    lake.run_file()
    with pytest.raises(InvalidError) as caught:
        lake.apply()
    assert caught.value.facts["at"] == "connection.all"
    assert lake.counts() == Counter({1: 1, 2: 1})
