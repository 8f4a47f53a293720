"""What work used in each hour becomes rows of a table, each day once, whatever comes between."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.memory import MemoryUsageLedger
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App, Paying
from lakebed.bootstrap.history import begin_usage, keep_usage
from lakebed.bootstrap.local import open_local
from lakebed.errors import UnavailableError
from lakebed.history.keep_days import KeptDays
from lakebed.history.usage_table import USAGE_TABLE
from lakebed.lake import Lake
from lakebed.model.schema import schema_of
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of

DAY, HOUR = 86_400, 3_600
NOON = 12 * HOUR


class Story:
    """A lake at noon of a day, with a table, whose work is counted when the test says so."""

    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock()
        self.clock.advance(NOON)
        self.ledger = MemoryUsageLedger()
        own = open_local(path, clock=self.clock)
        self.app: App = replace(own, paying=Paying(self.ledger))
        self.lake = Lake(self.app)
        self.trips = self.lake.create_table("trips", schema_of(row_keys={"id": "string"}))

    def used(self, table: str, *, kind: str = "ingest", **counts: float) -> None:
        hour = hour_of(self.clock.now())
        self.ledger.add(LedgerEntry(table=table, hour=hour, kind=kind, counts=counts))

    def keep(self) -> KeptDays:
        return keep_usage(self.app, begin_usage(self.app.catalog, 30))

    def kept(self) -> list[tuple[str, int, str, dict[str, float]]]:
        """Table, hour of its day, kind and counts."""
        rows = self.lake.table(USAGE_TABLE).query().read_all().to_pylist()
        return [(row["table"], row["at"].hour, row["kind"], dict(row["counts"])) for row in rows]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    made = Story(tmp_path / "lake")
    yield made
    made.app.close()


def test_hours_are_kept_when_their_day_is_over_and_nothing_is_added_any_more(story: Story) -> None:
    story.used(story.trips._opened.id, s3_get=2, a_newer_counter=1)
    assert story.keep().rows == 0
    story.clock.advance(HOUR)
    story.used(story.trips._opened.id, s3_get=3)
    story.used(NO_TABLE, kind="process", sqs_polls=5)
    story.used("f" * 32, kind="query", s3_get=7)
    story.clock.advance(11 * HOUR - 1)
    story.used(story.trips._opened.id, kind="export", s3_get=11)
    story.clock.advance(1)
    story.used(story.trips._opened.id, s3_get=1_000)
    assert story.keep() == KeptDays()
    story.clock.advance(HOUR)
    assert story.keep() == KeptDays(1, 5)
    assert story.kept() == [
        ("-", 13, "process", {"sqs_polls": 5}),
        ("f" * 32, 13, "query", {"s3_get": 7}),
        ("trips", 12, "ingest", {"s3_get": 2, "a_newer_counter": 1}),
        ("trips", 13, "ingest", {"s3_get": 3}),
        ("trips", 23, "export", {"s3_get": 11}),
    ]


def test_a_day_is_kept_once_whatever_the_ledger_says_later(story: Story) -> None:
    story.used(story.trips._opened.id, s3_get=2)
    monday = hour_of(story.clock.now())
    story.clock.advance(DAY)
    assert story.keep() == KeptDays(7, 1)
    late = LedgerEntry(table=NO_TABLE, hour=monday, kind="late", counts={"s3_get": 1})
    story.ledger.add(late)
    assert story.keep() == KeptDays()
    assert len(story.kept()) == 1


def test_a_day_that_fails_is_kept_later_and_no_row_twice(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [story.trips._opened.id, NO_TABLE]
    for table in tables:
        story.used(table, s3_get=2)
    story.clock.advance(DAY)
    read = story.ledger.read
    calls = []

    def fails_at_first(table: str, *, since: int, until: int) -> list[LedgerEntry]:
        calls.append(table)
        if len(calls) == 14:
            raise UnavailableError("the ledger is busy")
        return read(table, since=since, until=until)

    monkeypatch.setattr(story.ledger, "read", fails_at_first)
    with pytest.raises(UnavailableError):
        story.keep()
    story.keep()
    assert sorted(table for table, *_ in story.kept()) == ["-", "trips"]


def test_run_goes_on_with_it_where_the_table_is_there(story: Story) -> None:
    story.used(story.trips._opened.id, s3_get=2)
    story.clock.advance(DAY)
    assert story.lake.run().usage_days_kept == 0
    assert USAGE_TABLE not in story.lake
    assert story.lake.keep_jobs(days=30).hours == 1
    story.used(story.trips._opened.id, s3_get=2)
    story.clock.advance(DAY)
    assert story.lake.run(["trips"]).usage_days_kept == 0
    assert story.lake.run().usage_days_kept == 1
    assert story.lake.run().usage_days_kept == 0
    assert len([kind for _, _, kind, _ in story.kept() if kind == "ingest"]) == 2
    processing = story.lake.table(USAGE_TABLE).processing
    assert processing is not None
    assert processing.age_off is not None
    assert processing.age_off.seconds == 30 * DAY


def test_a_directory_keeps_what_its_own_ledger_counted(tmp_path: Path) -> None:
    clock = VirtualClock()
    clock.advance(NOON)
    app = open_local(tmp_path / "lake", clock=clock)
    lake = Lake(app)
    lake.create_table("trips", schema_of(row_keys={"id": "string"})).ingest(pa.table({"id": ["a"]}))
    app.usage.close()
    clock.advance(DAY)
    assert lake.keep_jobs().hours
    duckdb = pytest.importorskip("duckdb")
    assert duckdb
    asked = """SELECT sum(counts['rows_in']) AS n FROM "lakebed-usage" WHERE "table" = 'trips'"""
    assert lake.sql(asked).read_all().to_pylist() == [{"n": 1.0}]
    app.close()
