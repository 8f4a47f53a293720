"""Rows that a table refuses as a whole: the record to blame is found, the others become rows."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.bootstrap.feeds.pipelines import quarantine_of
from lakebed.errors import (
    CorruptError,
    InvalidError,
    IteratorError,
    LakebedError,
    SumTooLargeError,
    TableMissingError,
    UnavailableError,
)
from lakebed.feed_errors import InvalidKeyError
from lakebed.feeds.run_feeds import FeedDone
from lakebed.ingest.stage_rows import StagedRows, StageRows
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.processing import iterators
from lakebed.statestore.head import TableHead
from lakebed.statestore.open_table import OpenTable
from tests.unit.packages_of_tests import installing

TEXT = """
[feed.orders]
files = "{folder}/*.json"
decoder = {{ format = "json" }}
{landing}
[connection.all]
feed = "orders"
table = "orders"
policy = "own"
[policy.own]
{policy}
"""


STEPS = """
def no_threes(columns, config):
    def given(batches):
        for batch in batches:
            assert 3 not in batch["id"].to_pylist()
            yield batch
    return given
"""

NO_THREES = {"no_threes": "no_threes"}


class Killed(BaseException):
    """The end of a process."""


class Orders:
    """A lake whose table of orders refuses some ids, and files of orders."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={})
        self.lake.create_table("orders", schema)
        self.refused: set[int] = set()
        self.error: type[LakebedError] = InvalidKeyError
        self.staged, self.policy, self.landing = 0, "", ""
        self.failures: list[LakebedError] = []
        stage = StageRows.run

        def staged(
            one: StageRows[Any],
            table: OpenTable,
            schema: Schema,
            batches: Iterable[pa.RecordBatch],
            **more: Any,  # noqa: ANN401 - as it was called
        ) -> StagedRows:
            given = list(batches)
            if table.name == "orders":
                self.staged += 1
                ids = {id_ for batch in given for id_ in batch["id"].to_pylist()}
                if ids & self.refused:
                    raise self.error("a key is no good", field="id")
            if table.name == "orders_landing" and self.refused:
                raise InvalidKeyError("the landing is no good")
            return stage(one, table, schema, given, **more)

        monkeypatch.setattr(StageRows, "run", staged)

    def write(self, name: str, ids: Iterable[int]) -> None:
        text = "".join(f'{{"id": {id_}}}\n' for id_ in ids)
        (self.folder / f"{name}.json").write_text(text, "utf-8")

    def feeds(self) -> lakebed.Feeds:
        text = TEXT.format(folder=self.folder, policy=self.policy, landing=self.landing)
        return lakebed.Feeds(self.lake, text)

    def run(self, feeds: lakebed.Feeds | None = None) -> list[FeedDone]:
        return (feeds or self.feeds()).run(failed=lambda _, error: self.failures.append(error))

    def rows(self) -> Counter[int]:
        return Counter(self.lake.table("orders").query().read_all()["id"].to_pylist())

    def quarantined(self) -> Counter[tuple[str, bytes]]:
        rows = self.lake.table("orders_quarantine").query().read_all().to_pylist()
        assert {row["detail"] for row in rows} == {"a key is no good"}
        return Counter((row["verdict"], row["value"]) for row in rows)

    def check(self, ids: Iterable[int]) -> None:
        """Look that each record is once where it belongs."""
        bad = [("refused-by-table", f'{{"id": {id_}}}'.encode()) for id_ in self.refused]
        assert self.rows() == Counter(id_ for id_ in ids if id_ not in self.refused)
        assert self.quarantined() == Counter(bad)
        found = self.lake.fsck(deep=True).findings
        assert [one.code for one in found if one.severity != "notice"] == []


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Orders]:
    given = Orders(tmp_path, monkeypatch)
    yield given
    given.lake.close()


@pytest.mark.parametrize("refused", [{777}, {0, 1, 1_999}], ids=["one", "some"])
def test_the_record_to_blame_is_quarantined_and_the_others_are_rows(
    orders: Orders, refused: set[int]
) -> None:
    orders.refused = refused
    orders.write("a", range(1_000))
    orders.write("b", range(1_000, 2_000))
    (done,) = orders.run()
    assert not done.code, done.reason
    assert (done.tally.read, done.tally.quarantined) == (2_000, len(refused))
    assert orders.staged <= 40 * len(refused), "a few times as many as there are halves"
    orders.check(range(2_000))


