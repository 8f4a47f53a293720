"""Users' messages and compaction jobs, done by tasks that are started while there is something to
do."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.localcloud.cloud import LocalCloud
from tests.cloud.instance import INSTANCE, SCHEMA, SOURCES, RunningInstance, rows, same_rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

INGEST, COMPACTION = f"lakebed-{INSTANCE}-ingest", f"lakebed-{INSTANCE}-compaction"
SECONDS_MAX = 120


def put(cloud: LocalCloud, key: str, some: pa.Table) -> str:
    """Put rows where users do. Returns the URL."""
    out = pa.BufferOutputStream()
    pq.write_table(some, out)
    bucket, _, folder = SOURCES.removeprefix("s3://").partition("/")
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key=f"{folder}/{key}", Body=out.getvalue().to_pybytes())
    return f"{SOURCES}/{key}"


def send(cloud: LocalCloud, **message: object) -> None:
    """Send a message as the page says: by the queue's name."""
    sqs = cloud.client("sqs")
    sqs.send_message(
        QueueUrl=sqs.get_queue_url(QueueName=f"{INGEST}.fifo")["QueueUrl"],
        MessageBody=json.dumps(message),
        MessageGroupId=str(message["id"]),
    )


def until(cloud: LocalCloud, what: str, is_so: object) -> None:
    assert callable(is_so)
    end = cloud.clock.monotonic() + SECONDS_MAX
    while not is_so():
        said = "\n".join(task.log.read_text()[-2_000:] for task in cloud.tasks.running)
        assert cloud.clock.monotonic() < end, f"never: {what}\n{cloud.queues()}\n{said}"
        cloud.clock.sleep(0.2)
        cloud.settle()


def depth(cloud: LocalCloud, queue: str) -> int:
    figures = cloud.queues()[queue]
    return int(figures["visible"] + figures["hidden"])


@pytest.fixture(autouse=True)
def no_tasks_left(instance: RunningInstance) -> Iterator[None]:
    yield
    for task in instance.cloud.tasks.running:
        task.process.kill()
    assert instance.cloud.finish_tasks(seconds_max=30)


def test_files_that_a_message_names_become_rows_and_a_bad_message_is_told(
    instance: RunningInstance,
) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        table = lake.create_table("landed", SCHEMA)
        good, elsewhere = put(cloud, "landed/a.parquet", rows(50)), "s3://elsewhere/b.parquet"
        send(cloud, id="good", table="landed", files=[good])
        send(cloud, id="bad", table="landed", files=[elsewhere])
        cloud.fire(f"{INGEST}-tasks")
        assert len(cloud.tasks.running) == 2
        until(cloud, "both are done", lambda: not depth(cloud, f"{INGEST}.fifo"))
        assert same_rows(table, rows(50))
        told = {report.job: report for report in table.jobs()}
        assert told["good"].event == "committed"
        assert told["bad"].event == "rejected"
        assert elsewhere in told["bad"].reason
        assert depth(cloud, f"{INGEST}-dead.fifo") == 1
        cloud.settle()
        assert cloud.alarms()[f"{INGEST}-dead-letters"] == "ALARM"
        assert not cloud.failures
