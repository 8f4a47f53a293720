"""Bulk imports that users send: Spark is started for them, and their senders hear how they end."""

import json
import os
import signal
import time
from contextlib import suppress
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cloud.instance import INSTANCE, SCHEMA, SOURCES, RunningInstance, rows, same_rows
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NAME = f"lakebed-{INSTANCE}-bulk-import"
BUCKET, _, FOLDER = SOURCES.removeprefix("s3://").partition("/")
SECONDS_MAX = 300


class Sender:
    """Puts files where they may lie, and sends messages that name them."""

    def __init__(self, instance: RunningInstance) -> None:
        self.instance = instance
        self.cloud = instance.cloud
        self._s3, self._sqs = self.cloud.client("s3"), self.cloud.client("sqs")
        with suppress(self._s3.exceptions.BucketAlreadyOwnedByYou):
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

    def told(self, table: str, job: str) -> list[str]:
        with self.instance.lake() as lake:
            return [report.event for report in lake.table(table).jobs(job=job)]

    def wait_until_told(self, table: str, job: str, event: str) -> None:
        end = time.monotonic() + SECONDS_MAX
        while event not in self.told(table, job):
            assert time.monotonic() < end, f"nobody tells that it is {event}"
            time.sleep(0.2)


@pytest.fixture
def sender(instance: RunningInstance, monkeypatch: pytest.MonkeyPatch) -> Sender:
    monkeypatch.syspath_prepend(spark_home("4"))
    return Sender(instance)


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
        assert sender.told("bulk", "all") == ["accepted", "started", "committed"]
        sender.send(**message)  # under the same id, as another text
        sender.finish()
        assert same_rows(table, *given)
        assert sender.told("bulk", "all")[3:] == ["accepted", "committed"]
        assert sender.dead_letters() == 0


def test_what_can_never_work_is_refused_where_its_sender_looks(sender: Sender) -> None:
    with sender.instance.lake() as lake:
        table = lake.create_table("refused", SCHEMA)
        sender.send(id="elsewhere", table="refused", files=["s3://other/file.parquet"])
        sender.send(id="conf", table="refused", files=["x"], spark_conf={"spark.jars": "s3://x"})
        assert sender.dead_letters() == 2
        for job, says in {"elsewhere": "s3://landing/files/", "conf": "spark_conf"}.items():
            (report,) = table.jobs(job=job)
            assert report.event == "rejected"
            assert says in report.reason
        sender.send(id="missing", table="refused", files=[f"{SOURCES}/nobody.parquet"])
        sender.finish()
        assert sender.told("refused", "missing") == ["accepted", "started", "rejected"]
        (*_, last) = table.jobs(job="missing")
        assert f"{SOURCES}/nobody.parquet" in last.reason
        assert table.query().read_all().num_rows == 0


def test_a_driver_that_is_killed_is_told_and_its_message_can_be_sent_again(
    sender: Sender,
) -> None:
    with sender.instance.lake() as lake:
        table = lake.create_table("killed", SCHEMA)
        sender.put("killed.parquet", rows(300))
        message = {"id": "j", "table": "killed", "files": [f"{SOURCES}/killed.parquet"]}
        sender.send(**message)
        sender.wait_until_told("killed", "j", "started")
        (run,) = sender.cloud.spark.running.values()
        os.killpg(run.process.pid, signal.SIGKILL)
        sender.finish()
        assert sender.told("killed", "j") == ["accepted", "started", "failed"]
        (*_, last) = table.jobs(job="j")
        assert "exit code -9" in last.reason
        assert table.query().read_all().num_rows == 0
        assert sender.cloud.alarms()[f"lakebed-{INSTANCE}-bulk-imports-failed"] == "ALARM"
        sender.cloud.advance(301, schedules=False)  # the same text, swallowed until then
        sender.send(**message)
        sender.finish()
        assert sender.told("killed", "j")[3:] == ["accepted", "started", "committed"]
        assert same_rows(table, rows(300))
