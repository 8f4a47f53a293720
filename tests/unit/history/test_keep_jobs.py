"""The jobs of each day become rows of a table, each day once, whatever comes between."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.history import begin_history, keep_jobs
from lakebed.bootstrap.local import open_local
from lakebed.errors import InvalidError, UnavailableError
from lakebed.history.job_table import JOBS_TABLE
from lakebed.history.keep_days import DAYS_MAX, KeptDays, days_ended
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId
from lakebed.model.schema import schema_of
from lakebed.ports.job_tracker import NO_TABLE, JobEvent, JobReport

DAY, HOUR = 86_400, 3_600
NOON = 12 * HOUR


class Story:
    """A lake at noon of a day, with a table, whose jobs end when the test says so."""

    def __init__(self, path: Path) -> None:
        self.clock = VirtualClock()
        self.clock.advance(NOON)
        self.app: App = open_local(path, clock=self.clock)
        self.lake = Lake(self.app)
        self.trips = self.lake.create_table("trips", schema_of(row_keys={"id": "string"}))

    def ended(
        self, job: str, *, event: JobEvent = "committed", table: TableId | None = None
    ) -> None:
        self.app.tracker.report(
            JobReport(
                table=table or self.trips._opened.id,
                job=JobId(job),
                kind="ingest",
                event=event,
                at=self.clock.now(),
                rows=7,
                seconds=1.5,
            )
        )

    def keep(self) -> KeptDays:
        return keep_jobs(self.app, begin_history(self.app.catalog, 30))

    def kept(self) -> list[tuple[str, str, str]]:
        """Table, job and what became of it."""
        rows = self.lake.table(JOBS_TABLE).query().read_all().to_pylist()
        return [(row["table"], row["job"], row["event"]) for row in rows]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    made = Story(tmp_path / "lake")
    yield made
    made.app.close()


def test_a_day_is_kept_an_hour_after_its_end(story: Story) -> None:
    story.ended("monday")
    story.ended("nameless", event="rejected", table=NO_TABLE)
    assert story.keep().rows == 0
    story.clock.advance(12 * HOUR + 1_800)
    assert story.keep() == KeptDays()
    story.clock.advance(HOUR)
    assert story.keep() == KeptDays(1, 2)
    assert story.kept() == [("", "nameless", "rejected"), ("trips", "monday", "committed")]


def test_a_day_is_kept_once_whatever_the_tracker_says_later(story: Story) -> None:
    story.ended("monday")
    story.clock.advance(DAY)
    assert story.keep().rows == 1
    late = JobReport(
        table=story.trips._opened.id,
        job=JobId("late"),
        kind="ingest",
        event="failed",
        at=Micros(story.clock.now() - DAY * MICROS_PER_SECOND),
    )
    story.app.tracker.report(late)
    assert story.keep() == KeptDays()
    story.app.tracker.forget(before=story.clock.now())
    assert story.keep() == KeptDays()
    assert [job for _, job, _ in story.kept()] == ["monday"]


def test_days_that_were_missed_are_made_up_for_within_a_week(story: Story) -> None:
    for n in range(10):
        story.ended(f"day {n}")
        story.clock.advance(DAY)
    assert story.keep() == KeptDays(7, 7)
    assert [job for _, job, _ in story.kept()] == [f"day {n}" for n in range(3, 10)]


def test_what_is_still_running_is_not_kept(story: Story) -> None:
    story.ended("running", event="started")
    story.ended("given up", event="given up")
    story.clock.advance(DAY)
    assert story.keep().rows == 1
    assert [job for _, job, _ in story.kept()] == ["given up"]


def test_a_day_that_fails_is_kept_later_and_no_row_twice(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.ended("monday")
    story.clock.advance(DAY)
    begin_history(story.app.catalog, 30)
    find = story.app.tracker.find
    calls = []

    def fails_at_first(*args: object, **named: object) -> object:
        calls.append(args)
        if len(calls) == 2:
            raise UnavailableError("the tracker is busy")
        return find(*args, **named)

    monkeypatch.setattr(story.app.tracker, "find", fails_at_first)
    with pytest.raises(UnavailableError):
        story.keep()
    story.keep()
    assert [job for _, job, _ in story.kept()] == ["monday"]


def test_run_goes_on_with_it_where_the_table_is_there(story: Story) -> None:
    story.ended("monday")
    story.clock.advance(DAY)
    assert story.lake.run().days_kept == 0
    assert JOBS_TABLE not in story.lake
    story.lake.keep_jobs(days=30)
    story.ended("tuesday")
    story.clock.advance(DAY)
    assert story.lake.run(kinds=["sweep"]).days_kept == 0
    assert story.lake.run(["trips"]).days_kept == 0
    assert story.lake.run().days_kept == 1
    assert story.lake.run().days_kept == 0
    assert [job for _, job, _ in story.kept()] == ["monday", "tuesday"]


def test_jobs_are_asked_for_in_sql_and_age_off(story: Story) -> None:
    duckdb = pytest.importorskip("duckdb")
    assert duckdb
    story.ended("monday")
    story.clock.advance(DAY)
    story.keep()
    asked = 'SELECT "table", sum(rows) AS n FROM "lakebed-jobs" WHERE job = \'monday\' GROUP BY 1'
    assert story.lake.sql(asked).read_all().to_pylist() == [{"table": "trips", "n": 7}]
    processing = story.lake.table(JOBS_TABLE).processing
    assert processing is not None
    assert processing.age_off is not None
    assert processing.age_off.seconds == 30 * DAY


@pytest.mark.parametrize("days", [0, -1, 3_651])
def test_days_out_of_bounds_are_refused_and_nothing_is_made(story: Story, days: int) -> None:
    with pytest.raises(InvalidError):
        story.lake.keep_jobs(days=days)
    assert JOBS_TABLE not in story.lake


def test_days_end_in_utc() -> None:
    now = Micros(int(datetime(2026, 3, 1, 0, 59, tzinfo=UTC).timestamp()) * MICROS_PER_SECOND)
    assert [str(day) for day in days_ended(now)][-1] == "2026-02-27"
    later = Micros(now + 60 * MICROS_PER_SECOND)
    assert [str(day) for day in days_ended(later)][-1] == "2026-02-28"
    assert len(days_ended(now)) == DAYS_MAX
