"""Files that arrive in a watched folder become rows by themselves: S3's events, the queue of
submissions, batches and tasks."""

from collections.abc import Iterator

import pytest

import lakebed
from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import SOURCES, RunningInstance
from tests.cloud.users import put_bytes, until, waiting

SCHEMA = lakebed.schema_of(row_keys={"key": "string"})
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FOLDER = f"{SOURCES}/arrivals/"
FILES = 1_000


@pytest.fixture
def told(instance: RunningInstance) -> Iterator[RunningInstance]:
    """The bucket tells of its files, as its owner has asked it to; events come twice."""
    put_bytes(instance, "before.csv", b"key\nbefore\n")
    s3, (bucket, *_) = instance.cloud.client("s3"), SOURCES.removeprefix("s3://").split("/")

    def tell(what: dict[str, dict[str, str]]) -> None:
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=what)

    tell({"EventBridgeConfiguration": {}})
    instance.cloud.faults.delivers_twice = lambda *_: True
    yield instance
    tell({})


def arrive(instance: RunningInstance, name: str, *keys: str) -> None:
    put_bytes(instance, f"arrivals/{name}", "\n".join(["key", *keys, ""]).encode())


def take_in(stage: DeployedStage, instance: RunningInstance) -> None:
    until(instance, "all events are heard", lambda: not waiting(instance, "submissions"))
    stage.advance(301)
    for _ in range(2):  # then, what the batches behind the first one hold
        stage.work("batching", "ingest", "batching")


def test_files_become_rows_once_each_though_every_event_comes_twice(told: RunningInstance) -> None:
    with told.lake() as lake:
        stage = DeployedStage(told, lake)
        table = lake.create_table("arrivals", SCHEMA)
        lake.watch("arrivals", FOLDER)
        expected = [f"k{n:04}" for n in range(FILES)]
        for n, key in enumerate(expected):
            arrive(told, f"day-{n % 7}/file-{n:04}.csv", key)
        arrive(told, "_SUCCESS", "left out")
        put_bytes(told, "elsewhere/file.csv", b"key\nleft out\n")
        put_bytes(told, "arrivals/empty.csv", b"")
        take_in(stage, told)
        assert sorted(table.query().read_all()["key"].to_pylist()) == expected
        reports = table.batches()
        assert {report.state for report in reports} == {"committed"}
        assert sum(report.files for report in reports) == FILES
        arrive(told, "day-0/file-0000.csv", "put again")
        take_in(stage, told)
        assert sorted(table.query().read_all()["key"].to_pylist()) == [*expected, "put again"]
        assert not waiting(told, "submissions-dead")
