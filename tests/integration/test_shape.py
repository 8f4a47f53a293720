import json

import pytest

from lakebed.backends.memory import MemoryProcessReports, VirtualClock
from lakebed.bootstrap.functions.reported_function import function_reports
from lakebed.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.jobs import TableMessage, decode_table_message
from lakebed.model.releases import THIS
from lakebed.upgrades.release_reports import ReleaseReports
from lambdas.shape import Tick, deployed_handler, queue_handler, scheduled_handler
from tests.dsl.memory_instance import Run, record


class Works:
    """An app that notes what it did, and fails as it is told."""

    def __init__(self, **failures: Exception) -> None:
        self.done: list[str] = []
        self.failures = failures

    def work(self, message: TableMessage) -> None:
        if message.table in self.failures:
            raise self.failures[message.table]
        self.done.append(message.table)


def handled(works: Works, *tables: str, run: Run | None = None) -> list[str]:
    handler = queue_handler(lambda: works, decode_table_message, Works.work)
    records = [
        record(json.dumps({"table": table}), table, f"{table}-{n}")
        for n, table in enumerate(tables)
    ]
    answer = handler({"Records": records}, run or Run())
    assert answer is not None
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_bad_table_does_not_hold_up_others() -> None:
    works = Works(bad=ConflictError("somebody was first"))
    assert handled(works, "a", "bad", "b", "bad", "c") == ["bad-1", "bad-3"]
    assert works.done == ["a", "b", "c"]


def test_when_all_fail_the_run_did_not() -> None:
    works = Works(x=UnavailableError("busy"), y=ValueError("a bug"))
    assert handled(works, "x", "y") == ["x-0", "y-1"]


def test_what_is_no_message_comes_back_until_it_is_a_dead_letter() -> None:
    works = Works()
    handler = queue_handler(lambda: works, decode_table_message, Works.work)
    bodies = ["", "{", "[]", '{"table": 7}', '{"table": "a/b"}', '{"tabel": "a"}']
    records = [record(body, f"group {n}", str(n)) for n, body in enumerate(bodies)]
    answer = handler({"Records": [*records, record('{"table": "a"}', "a", "good")]}, Run())
    assert answer is not None
    assert len(answer["batchItemFailures"]) == len(bodies)
    assert works.done == ["a"]


def test_who_has_no_time_left_gives_back_what_it_did_not_begin() -> None:
    run = Run(left=[90_000, 80_000, 31_000, 29_000])
    works = Works()
    assert handled(works, "a", "b", "c", "d", run=run) == ["c-2", "d-3"]
    assert works.done == ["a", "b"]


def test_the_app_is_built_at_the_first_event_and_once() -> None:
    built: list[Works] = []

    def build() -> Works:
        built.append(Works())
        if len(built) == 1:
            raise InvalidError("variables are not set")
        return built[-1]

    handler = queue_handler(build, decode_table_message, Works.work)
    event = {"Records": [record('{"table": "a"}', "a", "1")]}
    assert built == []
    with pytest.raises(InvalidError):
        handler(event, Run())
    assert handler(event, Run()) == handler(event, Run()) == {"batchItemFailures": []}
    assert len(built) == 2