def test_a_source_that_gives_many_records_at_once_has_its_reads_cut(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.refused = {0, 300, 999}
    orders.write("a", range(1_000))
    feeds = orders.feeds()
    assert feeds._feeds is not None
    (running,) = feeds._feeds
    source = running.pipeline._source
    open_ = source.open

    def opened(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - as it was called
        reader = open_(*given, **more)
        read = reader.read
        monkeypatch.setattr(reader, "read", lambda **_: read(bytes_max=1 << 20), raising=False)
        return reader

    monkeypatch.setattr(source, "open", opened)
    (done,) = orders.run(feeds)
    assert not done.code, done.reason
    assert orders.staged <= 200
    orders.check(range(1_000))


@pytest.mark.parametrize(
    ("policy", "code", "rows"),
    [
        ('on_record_error = "fail"', "record-refused", 50),
        ('on_record_error = "skip"', "", 98),
        ("errors_in_row_max = 1", "record-refused", 50),
    ],
)
def test_the_policy_says_what_becomes_of_it(
    orders: Orders, policy: str, code: str, rows: int
) -> None:
    orders.policy, orders.refused = policy, {50, 51}
    orders.write("a", range(100))
    (done,) = orders.run()
    assert done.code == code
    assert orders.rows() == Counter([id_ for id_ in range(100) if id_ not in {50, 51}][:rows])


@pytest.mark.parametrize("error", [SumTooLargeError, IteratorError])
def test_a_record_is_to_blame_for_each_error_that_is_about_rows(
    orders: Orders, error: type[LakebedError]
) -> None:
    orders.error, orders.refused = error, {0, 5}
    orders.write("a", range(8))
    (done,) = orders.run()
    assert (done.code, done.tally.quarantined) == ("", 2)
    orders.check(range(8))


@pytest.mark.parametrize("error", [InvalidError, TableMissingError, IteratorError, InvalidKeyError])
@pytest.mark.parametrize("policy", ["", 'on_record_error = "skip"', 'on_record_error = "fail"'])
def test_a_table_that_refuses_everything_stops_its_feed_and_no_record_is_gone(
    orders: Orders, policy: str, error: type[LakebedError]
) -> None:
    orders.policy, orders.error, orders.refused = policy, error, set(range(300))
    orders.write("a", range(300))
    (done,) = orders.run()
    assert done.code == error.code()
    assert "a key is no good" in done.reason
    assert orders.staged <= 20, "no record is searched for"
    orders.refused = set()
    (done,) = orders.run()
    assert (done.code, done.tally.read, done.tally.quarantined) == ("", 300, 0)
    assert orders.rows() == Counter(range(300))


@pytest.mark.parametrize("policy", ["", 'on_record_error = "skip"', 'on_record_error = "fail"'])
def test_an_iterator_whose_package_is_gone_is_no_records_fault(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    installing(tmp_path, monkeypatch)("of_orders", STEPS, {iterators.ITERATORS: NO_THREES})
    table = orders.lake.table("orders")
    table.change_processing(lakebed.Processing(iterator=lakebed.IteratorUse("no_threes")))
    orders.policy = policy
    orders.write("a", range(8))
    with monkeypatch.context() as patch:
        patch.setattr(iterators, "installed_steps", lambda _: {})
        (done,) = orders.run()
    assert (done.code, orders.staged) == ("iterator", 0)
    assert "no installed package has this iterator" in done.reason
    assert not orders.rows()
    orders.policy = 'on_record_error = "skip"'
    (done,) = orders.run()
    assert (done.code, done.tally.read) == ("", 8)
    assert orders.rows() == Counter([0, 1, 2, 4, 5, 6, 7]), "what it raises at is the record's"


def test_an_operator_hears_of_each_search(orders: Orders, caplog: pytest.LogCaptureFixture) -> None:
    orders.refused = {100, 900}
    orders.write("a", range(1_000))
    with caplog.at_level(logging.INFO, logger="lakebed"):
        orders.run()
    said = [one.getMessage() for one in caplog.records]
    found = [one for one in said if one.startswith(f"{events.FEED_ROWS_REFUSED} table=orders ")]
    assert len(found) == 2
    assert "reason=a key is no good" in found[0]


def kill_at(patch: pytest.MonkeyPatch, moment: int, *, after: bool) -> Callable[[], bool]:
    """End the process at a commit. Returns what says whether it was."""
    commit, left = TableHead.commit, moment

    def killed(head: TableHead, transaction: Any) -> Any:  # noqa: ANN401 - as it was called
        nonlocal left
        left -= 1
        if left == 0 and not after:
            raise Killed
        number = commit(head, transaction)
        if left == 0:
            raise Killed
        return number

    patch.setattr(TableHead, "commit", killed)
    return lambda: left <= 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_it_may_be_killed_at_each_commit(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    orders.refused = {3, 4}
    orders.write("a", range(8))
    quarantine_of(orders.lake._app, "orders")  # a table that is half made is another matter
    moment, kills = 0, 0
    while True:
        moment += 1
        with monkeypatch.context() as patch:
            was_killed = kill_at(patch, moment, after=after)
            try:
                orders.run()
            except Killed:
                kills += 1
                continue
            assert not was_killed()
        break
    assert kills >= 3
    assert orders.failures == []
    orders.check(range(8))


@pytest.mark.parametrize("error", [UnavailableError, CorruptError, InvalidError, TableMissingError])
def test_other_errors_are_none_of_the_records(orders: Orders, error: type[LakebedError]) -> None:
    orders.error, orders.refused = error, {3}
    orders.write("a", range(8))
    (done,) = orders.run()
    assert (done.code, orders.staged) == (error.code(), 1)
    assert not orders.rows()


def test_a_landing_table_that_refuses_rows_stops_its_feed(orders: Orders) -> None:
    orders.landing, orders.refused = "landing = true", {3}
    orders.write("a", range(8))
    landing, _ = orders.run()
    assert landing.code == "invalid-key"
    assert "the landing is no good" in landing.reason
