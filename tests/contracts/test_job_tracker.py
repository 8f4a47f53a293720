from typing import Any

import pytest

from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport, JobTracker
from tests.contracts.conftest import Tracker

TABLE = TableId("t1")


def report(job: str, at: int, **more: object) -> JobReport:
    fields: dict[str, Any] = {"table": TABLE, "kind": "ingest", "event": "sent"} | more
    return JobReport(job=JobId(job), at=Micros(at), **fields)


def jobs(reports: list[JobReport]) -> list[str]:
    return [str(r.job) for r in reports]


@pytest.fixture
def view(tracker: Tracker) -> JobTracker:
    return tracker()


def test_a_report_comes_back_whole_to_anyone(tracker: Tracker) -> None:
    whole = report(
        "j", 5, kind="compaction", event="failed", reason="disk: full", rows=3, seconds=1.5
    )
    tracker().report(whole)
    assert tracker().last(TABLE, JobId("j")) == whole


def test_a_job_nobody_reported_has_no_report(view: JobTracker) -> None:
    assert view.last(TABLE, JobId("j")) is None
    assert view.recent(TABLE, reports_max=10) == []


def test_the_newest_report_counts_whatever_order_they_come_in(view: JobTracker) -> None:
    for at, event in ((5, "started"), (9, "committed"), (7, "failed")):
        view.report(report("j", at, event=event))
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "committed"
    assert view.recent(TABLE, reports_max=10) == [last]


def test_of_two_reports_of_one_moment_the_later_counts(view: JobTracker) -> None:
    view.report(report("j", 5, event="started"))
    view.report(report("j", 5, event="committed"))
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "committed"


def test_recent_jobs_come_newest_first_and_no_more_than_asked(view: JobTracker) -> None:
    for job, at in (("a", 3), ("b", 9), ("c", 6), ("d", 9)):
        view.report(report(job, at))
    view.report(report("x", 99, table=TableId("other")))
    assert jobs(view.recent(TABLE, reports_max=10)) == ["d", "b", "c", "a"]
    assert jobs(view.recent(TABLE, reports_max=2)) == ["d", "b"]


def test_old_reports_are_forgotten(view: JobTracker) -> None:
    for job, at in (("a", 3), ("b", 9), ("c", 6)):
        view.report(report(job, at))
    view.forget(before=Micros(6))
    assert jobs(view.recent(TABLE, reports_max=10)) == ["b", "c"]
    assert view.last(TABLE, JobId("a")) is None
