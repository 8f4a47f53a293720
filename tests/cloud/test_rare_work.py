"""What seldom happens to jobs: they fail and are done later, name folders, or make
files that are too large to be put at once."""

import json

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.config.job_queues import QUERIES
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.operators import keys_in_bucket, spoiled
from tests.cloud.users import put, send, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("no_tasks_left"),
]

NAME = f"lakebed-{INSTANCE}"
KINDS = ("ingest", "compaction", "query", "commits")
PUT_AT_ONCE_MAX = 32 << 20
LARGE_ROWS, LARGE_BYTES = 600, 1 << 15
"""Two such parts exceed that."""


def ingest(instance: RunningInstance, **message: object) -> None:
    """Send a message for ingest, in a group of its own."""
    send(instance, "ingest", json.dumps(message), message_group=str(message["id"]))


def test_work_on_a_damaged_table_fails_and_is_done_when_it_is_mended(
    instance: RunningInstance,
) -> None:
    cloud = instance.cloud
    with instance.lake() as lake:
        table = lake.create_table("damaged", SCHEMA, settings={"job_files_max": 4})
        for seed in range(4):
            table.ingest(rows(20, seed=seed))
        cloud.fire(f"{NAME}-compaction-creation")
        ingest(
            instance,
            id="file",
            table="damaged",
            files=[put(instance, "d.parquet", rows(20, seed=4))],
        )
        table.ingest(rows(20, seed=5), job="queued", queued=True)
        asked = {"id": "asked", "table": "damaged", "ranges": [{}]}
        send(instance, "query", json.dumps(asked), message_group="damaged")
        assert [waiting(instance, kind) for kind in KINDS] == [1] * len(KINDS)
        with spoiled(instance, table):
            cloud.fire(f"{NAME}-ingest-tasks", f"{NAME}-compaction-tasks")
            tasks = cloud.tasks.running
            assert len(tasks) == 2
            for task in tasks:
                said = task.log.read_text
                until(instance, "its job fails", lambda said=said: '"job_failed"' in said())
            assert [waiting(instance, kind) for kind in KINDS] == [1] * len(KINDS)
        cloud.advance(QUERIES.hidden_seconds, schedules=False)
        for kind in KINDS:
            until(instance, f"{kind} is done", lambda kind=kind: not waiting(instance, kind))
        assert same_rows(table, *(rows(20, seed=seed) for seed in range(6)))
        assert table.jobs(job="asked")[0].event == "finished"
        assert not any(waiting(instance, f"{kind}-dead") for kind in KINDS)


def test_a_folder_is_taken_in(instance: RunningInstance) -> None:
    parts = [rows(20, seed=seed) for seed in range(2)]
    with instance.lake() as lake:
        table = lake.create_table("by-folder", SCHEMA)
        for number, part in enumerate(parts):
            put(instance, f"folder/{number}.parquet", part)
        ingest(instance, id="folder", table="by-folder", files=[f"{SOURCES}/folder/"])
        instance.cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "it is done", lambda: not waiting(instance, "ingest"))
        assert same_rows(table, *parts)


def test_tasks_write_files_that_are_too_large_to_be_put_at_once(instance: RunningInstance) -> None:
    cloud, rng = instance.cloud, np.random.default_rng(7)

    def large(part: int) -> pa.Table:
        ids = [f"{part}-{number:04}" for number in range(LARGE_ROWS)]
        data = [rng.bytes(LARGE_BYTES) for _ in range(LARGE_ROWS)]
        return pa.table({"id": ids, "data": pa.array(data, pa.binary())})

    parts = [large(part) for part in range(3)]
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"data": "binary"})
    settings = {"job_files_max": 2, "compaction_strategy": "basic"}
    with instance.lake() as lake:
        table = lake.create_table("heavy", schema, settings=settings)
        table.ingest(parts[0])
        files = [put(instance, f"heavy/{number}.parquet", parts[number]) for number in (1, 2)]
        ingest(instance, id="heavy", table="heavy", files=files)
        cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "the files are in", lambda: not waiting(instance, "ingest"))
        cloud.fire(f"{NAME}-compaction-creation")
        cloud.fire(f"{NAME}-compaction-tasks")
        until(instance, "they are merged", lambda: not waiting(instance, "compaction"))
        (status,) = lake.status("heavy")
        assert (status.files, status.rows) == (1, 3 * LARGE_ROWS)
        assert status.bytes > 3 * LARGE_ROWS * LARGE_BYTES > PUT_AT_ONCE_MAX
        found = pa.Table.from_batches(list(table.query()))
        wanted = pa.concat_tables(parts)
        assert found.select(wanted.column_names).cast(wanted.schema).equals(wanted)
        assert not [key for key in keys_in_bucket(instance) if "/unfinished/" in key]
        assert not cloud.failures
