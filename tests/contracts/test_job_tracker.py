from typing import Any

import msgspec
import pytest

from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.memory.job_tracker import MemoryJobTracker
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobEvent, JobReport, JobTracker, TaskReport
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
    assert view.history(TABLE, JobId("j")) == []
    assert view.find(TABLE, reports_max=10) == []


def test_the_newest_report_counts_whatever_order_they_come_in(view: JobTracker) -> None:
    for at, event in ((5, "started"), (9, "committed"), (7, "failed")):
        view.report(report("j", at, event=event))
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "committed"
    assert view.find(TABLE, reports_max=10) == [last]


def test_of_two_reports_of_one_moment_the_later_counts(view: JobTracker) -> None:
    view.report(report("j", 5, event="started"))
    view.report(report("j", 5, event="committed"))
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "committed"


@pytest.mark.parametrize("late", ["failed", "started", "finished", "given up", "lost"])
def test_no_end_of_another_run_hides_that_a_job_is_committed(
    view: JobTracker, late: JobEvent
) -> None:
    for job, order in (("a", (0, 1)), ("b", (1, 0))):
        told = [report(job, 5, event="committed", number=7), report(job, 9, event=late)]
        for place in order:
            view.report(told[place])
        assert view.last(TABLE, JobId(job)) == told[0]
        assert view.history(TABLE, JobId(job)) == told
    together = [report("c", 9, event=late), report("c", 5, event="committed")]
    view.report_many([*together, report("d", 1)])
    assert view.last(TABLE, JobId("c")) == together[1]
    assert sorted(jobs(view.find(TABLE, events=["committed"], reports_max=9))) == ["a", "b", "c"]
    assert view.find(TABLE, events=[late], reports_max=9) == []


def test_a_job_that_is_committed_may_be_rejected_for_another_request(view: JobTracker) -> None:
    view.report(report("j", 5, event="committed"))
    view.report(report("j", 9, event="rejected", reason="job-id-reused"))
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "rejected"


def test_every_run_of_a_job_is_remembered_oldest_first(view: JobTracker) -> None:
    told = [
        report("j", 1, event="created"),
        report("j", 2, event="started", run="a", task="task-1"),
        report("j", 4, event="started", run="b", task="task-2"),
        report("j", 5, event="failed", run="a", reason="unavailable: the store is busy"),
        report("j", 7, event="finished", run="b", rows=1_000, seconds=4.0),
        report("j", 9, event="committed", run="b", rows=1_000, seconds=4.0, number=17),
    ]
    for one in (told[0], told[3], told[1], told[5], told[2], told[4], told[3]):
        view.report(one)
    view.report(report("jj", 3))
    assert view.history(TABLE, JobId("j")) == told
    assert view.last(TABLE, JobId("j")) == told[-1]
    assert told[-1].rows_per_second == 250


def test_many_reports_are_remembered_as_one_by_one(view: JobTracker) -> None:
    view.report(report("old", 8, event="committed"))
    many = [report(f"j{n:03}", n, event="started") for n in range(130)]
    many += [report("old", 5, event="started"), report("j007", 700, event="committed"), many[3]]
    view.report_many(many)
    view.report_many(many[:40])
    view.report_many([])
    assert [r.event for r in view.history(TABLE, JobId("old"))] == ["started", "committed"]
    assert [r.event for r in view.history(TABLE, JobId("j007"))] == ["started", "committed"]
    assert view.history(TABLE, JobId("j003")) == [many[3]]
    committed = view.find(TABLE, events=["committed"], reports_max=200)
    assert jobs(committed) == ["j007", "old"]
    assert len(view.find(TABLE, events=["started"], reports_max=200)) == 129


def test_recent_jobs_come_newest_first_and_no_more_than_asked(view: JobTracker) -> None:
    for job, at in (("a", 3), ("b", 9), ("c", 6), ("d", 10)):
        view.report(report(job, at))
    view.report(report("x", 99, table=TableId("other")))
    assert jobs(view.find(TABLE, reports_max=10)) == ["d", "b", "c", "a"]
    assert jobs(view.find(TABLE, reports_max=2)) == ["d", "b"]


