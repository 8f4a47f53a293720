"""An instance in a local cloud, as users and operators see it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

import lakebed
from lakebed.bootstrap.aws import AwsApp
from lakebed.lake import Lake
from lakebed.model.schema import Schema
from lakebed.table import Table
from localcloud.cloud import LocalCloud

INSTANCE = "local"
SOURCES = "s3://landing/files"
"""Where files of users lie."""
SCHEMA: Schema = lakebed.schema_of(
    row_keys={"id": "string"}, sort_keys={"at": "int64"}, values={"text": "string?"}
)
SMALL_LEAVES = {"leaf_rows_max": 100}


class RunningInstance:
    """cloud: where it runs. cache: for states of tables that its users see."""

    def __init__(self, cloud: LocalCloud, cache: Path) -> None:
        self.cloud = cloud
        self._cache = cache

    @contextmanager
    def led_here(self) -> Iterator[None]:
        """Until the block ends, what this process asks of AWS goes to the cloud."""
        with patch.dict(
            os.environ, {**self.cloud.environment(), "LAKEBED_CACHE": str(self._cache)}
        ):
            yield

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """A user's view, in the cloud's time."""
        with Lake(AwsApp(INSTANCE, clock=self.cloud.clock)) as lake:
            yield lake

    def forget(self) -> None:
        """Leave nothing to the next test: no tables, no messages, no faults."""
        with self.led_here(), self.lake() as lake:
            for name in lake.tables():
                lake.drop_table(name)
        self.cloud.faults.dies_before_delete = lambda *_: False
        self.cloud.faults.delivers_twice = lambda *_: False
        self.cloud.failures.clear()
        sqs = self.cloud.client("sqs")
        for name in self.cloud.queues():
            sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])


def rows(count: int, *, seed: int = 0) -> pa.Table:
    """Return rows in no order; other seeds give other rows."""
    numbers = [(number * 7_919 + seed * 13) % 100_003 for number in range(count)]
    return pa.table(
        {
            "id": pa.array([f"k{number:06}" for number in numbers]),
            "at": pa.array([seed] * count, pa.int64()),
            "text": pa.array([f"row {number} of {seed}" for number in numbers]),
        }
    )


def same_rows(table: Table, *ingested: pa.Table) -> bool:
    """Whether a table holds what was ingested, each row as often as it came."""
    order = [("id", "ascending"), ("at", "ascending")]
    wanted = pa.concat_tables(ingested).sort_by(order)
    found = pa.Table.from_batches(list(table.query())).sort_by(order)
    return bool(found.select(wanted.column_names).cast(wanted.schema).equals(wanted))
