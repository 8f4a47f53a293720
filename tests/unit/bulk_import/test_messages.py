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
from tests.dsl.bulk_import_story import BulkImportStory
from tests.unit.tables.lakes import SCHEMA, ids


def called(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether an alarm rings."""
    return any(events.BULK_IMPORT_FAILED in record.getMessage() for record in caplog.records)


@pytest.fixture
def story(tmp_path: Path) -> BulkImportStory:
    return BulkImportStory(tmp_path)


def test_what_a_message_asks_for_is_done_once_and_told(story: BulkImportStory) -> None:
    name = story.given_file("a.parquet", "a", "b")
    message = {
        "id": "j",
        "table": "trips",
        "files": [name],
        "spark_conf": {"spark.executor.cores": "8"},
    }
    story.when_sent(message)
    story.when_sent(message)  # the same receipt again: the function died before it was deleted
    assert len(story.platform.by_name) == 1
    assert story.platform.asked_for[-1][1].spark_conf == {"spark.executor.cores": "8"}
    story.follower.run()
    assert story.events() == ["accepted"]
    story.when_driven()
    story.platform.end("succeeded")
    story.follower.run()
    assert ids(story.table) == ["a", "b"]
    assert story.events() == ["accepted", "started", "committed"]
    assert not list(story.requests.open())


def test_a_request_that_was_done_is_answered_without_spark_though_its_files_are_gone(
    story: BulkImportStory,
) -> None:
    message = story.message_for("a.parquet", "a")
    story.when_sent(message)
    story.when_driven()
    (story.folder / "a.parquet").unlink()
    story.when_sent(message, at=2)
    assert len(story.platform.by_name) == 1
    assert story.events() == ["accepted", "started", "committed"]
    story.platform.end("succeeded")
    story.follower.run()
    story.app.tracker.forget(before=Micros(1 << 62))
    story.when_sent(message, at=3)
    assert len(story.platform.by_name) == 1
    assert story.events() == ["committed"], "its sender finds it, also after reports are forgotten"
    assert ids(story.table) == ["a"]
    assert not list(story.requests.open())


def test_a_message_that_comes_again_after_its_commit_starts_nothing(story: BulkImportStory) -> None:
    """Its function died before it deleted the message; the driver died before it told its end."""
    message = story.message_for("a.parquet", "a")
    story.when_sent(message)
    story.when_driven()
    story.app.tracker.forget(before=Micros(1 << 62))
    story.platform.end("failed", "FAILED: killed")
    story.when_sent(message)
    assert len(story.platform.by_name) == 1
    assert story.events() == ["committed"]
    story.follower.run()
    assert story.events() == ["committed"]
    assert not list(story.requests.open())


def test_a_run_whose_answer_was_lost_is_started_once(story: BulkImportStory) -> None:
    message = {"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]}
    story.platform.loses_answers = True
    with pytest.raises(UnavailableError):
        story.when_sent(message)
    story.platform.loses_answers = False
    story.when_sent(message)
    assert len(story.platform.by_name) == 1
    assert story.events() == ["accepted"]


def test_a_run_that_could_never_be_started_is_told_after_a_day(story: BulkImportStory) -> None:
    story.platform.is_busy = True
    with pytest.raises(UnavailableError):
        story.when_sent(
            {"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]}
        )
    story.follower.run()
    assert story.events() == ["accepted"]
    story.clock.sleep(86_401)
    story.follower.run()
    assert story.events() == ["accepted", "failed"]
    assert not list(story.requests.open())


def test_a_driver_that_died_is_told_as_failed_with_what_the_platform_says(
    story: BulkImportStory,
) -> None:
    message = {"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]}
    story.when_sent(message)
    story.platform.end("failed", "FAILED: the driver was killed")
    story.follower.run()
    story.follower.run()
    assert story.events() == ["accepted", "failed"]
    last = story.app.tracker.last(story.table._opened.id, JobId("j"))
    assert last is not None
    assert "FAILED: the driver was killed" in last.reason
    assert "run-1" in last.reason
    assert not ids(story.table)
    story.when_sent(message, at=2)  # sent again: another run
    assert len(story.platform.by_name) == 2
    story.when_driven()
    assert ids(story.table) == ["a"]


def test_a_driver_that_died_after_its_commit_is_told_as_committed(story: BulkImportStory) -> None:
    story.when_sent({"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]})
    table = story.table._opened
    story.when_driven()
    story.app.tracker.forget(before=Micros(1 << 62))  # as if its last report had been lost
    story.platform.end("failed", "FAILED: killed")
    story.follower.run()
    assert story.events() == ["committed"]
    last = story.app.tracker.last(table.id, JobId("j"))
    assert last is not None
    assert last.number > 0


def test_what_the_driver_told_stays(story: BulkImportStory) -> None:
    name = story.given_file("a.parquet", "a")
    story.when_sent({"id": "j", "table": "trips", "files": [name]})
    Path(name).unlink()
    with pytest.raises(InvalidError, match="no such file"):
        story.when_driven()
    story.platform.end("failed", "FAILED: exit code 1")
    story.follower.run()
    assert story.events() == ["accepted", "started", "rejected"]
    assert not list(story.requests.open())


def test_the_platform_is_asked_only_while_runs_are_open(story: BulkImportStory) -> None:
    story.follower.run()
    assert story.platform.asked == 0
    story.when_sent({"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]})
    story.follower.run()
    assert story.platform.asked == 1
    assert len(list(story.requests.open())) == 1


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
    story: BulkImportStory, message: object, says: str, told: bool
) -> None:
    with pytest.raises(InvalidError, match=says):
        story.when_sent(message)
    assert not story.platform.by_name
    assert not list(story.requests.open())
    table = story.table._opened.id if told else NO_TABLE
    found = story.app.tracker.find(table, reports_max=10)
    assert [report.event for report in found] == ["rejected"]
    assert says in found[0].reason


def test_an_id_that_stands_for_other_files_is_refused_before_spark_is_paid_for(
    story: BulkImportStory,
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.when_driven()
    with pytest.raises(JobIdReusedError):
        story.when_sent(story.message_for("b.parquet", "b"), at=2)
    assert len(story.platform.by_name) == 1
    assert story.events() == ["accepted", "started", "committed", "rejected"]


def test_a_driver_whose_id_was_used_meanwhile_tells_it_and_nobody_is_called(
    story: BulkImportStory, caplog: pytest.LogCaptureFixture
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    first = list(story.platform.by_name)[-1]
    story.when_sent(story.message_for("b.parquet", "b"), at=2)
    story.when_driven()
    with pytest.raises(JobIdReusedError):
        story.when_driven(first)
    assert story.events()[-3:] == ["started", "committed", "rejected"]
    story.platform.end("failed", "FAILED: exit code 1", first)
    story.platform.end("succeeded")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        story.follower.run()
    assert not called(caplog)
    assert story.events()[-1] == "rejected"
    assert ids(story.table) == ["b"]
    assert not list(story.requests.open())


def test_rows_go_to_the_table_that_was_accepted_whatever_its_name_is_then(
    story: BulkImportStory,
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.lake.rename_table("trips", "rides")
    other = story.lake.create_table("trips", SCHEMA)
    story.when_driven()
    assert ids(story.lake.table("rides")) == ["a"]
    assert not ids(other)


def test_a_table_that_was_dropped_meanwhile_gets_no_rows_though_another_has_its_name(
    story: BulkImportStory,
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.lake.drop_table("trips")
    other = story.lake.create_table("trips", SCHEMA)
    with pytest.raises(TableMissingError):
        story.when_driven()
    assert not ids(other)
    assert story.events() == ["accepted", "rejected"]
    story.platform.end("failed", "FAILED: exit code 1")
    story.follower.run()
    assert story.events() == ["accepted", "rejected"]


def test_an_end_that_nobody_heard_is_told_again(
    story: BulkImportStory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(_: object) -> None:
        raise UnavailableError("the tracker is busy")

    story.when_sent(story.message_for("a.parquet", "a"))
    story.platform.end("failed", "FAILED: killed")
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, logger="lakebed"):
        patch.setattr(story.app.tracker, "report_many", busy)
        with pytest.raises(UnavailableError):
            story.follower.run()
    assert called(caplog)
    assert len(list(story.requests.open())) == 1
    story.follower.run()
    assert story.events() == ["accepted", "failed"]
    assert not list(story.requests.open())


def test_a_run_that_died_says_nothing_of_a_newer_one(
    story: BulkImportStory, caplog: pytest.LogCaptureFixture
) -> None:
    message = story.message_for("a.parquet", "a")
    story.when_sent(message)
    story.platform.end("failed", "FAILED: killed")
    story.when_sent(message, at=2)
    with caplog.at_level(logging.INFO, logger="lakebed"):
        story.follower.run()
    assert not called(caplog)
    assert story.events() == ["accepted", "accepted"]
    assert [request.name for request in story.requests.open()] == list(story.platform.by_name)[1:]
    story.platform.end("failed", "FAILED: killed, too")
    story.follower.run()
    assert story.events() == ["accepted", "accepted", "failed"]


def test_a_message_that_comes_again_after_a_newer_one_is_looked_after(
    story: BulkImportStory,
) -> None:
    message = story.message_for("a.parquet", "a")
    story.platform.is_busy = True
    with pytest.raises(UnavailableError):
        story.when_sent(message)
    story.platform.is_busy = False
    story.when_sent(message, at=2)
    story.platform.end("failed", "FAILED: killed")
    story.follower.run()
    story.when_sent(message)  # the first one: a dead letter that was sent back
    story.platform.end("failed", "FAILED: killed, too")
    story.follower.run()
    assert story.events() == ["accepted", "accepted", "failed", "accepted", "failed"]


def test_what_the_platform_refuses_is_told_and_forgotten(story: BulkImportStory) -> None:
    story.platform.refuses = "more than its capacity"
    with pytest.raises(InvalidError, match="capacity"):
        story.when_sent(story.message_for("a.parquet", "a"))
    assert story.events() == ["accepted", "rejected"]
    assert not list(story.requests.open())


def test_a_table_that_cannot_be_read_keeps_nobody_from_looking_at_others(
    story: BulkImportStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.platform.end("failed", "FAILED: killed")
    first = next(iter(story.platform.by_name))
    story.when_sent({**story.message_for("b.parquet", "b"), "id": "k"})
    story.platform.end("failed", "FAILED: killed")
    last = story.app.tracker.history

    def busy(table: TableId, job: JobId) -> list[JobReport]:
        if job == "j":
            raise UnavailableError("the tracker is busy")
        return last(table, job)

    monkeypatch.setattr(story.app.tracker, "history", busy)
    with pytest.raises(UnavailableError):
        story.follower.run()
    assert story.events("k") == ["accepted", "failed"]
    assert [request.name for request in story.requests.open()] == [first]


def test_a_run_that_ended_well_without_a_commit_is_told_as_failed(story: BulkImportStory) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.platform.end("succeeded")
    story.follower.run()
    assert story.events() == ["accepted", "failed"]
    last = story.app.tracker.last(story.table._opened.id, JobId("j"))
    assert last is not None
    assert "without a commit" in last.reason


def test_a_table_that_is_gone_has_a_failed_run(story: BulkImportStory) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.lake.drop_table("trips")
    story.platform.end("failed", "CANCELLED: by somebody")
    story.follower.run()
    assert story.events() == ["accepted", "failed"]
