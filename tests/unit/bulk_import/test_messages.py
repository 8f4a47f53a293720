"""Bulk imports of messages: what is started, who hears of it, and how ends become known."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.bootstrap.bulk_import import BulkImportApp
from lakebed.bootstrap.local import LocalApp
from lakebed.bulk_import.follow_runs import FollowRuns
from lakebed.bulk_import.requests import ImportRequests
from lakebed.bulk_import.start_runs import StartRuns
from lakebed.errors import InvalidError, UnavailableError
from lakebed.ingest.allowed_files import AllowedPlaces
from lakebed.lake import Lake
from lakebed.model.names import JobId, Micros
from lakebed.ports.job_tracker import NO_TABLE
from tests.dsl.one_process import OneProcess
from tests.dsl.spark_platform import SparkPlatform
from tests.unit.tables.lakes import SCHEMA, ids, rows


class Office:
    """A lake with a table `trips`, a folder where files may lie, and who starts and follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "landing"
        self.folder.mkdir()
        self.clock = VirtualClock()
        self.app = LocalApp(folder / "lake", clock=self.clock)
        self.lake = Lake(self.app)
        self.table = self.lake.create_table("trips", SCHEMA)
        self.platform = SparkPlatform()
        self.requests = ImportRequests(MemoryObjectStore(self.clock))
        shared: dict[str, Any] = {
            "requests": self.requests,
            "runs": self.platform,
            "tracker": self.app.tracker,
            "clock": self.clock,
        }
        self.starter = StartRuns(
            find_table=self.app.catalog.find,
            check_file=AllowedPlaces([str(self.folder)]).check,
            **shared,
        )
        opened = self.table._opened
        self.follower = FollowRuns(
            find_table=lambda id_: opened if id_ == opened.id else None, **shared
        )

    def given_file(self, name: str, *keys: str) -> str:
        path = self.folder / name
        pq.write_table(rows(keys), path)
        return str(path)

    def when_sent(self, message: object, at: int = 1) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.clock.advance(1)
        self.starter.start(body, sent_at=Micros(at))

    def when_driven(self) -> None:
        """Let the driver of the newest request do its work."""
        request = self.requests.get(list(self.platform.runs)[-1])
        self.clock.advance(1)
        driver = BulkImportApp(self.app)
        driver.run_request(request, places=[str(self.folder)], cluster_for=OneProcess)

    def told(self, job: str = "j") -> list[str]:
        table = self.table._opened.id
        return [report.event for report in self.app.tracker.history(table, JobId(job))]


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


def test_a_request_that_was_done_is_done_though_its_files_are_gone(office: Office) -> None:
    name = office.given_file("a.parquet", "a")
    message = {"id": "j", "table": "trips", "files": [name]}
    office.when_sent(message)
    office.when_driven()
    Path(name).unlink()
    office.when_sent(message, at=2)
    assert len(office.platform.runs) == 2
    office.when_driven()
    office.platform.end("succeeded")
    office.follower.run()
    assert ids(office.table) == ["a"]
    assert office.told()[-2:] == ["accepted", "committed"]


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
        ({"id": "j", "table": "trips", "files": ["/etc/passwd"]}, "elsewhere", True),
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
