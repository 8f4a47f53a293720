"""A real lake as the doctor sees it: tables as far as there is time, jobs, tasks and marks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory import MemoryTableMarks
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.doctor.seen_lake import SeenLake
from lakebed.bootstrap.local import open_local
from lakebed.errors import InvalidError, UnavailableError
from lakebed.lake import Lake
from lakebed.model.asked_once import AskedOnce
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, TransactionNumber
from lakebed.model.schema import schema_of
from lakebed.ports.job_tracker import JobEvent, JobKind, JobReport, TaskReport

HOUR = 3_600
SCHEMA = schema_of(row_keys={"id": "string"})


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = open_local(tmp_path / "lake", clock=VirtualClock())
    lake = Lake(made)
    for name in ("a", "b"):
        lake.create_table(name, SCHEMA).ingest([{"id": "x"}])
    lake.create_table("c", SCHEMA)
    lake.quarantine("c")
    yield made
    made.close()


def id_of(app: App, name: str) -> TableId:
    return app.catalog.entry(name).id


def ago(app: App, seconds: float) -> Micros:
    return Micros(round(app.clock.now() - seconds * MICROS_PER_SECOND))


def report(
    app: App, job: str, event: JobEvent, *, seconds: float = 0, kind: JobKind = "ingest"
) -> None:
    app.tracker.report(
        JobReport(
            table=id_of(app, "a"),
            job=JobId(job),
            kind=kind,
            event=event,
            at=ago(app, seconds),
            rows=1_000,
            seconds=2.0,
        )
    )


def test_a_survey_tells_each_table_and_why_one_cannot_be_read(app: App) -> None:
    report(app, "merge", "committed", kind="compaction")
    survey = SeenLake(lambda: app).survey()
    assert [(one.status.name, one.status.rows) for one in survey.tables] == [("a", 1), ("b", 1)]
    assert [one.merged_per_second for one in survey.tables] == [500.0, 0.0]
    assert all(10_000 < one.state_bytes < 1_000_000 for one in survey.tables)
    assert list(survey.failed) == ["c"]
    assert survey.failed["c"].startswith("table-quarantined: ")
    assert survey.unseen == 0


def test_tables_that_there_is_no_time_for_are_counted(app: App) -> None:
    lake = SeenLake(lambda: app, seconds_max=-1.0)
    assert (lake.survey().tables, lake.survey().unseen) == ((), 3)
    with pytest.raises(UnavailableError, match="too many tables"):
        list(lake.failed_jobs(since_seconds=HOUR))


def test_jobs_that_failed_lately_are_told_with_their_table(app: App) -> None:
    report(app, "new", "failed", seconds=60)
    report(app, "old", "rejected", seconds=2 * HOUR)
    report(app, "good", "committed", seconds=60)
    found = list(SeenLake(lambda: app).failed_jobs(since_seconds=HOUR))
    assert [(name, one.job) for name, one in found] == [("a", "new")]


def test_tasks_of_the_last_day_that_say_nothing_are_told(app: App) -> None:
    for task, seconds, ended in (
        ("works", 60, False),
        ("silent", 2 * HOUR, False),
        ("ended", 2 * HOUR, True),
        ("forgotten", 48 * HOUR, False),
    ):
        at = ago(app, seconds)
        app.tracker.report_task(
            TaskReport(task=task, kind="ingest", started=at, at=at, jobs=3, ended=ended)
        )
    assert SeenLake(lambda: app).silent_tasks() == ["ingest silent, 3 jobs"]


def test_marks_are_told_by_the_names_of_tables(app: App) -> None:
    marks = MemoryTableMarks()
    marks.changed(id_of(app, "a"), TransactionNumber(7))
    marks.changed(TableId("gone"), TransactionNumber(1))
    found = SeenLake(lambda: app, marks=lambda: marks).marks()
    assert {name: mark.number for name, mark in found.items()} == {"a": 7}
    assert SeenLake(lambda: app).marks() == {}


def test_what_was_asked_once_is_not_asked_again_and_an_error_is_told_to_all() -> None:
    asked = []

    def fails() -> None:
        asked.append(1)
        raise InvalidError("no such lake", hint="make one")

    once = AskedOnce(fails)
    for _ in range(3):
        with pytest.raises(InvalidError):
            once()
    assert len(asked) == 1
    answers = AskedOnce(lambda: asked.append(2) or len(asked))
    assert (answers(), answers(), answers.answer) == (2, 2, 2)
