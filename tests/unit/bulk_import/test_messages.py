"""Bulk imports of messages: what is started, who hears of it, and how ends become known."""

import logging
from pathlib import Path

import pytest

from lakebed.errors import (
    InvalidError,
    JobIdReusedError,
    TableMissingError,
    UnavailableError,
)
from lakebed.model.names import JobId, Micros, TableId
from lakebed.observe import events
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from tests.dsl.import_office import Office
from tests.unit.tables.lakes import SCHEMA, ids


def called(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether an alarm rings."""
    return any(events.BULK_IMPORT_FAILED in record.getMessage() for record in caplog.records)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_what_a_message_asks_for_is_done_once_and_told(office: Office) -> None:
    name = office.given_file("a.parquet", "a", "b")
    message = {
        "id": "j",
        "table": "trips",
        "files": [name],
        "spark_conf": {"spark.executor.cores": "8"},
    }
    office.when_sent(message)
    office.when_sent(message)  # the same receipt again: the function died before it was deleted
    assert len(office.platform.runs) == 1
    assert office.platform.conf == {"spark.executor.cores": "8"}
    office.follower.run()
    assert office.told() == ["accepted"]
    office.when_driven()
    office.platform.end("succeeded")
    office.follower.run()
    assert ids(office.table) == ["a", "b"]
    assert office.told() == ["accepted", "started", "committed"]
    assert not list(office.requests.open())


def test_a_request_that_was_done_is_answered_without_spark_though_its_files_are_gone(
    office: Office,
) -> None:
    message = office.asked("a.parquet", "a")
    office.when_sent(message)
    office.when_driven()
    (office.folder / "a.parquet").unlink()
    office.when_sent(message, at=2)
    assert len(office.platform.runs) == 1
    assert office.told() == ["accepted", "started", "committed"]
    office.platform.end("succeeded")
    office.follower.run()
    office.app.tracker.forget(before=Micros(1 << 62))
    office.when_sent(message, at=3)
    assert len(office.platform.runs) == 1
    assert office.told() == ["committed"], "its sender finds it, also after reports are forgotten"
    assert ids(office.table) == ["a"]
    assert not list(office.requests.open())


def test_a_message_that_comes_again_after_its_commit_starts_nothing(office: Office) -> None:
    """Its function died before it deleted the message; the driver died before it told its end."""
    message = office.asked("a.parquet", "a")
    office.when_sent(message)
    office.when_driven()
    office.app.tracker.forget(before=Micros(1 << 62))
    office.platform.end("failed", "FAILED: killed")
    office.when_sent(message)
    assert len(office.platform.runs) == 1
    assert office.told() == ["committed"]
    office.follower.run()
    assert office.told() == ["committed"]
    assert not list(office.requests.open())


def test_a_run_whose_answer_was_lost_is_started_once(office: Office) -> None:
    message = {"id": "j", "table": "trips", "files": [office.given_file("a.parquet", "a")]}
    office.platform.loses_answers = True
    with pytest.raises(UnavailableError):
        office.when_sent(message)
    office.platform.loses_answers = False
    office.when_sent(message)
    assert len(office.platform.runs) == 1
    assert office.told() == ["accepted"]


def test_a_run_that_could_never_be_started_is_told_after_a_day(office: Office) -> None:
    office.platform.is_busy = True
    with pytest.raises(UnavailableError):
        office.when_sent(
            {"id": "j", "table": "trips", "files": [office.given_file("a.parquet", "a")]}
        )
    office.follower.run()
    assert office.told() == ["accepted"]
    office.clock.sleep(86_401)
    office.follower.run()
    assert office.told() == ["accepted", "failed"]
    assert not list(office.requests.open())


def test_a_driver_that_died_is_told_as_failed_with_what_the_platform_says(office: Office) -> None:
    message = {"id": "j", "table": "trips", "files": [office.given_file("a.parquet", "a")]}
    office.when_sent(message)
    office.platform.end("failed", "FAILED: the driver was killed")
    office.follower.run()
    office.follower.run()
    assert office.told() == ["accepted", "failed"]
    last = office.app.tracker.last(office.table._opened.id, JobId("j"))
    assert last is not None
    assert "FAILED: the driver was killed" in last.reason
    assert "run-1" in last.reason
    assert not ids(office.table)
    office.when_sent(message, at=2)  # sent again: another run
    assert len(office.platform.runs) == 2
    office.when_driven()
    assert ids(office.table) == ["a"]


def test_a_driver_that_died_after_its_commit_is_told_as_committed(office: Office) -> None:
    office.when_sent({"id": "j", "table": "trips", "files": [office.given_file("a.parquet", "a")]})
    table = office.table._opened
    office.when_driven()
    office.app.tracker.forget(before=Micros(1 << 62))  # as if its last report had been lost
    office.platform.end("failed", "FAILED: killed")
    office.follower.run()
    assert office.told() == ["committed"]
    last = office.app.tracker.last(table.id, JobId("j"))
    assert last is not None
    assert last.number > 0


def test_what_the_driver_told_stays(office: Office) -> None:
    name = office.given_file("a.parquet", "a")
    office.when_sent({"id": "j", "table": "trips", "files": [name]})
    Path(name).unlink()
    with pytest.raises(InvalidError, match="no such file"):
        office.when_driven()
    office.platform.end("failed", "FAILED: exit code 1")
    office.follower.run()
    assert office.told() == ["accepted", "started", "rejected"]
    assert not list(office.requests.open())


def test_the_platform_is_asked_only_while_runs_are_open(office: Office) -> None:
    office.follower.run()
    assert office.platform.asked == 0
    office.when_sent({"id": "j", "table": "trips", "files": [office.given_file("a.parquet", "a")]})
    office.follower.run()
    assert office.platform.asked == 1
    assert len(list(office.requests.open())) == 1


@pytest.mark.parametrize(
    ("message", "says", "told"),
    [
        (b"{", "not a bulk import message", False),
        ({"id": "j", "table": "trips", "files": []}, "files", True),
        (
            {"id": "j", "table": "trips", "files": ["/etc/passwd"]},
            "outside the allowed sources",
            True,
        ),
        (
            {
                "id": "j",
                "table": "trips",
                "files": ["x"],
                "spark_conf": {"spark.driver.extraJavaOptions": "-X"},
            },
            "not among what is allowed",
            True,
        ),
        ({"id": "j", "table": "other", "files": ["x"]}, "no such table", False),
    ],
    ids=["no JSON", "no files", "a file elsewhere", "settings that name code", "no such table"],
)
def test_what_can_never_work_is_refused_where_its_sender_looks(
    office: Office, message: object, says: str, told: bool
) -> None:
    with pytest.raises(InvalidError, match=says):
        office.when_sent(message)
    assert not office.platform.runs
    assert not list(office.requests.open())
    table = office.table._opened.id if told else NO_TABLE
    found = office.app.tracker.find(table, reports_max=10)
    assert [report.event for report in found] == ["rejected"]
    assert says in found[0].reason


def test_an_id_that_stands_for_other_files_is_refused_before_spark_is_paid_for(
    office: Office,
) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.when_driven()
    with pytest.raises(JobIdReusedError):
        office.when_sent(office.asked("b.parquet", "b"), at=2)
    assert len(office.platform.runs) == 1
    assert office.told() == ["accepted", "started", "committed", "rejected"]


def test_a_driver_whose_id_was_used_meanwhile_tells_it_and_nobody_is_called(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    first = list(office.platform.runs)[-1]
    office.when_sent(office.asked("b.parquet", "b"), at=2)
    office.when_driven()
    with pytest.raises(JobIdReusedError):
        office.when_driven(first)
    assert office.told()[-3:] == ["started", "committed", "rejected"]
    office.platform.end("failed", "FAILED: exit code 1", first)
    office.platform.end("succeeded")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        office.follower.run()
    assert not called(caplog)
    assert office.told()[-1] == "rejected"
    assert ids(office.table) == ["b"]
    assert not list(office.requests.open())


def test_rows_go_to_the_table_that_was_accepted_whatever_its_name_is_then(
    office: Office,
) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.lake.rename_table("trips", "rides")
    other = office.lake.create_table("trips", SCHEMA)
    office.when_driven()
    assert ids(office.lake.table("rides")) == ["a"]
    assert not ids(other)


def test_a_table_that_was_dropped_meanwhile_gets_no_rows_though_another_has_its_name(
    office: Office,
) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.lake.drop_table("trips")
    other = office.lake.create_table("trips", SCHEMA)
    with pytest.raises(TableMissingError):
        office.when_driven()
    assert not ids(other)
    assert office.told() == ["accepted", "rejected"]
    office.platform.end("failed", "FAILED: exit code 1")
    office.follower.run()
    assert office.told() == ["accepted", "rejected"]


def test_an_end_that_nobody_heard_is_told_again(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(_: object) -> None:
        raise UnavailableError("the tracker is busy")

    office.when_sent(office.asked("a.parquet", "a"))
    office.platform.end("failed", "FAILED: killed")
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, logger="lakebed"):
        patch.setattr(office.app.tracker, "report_many", busy)
        with pytest.raises(UnavailableError):
            office.follower.run()
    assert called(caplog)
    assert len(list(office.requests.open())) == 1
    office.follower.run()
    assert office.told() == ["accepted", "failed"]
    assert not list(office.requests.open())


def test_a_run_that_died_says_nothing_of_a_newer_one(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    message = office.asked("a.parquet", "a")
    office.when_sent(message)
    office.platform.end("failed", "FAILED: killed")
    office.when_sent(message, at=2)
    with caplog.at_level(logging.INFO, logger="lakebed"):
        office.follower.run()
    assert not called(caplog)
    assert office.told() == ["accepted", "accepted"]
    assert [request.name for request in office.requests.open()] == list(office.platform.runs)[1:]
    office.platform.end("failed", "FAILED: killed, too")
    office.follower.run()
    assert office.told() == ["accepted", "accepted", "failed"]


def test_a_message_that_comes_again_after_a_newer_one_is_looked_after(office: Office) -> None:
    message = office.asked("a.parquet", "a")
    office.platform.is_busy = True
    with pytest.raises(UnavailableError):
        office.when_sent(message)
    office.platform.is_busy = False
    office.when_sent(message, at=2)
    office.platform.end("failed", "FAILED: killed")
    office.follower.run()
    office.when_sent(message)  # the first one: a dead letter that was sent back
    office.platform.end("failed", "FAILED: killed, too")
    office.follower.run()
    assert office.told() == ["accepted", "accepted", "failed", "accepted", "failed"]


def test_what_the_platform_refuses_is_told_and_forgotten(office: Office) -> None:
    office.platform.refuses = "more than its capacity"
    with pytest.raises(InvalidError, match="capacity"):
        office.when_sent(office.asked("a.parquet", "a"))
    assert office.told() == ["accepted", "rejected"]
    assert not list(office.requests.open())


def test_a_table_that_cannot_be_read_keeps_nobody_from_looking_at_others(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.platform.end("failed", "FAILED: killed")
    first = next(iter(office.platform.runs))
    office.when_sent({**office.asked("b.parquet", "b"), "id": "k"})
    office.platform.end("failed", "FAILED: killed")
    last = office.app.tracker.history

    def busy(table: TableId, job: JobId) -> list[JobReport]:
        if job == "j":
            raise UnavailableError("the tracker is busy")
        return last(table, job)

    monkeypatch.setattr(office.app.tracker, "history", busy)
    with pytest.raises(UnavailableError):
        office.follower.run()
    assert office.told("k") == ["accepted", "failed"]
    assert [request.name for request in office.requests.open()] == [first]


def test_a_run_that_ended_well_without_a_commit_is_told_as_failed(office: Office) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.platform.end("succeeded")
    office.follower.run()
    assert office.told() == ["accepted", "failed"]
    last = office.app.tracker.last(office.table._opened.id, JobId("j"))
    assert last is not None
    assert "without a commit" in last.reason


def test_a_table_that_is_gone_has_a_failed_run(office: Office) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.lake.drop_table("trips")
    office.platform.end("failed", "CANCELLED: by somebody")
    office.follower.run()
    assert office.told() == ["accepted", "failed"]
