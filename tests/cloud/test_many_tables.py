"""One instance, many tables: all that users and schedules do, from files to answers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.system.clock import SystemClock
from lakebed.lake import Lake
from localcloud.cloud import LocalCloud
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.users import fetched, put, send, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

NAME = f"lakebed-{INSTANCE}"
KEPT_SECONDS = 3_600
PARTS = 3
"""Messages for each table, a file each."""
SETTINGS = {
    "leaf_rows_max": 150,
    "compaction_strategy": "basic",
    "job_files_max": PARTS,
    "garbage_seconds_min": KEPT_SECONDS,
}
QUEUES = ("ingest", "compaction", "splitting", "compaction-creation", "garbage", "query")


@pytest.fixture
def instance(assembly: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningInstance]:
    """One for each test: all that lies there is counted, and no alarm may be on."""
    folder = tmp_path_factory.mktemp("many")
    with LocalCloud(assembly, folder, clock=SystemClock()) as cloud:
        own = RunningInstance(cloud, folder / "cache")
        with own.led_here():
            yield own


class Tables:
    """So many tables, each with rows of its own."""

    def __init__(self, instance: RunningInstance, lake: Lake, count: int) -> None:
        self.names = [f"table{number:03}" for number in range(count)]
        self.instance = instance
        self.lake = lake
        for name in self.names:
            lake.create_table(name, SCHEMA, settings=SETTINGS)

    def part(self, name: str, part: int) -> pa.Table:
        return rows(100, seed=int(name[-3:]) * PARTS + part)

    def whole(self, name: str) -> list[pa.Table]:
        return [self.part(name, part) for part in range(PARTS)]

    def send_files(self) -> None:
        for part in range(PARTS):
            for name in self.names:
                url = put(self.instance, f"{name}/{part}.parquet", self.part(name, part))
                message = {"id": f"{name}-{part}", "table": name, "files": [url]}
                send(self.instance, "ingest", json.dumps(message), message_group=f"{name}-{part}")

    def unlike_their_input(self) -> list[str]:
        tables = ((name, self.lake.table(name)) for name in self.names)
        return [name for name, table in tables if not same_rows(table, *self.whole(name))]

    def leaves(self) -> list[int]:
        return [table.leaves for table in self.lake.status()]

    def files(self) -> list[int]:
        return [table.files for table in self.lake.status()]

    def files_in_a_leaf_max(self) -> int:
        return max(node.files for table in self.lake.status() for node in table.nodes)

    def objects(self) -> int:
        """How many files of rows are in the bucket, referred to or not."""
        bucket = f"{NAME}-data-{ACCOUNT}-{REGION}"
        pages = self.instance.cloud.client("s3").get_paginator("list_objects_v2")
        keys = [o["Key"] for page in pages.paginate(Bucket=bucket) for o in page["Contents"]]
        return sum(key.endswith(".parquet") for key in keys)


@pytest.mark.parametrize("count", [20, 200])
def test_all_tables_are_filled_split_compacted_collected_and_answer(
    instance: RunningInstance, count: int
) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        tables = Tables(instance, lake, count)

        tables.send_files()
        cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "all files are rows", lambda: not waiting(instance, "ingest"))
        assert tables.unlike_their_input() == []
        assert cloud.finish_tasks(seconds_max=600)

        cloud.fire(f"{NAME}-splitting")
        assert min(tables.leaves()) > 1

        for _ in range(2):
            cloud.fire(f"{NAME}-compaction-creation")
            cloud.fire(f"{NAME}-compaction-tasks")
            until(instance, "all jobs are done", lambda: not waiting(instance, "compaction"))
            assert cloud.finish_tasks(seconds_max=600)
        assert tables.files_in_a_leaf_max() < PARTS
        assert tables.unlike_their_input() == []

        assert tables.objects() > sum(tables.files())
        cloud.advance(KEPT_SECONDS + 600, schedules=False)
        cloud.fire(f"{NAME}-garbage")
        assert tables.objects() == sum(tables.files())

        for name in tables.names:
            message = {"id": f"all-{name}", "table": name, "ranges": [{}]}
            send(instance, "query", json.dumps(message), message_group=name)
        cloud.settle()
        assert waiting(instance, "query") == 0
        for name in tables.names:
            answer = cloud.invoke(
                f"{NAME}-query-answer", {"id": f"all-{name}", "table": name, "ranges": [{}]}
            ).value
            wanted = pa.concat_tables(tables.whole(name)).sort_by(
                [("id", "ascending"), ("at", "ascending")]
            )
            found = fetched(instance, answer["manifest"])
            assert found.select(wanted.column_names).cast(wanted.schema).equals(wanted)
        for kind in (
            "ingest",
            "compaction",
            "splitting",
            "compaction-creation",
            "garbage",
            "query",
        ):
            assert waiting(instance, f"{kind}-dead") == 0
        assert not cloud.failures
        assert "ALARM" not in cloud.alarms().values()
