"""Requests for bulk imports that were damaged while they were kept."""

import logging
from pathlib import Path

import pytest

from lakebed.errors import NewerFormatError, UnavailableError
from lakebed.model.names import JobId
from lakebed.ports.job_tracker import NO_TABLE
from tests.dsl.bulk_import_story import BulkImportStory


@pytest.fixture
def story(tmp_path: Path) -> BulkImportStory:
    return BulkImportStory(tmp_path)


def corrupt(caplog: pytest.LogCaptureFixture) -> int:
    """Return how often an operator was told of damage."""
    return sum("kind=corrupt" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("body", [b"{", b"", b'{"name":"0","table":"ab","job":"x\\u0000"'])
def test_what_is_no_request_keeps_nobody_from_looking_at_others(
    story: BulkImportStory, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    story.given_object("requests/0.json", body)
    story.when_sent(story.message_for("a.parquet", "a"))
    story.platform.end("failed", "FAILED: killed")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        story.follower.run()
        story.follower.run()
    assert story.events() == ["accepted", "failed"]
    (report,) = story.app.tracker.history(NO_TABLE, JobId("0"))
    assert report.event == "failed"
    assert "corrupt: " in report.reason
    assert corrupt(caplog) == 1
    assert story.objects.size_of("unreadable/0.json") == len(body)
    assert not list(story.requests.open())


def test_a_damaged_request_fails_where_its_sender_looks_and_can_be_sent_again(
    story: BulkImportStory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(_: object) -> str:
        raise UnavailableError("the store is busy")

    message = story.message_for("a.parquet", "a")
    story.when_sent(message)
    (path,) = story.objects.list("requests/")
    damaged = story.body_of(path)[:-9]
    story.objects.delete([path])
    story.given_object(path, damaged)
    with monkeypatch.context() as patch:
        patch.setattr(story.requests, "put_aside", busy)
        with pytest.raises(UnavailableError):
            story.follower.run()
    with caplog.at_level(logging.INFO, logger="lakebed"):
        story.follower.run()
        story.follower.run()
    assert story.events() == ["accepted", "failed"]
    assert corrupt(caplog) == 1
    assert story.body_of(path.replace("requests/", "unreadable/")) == damaged
    story.when_sent(message, at=2)
    story.when_driven()
    assert story.events()[2:] == ["accepted", "started", "committed"]


def test_a_damaged_request_says_nothing_of_an_end_that_was_told(story: BulkImportStory) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    story.when_driven()
    (path,) = story.objects.list("requests/")
    damaged = story.body_of(path)[:-9]
    story.objects.delete([path])
    story.given_object(path, damaged)
    story.follower.run()
    assert story.events() == ["accepted", "started", "committed"]
    assert not list(story.requests.open())


def test_a_request_of_a_newer_release_stays_for_it_and_others_are_followed(
    story: BulkImportStory,
) -> None:
    story.when_sent(story.message_for("a.parquet", "a"))
    (path,) = story.objects.list("requests/")
    more = story.body_of(path)[:-1] + b',"more":{"of":"a newer release"}'
    story.objects.delete([path])
    story.given_object(path, more + b',"needs":1}')
    story.given_object("requests/0.json", more + b',"needs":2}')
    story.platform.end("failed", "FAILED: killed")
    for _ in range(2):
        with pytest.raises(NewerFormatError, match="upgrade"):
            story.follower.run()
    assert story.events() == ["accepted", "failed"]
    assert list(story.objects.list("")) == ["requests/0.json"], "it is not put aside as damaged"
