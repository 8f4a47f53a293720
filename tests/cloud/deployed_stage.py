"""The deployed instance as a stage for stories."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lakebed.config.job_queues import TICK_QUEUES
from lakebed.ingest.submit_files import Submitted
from lakebed.lake import Lake
from lakebed.model.names import JobId
from lakebed.model.paths import manifest_path
from lakebed.table import Table
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.operators import keys_in_bucket, spoiled
from tests.cloud.users import fetched, put, send, until, waiting
from tests.dsl.stage import Work, work_until_done

NAME = f"lakebed-{INSTANCE}"
RESULTS = f"{NAME}-results-{ACCOUNT}-{REGION}"
CALLED = ("commits", "query")
"""Work whose messages call its function."""


class DeployedStage:
    """Schedules go off when a story asks for work; what is deployed does the rest."""

    def __init__(self, instance: RunningInstance, lake: Lake) -> None:
        self.lake = lake
        self._instance = instance
        self._kills = 0
        self._is_damaged = False

    def put(self, name: str, rows: pa.Table) -> str:
        return put(self._instance, name, rows)

    def submit(self, table: Table, names: Sequence[str]) -> Submitted:
        return table.submit(names)

    def send(self, queue: str, message: Mapping[str, object]) -> None:
        send(self._instance, queue, json.dumps(message), message_group=str(message["id"]))

    def work(self, *kinds: Work) -> None:
        for kind in kinds:
            if kind == "ingest":
                self._run_tasks("ingest")
            elif kind in CALLED:
                self._instance.cloud.settle()
            elif kind == "compaction":
                work_until_done(self._create_jobs, lambda: self._run_tasks("compaction"))
            else:
                self._instance.cloud.fire(f"{NAME}-{kind}")
        failures = self._instance.cloud.failures
        assert len(failures) == self._kills or self._is_damaged, list(failures)
        failures.clear()
        self._kills = 0

    def advance(self, seconds: float) -> None:
        self._instance.cloud.advance(seconds, schedules=False)

    def waiting(self, queue: str) -> int:
        return waiting(self._instance, queue)

    def lose_messages(self, queue: str) -> None:
        sqs, name = self._instance.cloud.client("sqs"), f"{NAME}-{queue}.fifo"
        sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])

    def give_up_messages(self, queue: str) -> None:
        sqs = self._instance.cloud.client("sqs")
        url, dead = (
            sqs.get_queue_url(QueueName=f"{NAME}-{name}.fifo")["QueueUrl"]
            for name in (queue, f"{queue}-dead")
        )
        while found := sqs.receive_message(QueueUrl=url).get("Messages"):
            for message in found:
                sqs.send_message(
                    QueueUrl=dead,
                    MessageBody=message["Body"],
                    MessageGroupId="g",
                    MessageDeduplicationId=message["MessageId"],
                )
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def kill_next(self, work: Work) -> None:
        self._kills = 1
        kills = iter([True])
        handle = f"{NAME}-{work}-handle"  # schedules go on, and call others
        faults = self._instance.cloud.faults
        faults.dies_before_delete = lambda function, _: function == handle and next(kills, False)

    def deliver_twice(self) -> None:
        self._instance.cloud.faults.delivers_twice = lambda *_: True

    def fire_schedule(self, work: Work, at: str) -> None:
        assert self._instance.cloud.invoke(f"{NAME}-{work}-trigger", {"time": at}).error is None

    def redeliver(self, work: Work) -> None:
        (shape,) = (shape for shape in TICK_QUEUES if shape.kind == work)
        self.advance(shape.hidden_seconds)

    @contextmanager
    def damaged(self, table: Table) -> Iterator[None]:
        with spoiled(self._instance, table):
            self._is_damaged = True
            yield
        self._is_damaged = False
        self._instance.cloud.failures.clear()

    def result(self, table: Table, job: str) -> pa.Table:
        path = manifest_path(table._opened.id, JobId(job))
        return fetched(self._instance, f"s3://{RESULTS}/objects/{path}")

    def stored_files(self, table: Table) -> int:
        files = f"tables/{table._opened.id}/files/"
        return len(keys_in_bucket(self._instance, under=files))

    def _create_jobs(self) -> int:
        self._instance.cloud.fire(f"{NAME}-compaction-creation")
        return self.waiting("compaction")

    def _run_tasks(self, kind: str) -> None:
        self._instance.cloud.fire(f"{NAME}-{kind}-tasks")
        until(self._instance, f"{kind} is done", lambda: not self.waiting(kind))