@pytest.mark.parametrize(
    ("error", "kind", "level", "metric"),
    [
        (ConflictError("no"), "retried", "WARNING", "work_retried"),
        (UnknownOutcomeError("no"), "retried", "WARNING", "work_retried"),
        (InvalidError("no"), "refused", "ERROR", "work_refused"),
        (CorruptError("no"), "corrupt", "ERROR", "corruption_found"),
        (KeyError("no"), "bug", "ERROR", "bugs_met"),
    ],
)
def test_a_failure_is_logged_once_as_its_kind_asks_for(
    error: Exception, kind: str, level: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    handled(Works(bad=error), "bad", run=Run(aws_request_id="r"))
    told = [line for line in lines(capsys) if line.get("event") == "work_failed"]
    (line,) = told
    assert (line["kind"], line["level"], line["run"]) == (kind, level, "r")
    assert line[metric] == 1
    embedded = line["_aws"]
    assert isinstance(embedded, dict)
    assert [m["Name"] for d in embedded["CloudWatchMetrics"] for m in d["Metrics"]] == [metric]


def test_a_bug_leaves_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    handled(Works(bad=ZeroDivisionError("of rows")), "bad")
    (line,) = [line for line in lines(capsys) if "traceback" in line]
    assert "ZeroDivisionError: of rows" in str(line["traceback"])


def test_a_schedule_hands_over_its_time_and_its_errors_are_the_runs() -> None:
    times: list[str] = []
    handler = scheduled_handler(lambda: times, lambda app, tick: app.append(tick.time))
    assert handler({"time": "2026-11-21T20:00:00Z", "source": "aws.events"}, Run()) is None
    assert times == ["2026-11-21T20:00:00Z"]

    def fails(_app: object, _tick: Tick) -> None:
        raise UnavailableError("busy")

    with pytest.raises(UnavailableError):
        scheduled_handler(lambda: times, fails)({"time": "t"}, Run())
    with pytest.raises(InvalidError, match="not an event of a schedule"):
        handler({"detail": {}}, Run())


def deployed(error: Exception | None, kind: str = "Create") -> dict[str, str]:
    """Return what a deployment is told."""
    answers: list[tuple[str, bytes]] = []

    def check(_: None) -> None:
        if error is not None:
            raise error

    handler = deployed_handler(
        lambda: None, check, answer=lambda url, body: answers.append((url, body))
    )
    ids = {"StackId": "a stack", "RequestId": "a request", "LogicalResourceId": "Checked"}
    handler({**ids, "RequestType": kind, "ResponseURL": "where"}, Run())
    ((url, body),) = answers
    told: dict[str, str] = json.loads(body)
    assert url == "where"
    assert ids.items() <= told.items()
    return told


def test_a_deployment_is_told_why_it_is_refused() -> None:
    assert deployed(None)["Status"] == "SUCCESS"
    for error in (InvalidError("no way to S3", hint="make one"), ZeroDivisionError("a bug")):
        told = deployed(error)
        assert told["Status"] == "FAILED"
        assert str(error) in told["Reason"]


@pytest.mark.parametrize("error", [None, InvalidError("no way to S3", hint="make one")])
def test_a_run_whose_answer_is_not_taken_fails_so_that_lambda_repeats_it(
    error: InvalidError | None,
) -> None:
    def check(_: None) -> None:
        if error is not None:
            raise error

    def lost(_url: str, _body: bytes) -> None:
        raise TimeoutError("nobody took it")

    handler = deployed_handler(lambda: None, check, answer=lost)
    names = dict.fromkeys(("StackId", "RequestId", "LogicalResourceId", "ResponseURL"), "x")
    with pytest.raises(TimeoutError):
        handler({"RequestType": "Create", **names}, Run())


def test_what_is_taken_down_is_not_looked_at() -> None:
    assert deployed(InvalidError("no way to S3", hint="make one"), "Delete")["Status"] == "SUCCESS"


def test_a_function_reports_its_release_at_its_events_and_not_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes, clock = MemoryProcessReports(), VirtualClock()
    made: list[str] = []

    def reports(function: str) -> ReleaseReports:
        made.append(function)
        return ReleaseReports(processes, clock=clock, process="p", program=function)

    monkeypatch.setattr("lambdas.shape.function_reports", reports)
    handler = scheduled_handler(lambda: None, lambda _app, _tick: None)
    run, tick = Run(), {"time": "2026-01-01T00:00:00Z"}
    for _ in range(2):
        handler(tick, run)
        clock.advance(60)
    (report,) = processes.living(clock.now())
    assert (report.release, report.program) == (THIS.name, run.function_name)
    assert clock.now() - report.at == 120 * 1_000_000, "the second event was too soon"
    clock.advance(600)
    handler(tick, run)
    (again,) = processes.living(clock.now())
    assert (again.at, again.started) == (clock.now(), report.started)
    assert made == [run.function_name]


def test_what_a_deployment_waits_for_is_no_process_of_the_lake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reports(function: str) -> None:
        raise AssertionError(function)

    monkeypatch.setattr("lambdas.shape.function_reports", reports)
    answers: list[bytes] = []
    handler = deployed_handler(
        lambda: None, lambda _: None, answer=lambda _, body: answers.append(body)
    )
    names = dict.fromkeys(("StackId", "RequestId", "LogicalResourceId", "ResponseURL"), "x")
    handler({"RequestType": "Create", **names}, Run())
    assert len(answers) == 1


def test_a_function_that_is_not_told_where_reports_nothing() -> None:
    assert function_reports("f") is None
