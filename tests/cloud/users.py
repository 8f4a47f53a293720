"""What users of an instance do, by AWS's own interfaces: files, messages, results."""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

from localcloud.services.emulator import REGION
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance

SECONDS_MAX = 300


def put(instance: RunningInstance, key: str, rows: pa.Table) -> str:
    """Put a file of rows where messages may name it. Returns its URL."""
    out = pa.BufferOutputStream()
    pq.write_table(rows, out)
    return put_bytes(instance, key, out.getvalue().to_pybytes())


def put_bytes(instance: RunningInstance, key: str, content: bytes) -> str:
    """Put an object where messages may name it. Returns its URL."""
    bucket, _, folder = SOURCES.removeprefix("s3://").partition("/")
    s3 = instance.cloud.client("s3")
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError:
        place = {"LocationConstraint": REGION}
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
    s3.put_object(Bucket=bucket, Key=f"{folder}/{key}", Body=content)
    return f"{SOURCES}/{key}"


def send(
    instance: RunningInstance,
    kind: str,
    message: str,
    *,
    message_group: str,
    sent: int | None = None,
) -> None:
    """Send a message to the queue of its kind, as the reference pages say. sent: when it was sent
    first, as `lakebed dead-letters redrive` tells; None: it was not."""
    sqs = instance.cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=f"lakebed-{INSTANCE}-{kind}.fifo")["QueueUrl"]
    told = {} if sent is None else {"sent": {"DataType": "Number", "StringValue": f"{sent}"}}
    sqs.send_message(
        QueueUrl=url, MessageBody=message, MessageGroupId=message_group, MessageAttributes=told
    )


def waiting(instance: RunningInstance, kind: str) -> int:
    """How many messages a queue has, in sight or not. kind: with `-dead`: of its dead letters."""
    figures = instance.cloud.queues()[f"lakebed-{INSTANCE}-{kind}.fifo"]
    return int(figures["visible"] + figures["hidden"])


def fetched(instance: RunningInstance, manifest: str) -> pa.Table:
    """All rows of a result that was written down. manifest: its URL."""
    told = json.loads(_object(instance, manifest))
    files = [pa.BufferReader(_object(instance, file["path"])) for file in told["files"]]
    found = pa.concat_tables([pq.read_table(file) for file in files])
    assert found.num_rows == told["rows"]
    return found


def stop_tasks(instance: RunningInstance) -> None:
    """Let no task take what is sent later. They are asked to stop: a killed one's last request
    may still take a message."""
    ecs = instance.cloud.client("ecs")
    for task in instance.cloud.tasks.running:
        ecs.stop_task(cluster=f"lakebed-{INSTANCE}-tasks", task=task.arn)
    assert instance.cloud.finish_tasks(seconds_max=90)


def _object(instance: RunningInstance, url: str) -> bytes:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    body: bytes = instance.cloud.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


def until(instance: RunningInstance, what: str, is_so: Callable[[], object]) -> None:
    """Let the cloud go on until something is so; fail when it never is."""
    cloud = instance.cloud
    end = cloud.clock.monotonic() + SECONDS_MAX
    while not is_so():
        said = "\n".join(task.log.read_text()[-2_000:] for task in cloud.tasks.running)
        assert cloud.clock.monotonic() < end, f"never: {what}\n{cloud.queues()}\n{said}"
        cloud.clock.sleep(0.2)
        cloud.settle()
