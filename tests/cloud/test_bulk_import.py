"""Bulk imports that users send: Spark is started for them, and their senders hear how they end."""

import json
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.model.names import JobId
from lakebed.ports.job_tracker import JobReport
from tests.cloud.instance import INSTANCE, SCHEMA, SOURCES, RunningInstance, rows, same_rows
from tests.spark.shell import spark_home

NAME = f"lakebed-{INSTANCE}-bulk-import"
BUCKET, _, FOLDER = SOURCES.removeprefix("s3://").partition("/")
SECONDS_MAX = 300


class Sender:
    """Puts files where they may lie, and sends messages that name them."""

    def __init__(self, instance: RunningInstance) -> None:
        self.instance = instance
        self.cloud = instance.cloud
        self._s3, self._sqs = self.cloud.client("s3"), self.cloud.client("sqs")
        self._s3.create_bucket(Bucket=BUCKET)

    def put(self, name: str, table: pa.Table) -> None:
        out = BytesIO()
        pq.write_table(table, out, row_group_size=100)
        self._s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}/{name}", Body=out.getvalue())

    def send(self, **message: object) -> None:
        """Send a message and let it be taken; what was started for it goes on."""
        url = self._sqs.get_queue_url(QueueName=f"{NAME}.fifo")["QueueUrl"]
        body = json.dumps(message)
        self._sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="one")
        self.cloud.settle()

    def finish(self) -> None:
        assert self.cloud.finish_tasks(seconds_max=SECONDS_MAX)
        self.cloud.fire(NAME)

    def dead_letters(self) -> int:
        return int(self.cloud.queues()[f"{NAME}-dead.fifo"]["visible"])

    def told(self, table: str, job: str) -> list[JobReport]:
        with self.instance.lake() as lake:
            return lake._app.tracker.history(table, JobId(job))


@pytest.fixture
def sender(instance: RunningInstance, monkeypatch: pytest.MonkeyPatch) -> Sender:
    monkeypatch.syspath_prepend(spark_home("4"))
    return Sender(instance)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_files_of_a_message_become_rows_once(sender: Sender) -> None:
    with sender.instance.lake() as lake:
        table = lake.create_table("bulk", SCHEMA, split_points=["k03", "k06"])
        given = [rows(300, seed=seed) for seed in range(3)]
        for number, some in enumerate(given):
            sender.put(f"bulk/{number}.parquet", some)
        message = {"id": "all", "table": "bulk", "files": [f"{SOURCES}/bulk/"]}
        sender.send(**message, spark_conf={"spark.executor.cores": "1"})
        sender.finish()
        assert not sender.cloud.failures
        assert same_rows(table, *given)
        assert [r.event for r in table.jobs(job="all")] == ["accepted", "started", "committed"]
