"""The deployed instance as a stage for stories."""

import json
from collections.abc import Mapping

import pyarrow as pa

from lakebed.lake import Lake
from lakebed.table import Table
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.operators import keys_in_bucket
from tests.cloud.users import put, send, until, waiting
from tests.dsl.stage import Work, work_until_done

NAME = f"lakebed-{INSTANCE}"


class DeployedStage:
    """Schedules go off when a story asks for work; what is deployed does the rest."""

    def __init__(self, instance: RunningInstance, lake: Lake) -> None:
        self.lake = lake
        self._instance = instance

    def put(self, name: str, rows: pa.Table) -> str:
        return put(self._instance, name, rows)

    def send(self, queue: str, message: Mapping[str, object]) -> None:
        send(self._instance, queue, json.dumps(message), group=str(message["id"]))

    def work(self, *kinds: Work) -> None:
        for kind in kinds:
            if kind == "ingest":
                self._run_tasks("ingest")
            elif kind == "commits":
                self._instance.cloud.settle()  # messages of the queue call its function
            elif kind == "compaction":
                work_until_done(self._create_jobs, lambda: self._run_tasks("compaction"))
            else:
                self._instance.cloud.fire(f"{NAME}-{kind}")
        assert not self._instance.cloud.failures

    def advance(self, seconds: float) -> None:
        self._instance.cloud.advance(seconds, schedules=False)

    def waiting(self, queue: str) -> int:
        return waiting(self._instance, queue)

    def stored_files(self, table: Table) -> int:
        files = f"tables/{table._opened.id}/files/"
        return len(keys_in_bucket(self._instance, under=files))

    def _create_jobs(self) -> int:
        self._instance.cloud.fire(f"{NAME}-compaction-creation")
        return self.waiting("compaction")

    def _run_tasks(self, kind: str) -> None:
        self._instance.cloud.fire(f"{NAME}-{kind}-tasks")
        until(self._instance, f"{kind} is done", lambda: not self.waiting(kind))