def test_jobs_are_found_by_what_became_of_them_and_when(view: JobTracker) -> None:
    for job, at, event in (
        ("a", 10, "committed"),
        ("b", 20, "failed"),
        ("c", 30, "committed"),
        ("d", 40, "rejected"),
        ("e", 50, "started"),
    ):
        view.report(report(job, at - 5, event="created"))
        view.report(report(job, at, event=event))
    assert jobs(view.find(TABLE, events=("committed",), reports_max=9)) == ["c", "a"]
    assert jobs(view.find(TABLE, events=("rejected", "failed"), reports_max=9)) == ["d", "b"]
    assert jobs(view.find(TABLE, since=Micros(20), until=Micros(40), reports_max=9)) == ["c", "b"]
    assert view.find(TABLE, events=("created",), reports_max=9) == []


def test_tasks_tell_how_far_they_have_come(view: JobTracker) -> None:
    def told(task: str, at: int, **more: Any) -> TaskReport:  # noqa: ANN401 - fields of a report
        return TaskReport(task=task, kind="ingest", started=Micros(1), at=Micros(at), **more)

    for one in (told("a", 5), told("b", 6, jobs=1), told("a", 9, jobs=2, ended=True), told("a", 7)):
        view.report_task(one)
    found = view.tasks(reports_max=9)
    assert [(t.task, t.jobs, t.ended) for t in found] == [("a", 2, True), ("b", 1, False)]
    assert [t.task for t in view.tasks(reports_max=1)] == ["a"]


def test_many_reports_come_in_pages(view: JobTracker) -> None:
    reason = "x" * 20_000
    for n in range(60):
        view.report(report("j", n + 1, reason=reason))
    assert [r.at for r in view.history(TABLE, JobId("j"))] == list(range(1, 61))


def test_old_reports_are_forgotten(view: JobTracker) -> None:
    if isinstance(view, DynamoDbJobTracker):
        pytest.skip("DynamoDB forgets by itself, see test_dynamodb_tracker.py")
    for job, at in (("a", 3), ("b", 9), ("c", 6)):
        view.report(report(job, at))
    view.report(report("b", 2))
    view.forget(before=Micros(6))
    assert jobs(view.find(TABLE, reports_max=10)) == ["b", "c"]
    assert view.last(TABLE, JobId("a")) is None
    assert [r.at for r in view.history(TABLE, JobId("b"))] == [9]


def test_a_report_that_is_renewed_is_there_once_and_keeps_its_time(view: JobTracker) -> None:
    first = report("j", 5, event="rejected", reason="sum-too-large: 300", basis="ab")
    for renewed in (0, 40, 70):
        again = msgspec.structs.replace(first, renewed=Micros(renewed))
        view.report_many([again, report(f"other-{renewed}", 3)])
        view.report(again)
        assert view.last(TABLE, JobId("j")) == again
        assert view.history(TABLE, JobId("j")) == [again]
        assert view.find(TABLE, events=["rejected"], reports_max=9) == [again]


def test_a_report_that_is_renewed_late_hides_nothing_that_came_meanwhile(view: JobTracker) -> None:
    rejected, sent = report("j", 5, event="rejected"), report("j", 9)
    again = msgspec.structs.replace(rejected, renewed=Micros(40))
    for one in (rejected, sent, again):
        view.report(one)
    assert view.last(TABLE, JobId("j")) == sent
    assert view.history(TABLE, JobId("j")) == [again, sent]


def test_reports_that_were_renewed_are_kept_from_then_on(view: JobTracker) -> None:
    if isinstance(view, DynamoDbJobTracker):
        pytest.skip("DynamoDB forgets by itself, see test_dynamodb_tracker.py")
    for job, renewed in (("a", 0), ("b", 8), ("c", 4)):
        view.report(report(job, 3, event="rejected", renewed=Micros(renewed)))
    view.forget(before=Micros(6))
    assert jobs(view.find(TABLE, reports_max=10)) == ["b"]
    view.forget(before=Micros(9))
    assert view.find(TABLE, reports_max=10) == []


def test_a_report_of_a_newer_release_is_passed_over(view: JobTracker) -> None:
    if isinstance(view, MemoryJobTracker):
        pytest.skip("it keeps what it was given, nothing is decoded")
    view.report(report("j", 5, event="started"))
    view.report_many([report("j", 9, event="archived"), report("k", 9, event="archived")])
    assert [r.event for r in view.history(TABLE, JobId("j"))] == ["started"]
    last = view.last(TABLE, JobId("j"))
    assert last is not None
    assert last.event == "started"
    assert view.last(TABLE, JobId("k")) is None
    assert view.find(TABLE, reports_max=10) == []
    view.report(report("j", 10, event="committed"))
    assert [r.event for r in view.find(TABLE, reports_max=10)] == ["committed"]
