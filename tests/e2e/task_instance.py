"""An instance for tests that run tasks by hand: a bucket, tables and queues on a server of tests. A
test module imports the fixtures `instance` and `ministack`."""

import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.config.dynamo_tables import (
    BATCHES_TABLE,
    LOG_TABLE,
    REGISTRY_TABLE,
    TRACKER_TABLE,
)
from lakebed.config.environments import IngestTaskEnvironment
from tests.servers.fixtures import ministack  # noqa: F401 - it is a fixture
from tests.servers.s3 import BUCKET, S3Server
from tests.servers.sqs import make_queue

SECONDS_MAX = 90


@dataclass(frozen=True)
class TaskInstance:
    """environment: what a stack would tell a task of it."""

    server: S3Server
    environment: IngestTaskEnvironment

    def put(self, folder: str, rows: pa.Table) -> str:
        """Put a Parquet file where users may. Returns the folder's URL."""
        buffer = io.BytesIO()
        pq.write_table(rows, buffer)
        return self.put_bytes(folder, "rows.parquet", buffer.getvalue())

    def put_bytes(self, folder: str, name: str, content: bytes) -> str:
        """Put a file where users may. Returns the folder's URL."""
        key = f"{self.environment.objects_prefix}/landing/{folder}/{name}"
        with closing(self.server.clients()) as clients:
            clients.s3.put_object(Bucket=BUCKET, Key=key, Body=content)
        return f"{self.environment.sources}/{folder}/"

    def send(self, messages: Sequence[dict[str, object]]) -> None:
        """Send messages for ingest, each in a group of its own."""
        with closing(self.server.clients()) as clients:
            for number, message in enumerate(messages):
                clients.sqs.send_message(
                    QueueUrl=self.environment.ingest_queue_url,
                    MessageBody=json.dumps(message),
                    MessageGroupId=f"group-{number}",
                    MessageDeduplicationId=f"once-{number}",
                )


@pytest.fixture
def instance(
    ministack: S3Server,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> TaskInstance:
    """An instance to which the variables AWS_... of this test lead."""
    for name, value in ministack.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    prefix = ministack.new_prefix()
    with closing(ministack.clients()) as clients:
        urls = {
            f"{kind}_queue_url": make_queue(clients, f"{prefix}-{kind}", receives_max=3)
            for kind in ("compaction", "commits", "ingest")
        }
    environment = IngestTaskEnvironment(
        instance="tasks",
        table_metrics="false",
        task_vcpus="2",
        task_memory_mib="4096",
        bucket=BUCKET,
        objects_prefix=prefix,
        log_table=ministack.new_table(LOG_TABLE),
        registry_table=ministack.new_table(REGISTRY_TABLE),
        tracker_table=ministack.new_table(TRACKER_TABLE),
        batches_table=ministack.new_table(BATCHES_TABLE),
        sources=f"s3://{BUCKET}/{prefix}/landing",
        **urls,
    )
    return TaskInstance(ministack, environment)


def until(what: str, is_so: Callable[[], bool], seconds_max: int = SECONDS_MAX) -> None:
    end = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.3)
