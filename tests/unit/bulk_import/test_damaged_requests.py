"""Requests for bulk imports that were damaged while they were kept."""

import logging
from pathlib import Path

import pytest

from lakebed.errors import NewerFormatError, UnavailableError
from lakebed.model.names import JobId
from lakebed.ports.job_tracker import NO_TABLE
from tests.dsl.import_office import Office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def corrupt(caplog: pytest.LogCaptureFixture) -> int:
    """Return how often an operator was told of damage."""
    return sum("kind=corrupt" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("body", [b"{", b"", b'{"name":"0","table":"ab","job":"x\\u0000"'])
def test_what_is_no_request_keeps_nobody_from_looking_at_others(
    office: Office, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    office.given_object("requests/0.json", body)
    office.when_sent(office.asked("a.parquet", "a"))
    office.platform.end("failed", "FAILED: killed")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        office.follower.run()
        office.follower.run()
    assert office.told() == ["accepted", "failed"]
    (report,) = office.app.tracker.history(NO_TABLE, JobId("0"))
    assert report.event == "failed"
    assert "corrupt: " in report.reason
    assert corrupt(caplog) == 1
    assert office.objects.size_of("unreadable/0.json") == len(body)
    assert not list(office.requests.open())


def test_a_damaged_request_fails_where_its_sender_looks_and_can_be_sent_again(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(_: object) -> str:
        raise UnavailableError("the store is busy")

    message = office.asked("a.parquet", "a")
    office.when_sent(message)
    (path,) = office.objects.list("requests/")
    damaged = office.body_of(path)[:-9]
    office.objects.delete([path])
    office.given_object(path, damaged)
    with monkeypatch.context() as patch:
        patch.setattr(office.requests, "put_aside", busy)
        with pytest.raises(UnavailableError):
            office.follower.run()
    with caplog.at_level(logging.INFO, logger="lakebed"):
        office.follower.run()
        office.follower.run()
    assert office.told() == ["accepted", "failed"]
    assert corrupt(caplog) == 1
    assert office.body_of(path.replace("requests/", "unreadable/")) == damaged
    office.when_sent(message, at=2)
    office.when_driven()
    assert office.told()[2:] == ["accepted", "started", "committed"]


def test_a_damaged_request_says_nothing_of_an_end_that_was_told(office: Office) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    office.when_driven()
    (path,) = office.objects.list("requests/")
    damaged = office.body_of(path)[:-9]
    office.objects.delete([path])
    office.given_object(path, damaged)
    office.follower.run()
    assert office.told() == ["accepted", "started", "committed"]
    assert not list(office.requests.open())


def test_a_request_of_a_newer_release_stays_for_it_and_others_are_followed(office: Office) -> None:
    office.when_sent(office.asked("a.parquet", "a"))
    (path,) = office.objects.list("requests/")
    more = office.body_of(path)[:-1] + b',"more":{"of":"a newer release"}'
    office.objects.delete([path])
    office.given_object(path, more + b',"needs":1}')
    office.given_object("requests/0.json", more + b',"needs":2}')
    office.platform.end("failed", "FAILED: killed")
    for _ in range(2):
        with pytest.raises(NewerFormatError, match="upgrade"):
            office.follower.run()
    assert office.told() == ["accepted", "failed"]
    assert list(office.objects.list("")) == ["requests/0.json"], "it is not put aside as damaged"
