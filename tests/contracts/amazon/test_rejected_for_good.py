"""A merge that was rejected stays so while DynamoDB forgets reports, month after month."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY, TRACKER_TABLE
from lakebed.errors import IteratorError
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.ports.job_tracker import KEPT_SECONDS
from lakebed.tasks.work_done import WorkDone
from tests.servers.faulty_proxy import LOST, UNANSWERED, FaultyProxy
from tests.servers.s3 import S3Server
from tests.unit.compaction.test_rejected_jobs import DAYS, failing, filled, ids, rejections


class ForgetfulTracker(DynamoDbJobTracker):
    """Stands in for the tracker of a directory; what has expired is deleted when it is asked for.

    answers: each of them replaces one that the table gives.
    """

    def __init__(self, server: S3Server, answers: FaultyProxy, clock: VirtualClock) -> None:
        self.answers = answers
        self._virtual_clock = clock
        self._own_clients = server.clients(url=answers.url)
        self._own_table = server.new_table(TRACKER_TABLE)
        super().__init__(self._own_clients, self._own_table)

    def expire(self) -> int:
        """Do what DynamoDB does in its own time. Returns how many items went."""
        second = self._virtual_clock.now() // MICROS_PER_SECOND
        dynamodb, table = self._own_clients.dynamodb, self._own_table
        items = dynamodb.scan(TableName=table)["Items"]
        gone = [item for item in items if int(item["expires"]["N"]) < second]
        for item in gone:
            key = {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
            dynamodb.delete_item(TableName=table, Key=key)
        return len(gone)

    def close(self) -> None:
        self._own_clients.close()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def tracker(ministack: S3Server, proxy: FaultyProxy, clock: VirtualClock) -> ForgetfulTracker:
    return ForgetfulTracker(ministack, proxy, clock)


@pytest.fixture
def lake(
    tmp_path: Path,
    clock: VirtualClock,
    tracker: ForgetfulTracker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Lake]:
    monkeypatch.setattr("lakebed.bootstrap.local.SqliteJobTracker", lambda _: tracker)
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        yield lake


def test_it_is_merged_once_in_sixty_days_and_once_more_when_it_has_changed(
    lake: Lake,
    clock: VirtualClock,
    tracker: ForgetfulTracker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    merges = failing(monkeypatch, IteratorError("an iterator failed", name="x"))
    table, forgotten = filled(lake), 0
    with pytest.raises(IteratorError):
        lake.run()
    jobs = ids(lake)
    for day in range(2 * KEPT_SECONDS // DAYS):
        clock.advance(DAYS)
        tracker.answers.times(int(day % 7 == 0), "POST", LOST if day % 2 else UNANSWERED)
        assert lake.run() == WorkDone()
        tracker.answers.times(0, "POST", LOST)
        forgotten += tracker.expire()
    assert forgotten, "what else was reported of the job is gone"
    assert (len(merges), rejections(caplog)) == (1, 1)
    assert ids(lake) == jobs
    table.change_settings(job_files_max=4)
    with pytest.raises(IteratorError):
        lake.run()
    assert (len(merges), rejections(caplog)) == (2, 2)
