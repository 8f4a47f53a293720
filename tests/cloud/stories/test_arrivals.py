"""Files that arrive in a watched folder become rows by themselves: S3's events, the queue of
submissions, batches and tasks."""

import json
from collections.abc import Iterator

import pytest

import lakebed
from lakebed.backends.aws.deployed.parts import AmazonDeployedParts
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws import new_clients, resources_of
from lakebed.config.instance import InstanceId
from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.permission_notes import without
from tests.cloud.users import put_bytes, send, until, waiting

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
        until(told, "its event is on its way no more", table.pending_files)
        take_in(stage, told)
        assert sorted(table.query().read_all()["key"].to_pylist()) == [*expected, "put again"]
        assert not waiting(told, "submissions-dead")
        assert [parts_of(told).sends_file_events(name) for name in ("landing", "assets")] == [
            True,
            False,
        ]


def parts_of(instance: RunningInstance) -> AmazonDeployedParts:
    clients = new_clients(instance.cloud.clock, system_random())
    return AmazonDeployedParts(
        clients, InstanceId(INSTANCE), lambda: resources_of(clients, InstanceId(INSTANCE))
    )


def submit(instance: RunningInstance, **message: object) -> None:
    send(instance, "submissions", json.dumps(message), message_group="one")
    instance.cloud.settle()


def test_files_of_a_users_message_wait_and_one_that_cannot_be_is_a_dead_letter(
    instance: RunningInstance,
) -> None:
    with instance.lake() as lake:
        table = lake.create_table("submitted", SCHEMA)
        folder = f"{SOURCES}/submitted/"
        for name in "ab":
            put_bytes(instance, f"submitted/{name}.csv", b"key\nk\n")
        submit(instance, table="submitted", files=[folder])
        assert sorted(one.file for one in table.pending_files()) == [
            f"{folder}a.csv",
            f"{folder}b.csv",
        ]
        submit(instance, table="submitted", files=[f"{folder}a.csv", f"{folder}gone.csv"])
        submit(instance, table="submitted", files=["s3://elsewhere/a.csv"])
        submit(instance, table="nowhere", files=[folder])
        assert (waiting(instance, "submissions"), waiting(instance, "submissions-dead")) == (0, 3)
        assert len(table.pending_files()) == 2


def test_a_message_comes_again_while_its_function_lacks_a_permission(
    instance: RunningInstance,
) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        table = lake.create_table("denied", SCHEMA)
        put_bytes(instance, "denied/a.csv", b"key\nk\n")
        with without(cloud, f"lakebed-{INSTANCE}-batching-Submit", "dynamodb:PutItem", "-batches"):
            submit(instance, table="denied", files=[f"{SOURCES}/denied/a.csv"])
            assert (table.pending_files(), waiting(instance, "submissions")) == ([], 1)
        cloud.advance(120, schedules=False)
        until(instance, "it is done", lambda: not waiting(instance, "submissions"))
        assert len(table.pending_files()) == 1
