"""Entries too large for the log's own items, logs that were emptied behind who knew them, and logs
of tables that nobody ever named: by who makes them and by who meets them, in their own roles."""

import json
import random
import string

import pyarrow as pa
import pytest

from lakebed.model.jobs import CompactionMessage, encode_message
from lakebed.model.names import JobId
from lakebed.table import Table
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.operators import keys_in_bucket
from tests.cloud.users import put, send, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("no_tasks_left"),
]

NAME = f"lakebed-{INSTANCE}"
KINDS = ("ingest", "compaction")
TICKS = ("splitting", "compaction-creation", "garbage", "sweep", "snapshots")
NAMELESS_SECONDS = 49 * 3_600
LETTERS = string.ascii_letters + string.digits


def texts(count: int, characters: int, *, seed: int) -> list[str]:
    """Return texts that do not shrink, ascending."""
    rng = random.Random(seed)
    return sorted("".join(rng.choices(LETTERS, k=characters)) for _ in range(count))


def rows_of(ids: list[str]) -> pa.Table:
    return pa.table({"id": ids, "at": pa.array([0] * len(ids), pa.int64()), "text": ids})


def bodies(instance: RunningInstance, table: Table) -> int:
    """How many entries of a table have their body beside the log."""
    return len(keys_in_bucket(instance, f"logs/{table._opened.id}/"))


def test_rows_for_thousands_of_leaves_are_committed(instance: RunningInstance) -> None:
    """Their commit is too large for a message, and its entry for the log."""
    cloud = instance.cloud
    one, other = (rows_of(texts(30_000, 40, seed=seed)) for seed in (1, 2))
    with instance.lake() as lake:
        table = lake.create_table("broad", SCHEMA, split_points=texts(8_000, 200, seed=0))
        assert bodies(instance, table) == 1
        table.ingest(one, job="one", queued=True)
        commits = f"tables/{table._opened.id}/commits/"
        assert len(keys_in_bucket(instance, commits)) == 1
        cloud.settle()
        assert not cloud.failures
        assert waiting(instance, "commits") == 0
        assert not keys_in_bucket(instance, commits)
        assert bodies(instance, table) == 2
        message = {
            "id": "other",
            "table": "broad",
            "files": [put(instance, "broad/a.parquet", other)],
        }
        send(instance, "ingest", json.dumps(message), message_group="broad")
        cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "the other is in", lambda: not waiting(instance, "ingest"))
        assert bodies(instance, table) == 3
        assert lake.status("broad")[0].rows == len(one) + len(other)
        for part in (one, other):
            wanted = part.slice(len(part) // 2, 1)
            found = table.query(keys=wanted["id"].to_pylist()).read_all()
            assert found.select(wanted.column_names).cast(wanted.schema).equals(wanted)


def test_a_leaf_is_split_at_many_long_keys(instance: RunningInstance) -> None:
    ingested = rows_of(texts(130, 1_000, seed=3))
    with instance.lake() as lake:
        table = lake.create_table("long-keys", SCHEMA, settings={"leaf_rows_max": 2})
        table.ingest(ingested)
        instance.cloud.fire(f"{NAME}-splitting")
        assert not instance.cloud.failures
        assert lake.status("long-keys")[0].leaves == 64
        assert bodies(instance, table) == 1
        assert same_rows(table, ingested)


def test_who_knew_a_table_meets_it_again_when_its_log_was_emptied(
    instance: RunningInstance,
) -> None:
    """All functions and tasks that open tables keep what they know; then they need a snapshot."""

    def points(seed: int) -> list[str]:
        return texts(1_700, 1_000, seed=seed)

    with instance.lake() as lake:
        table = lake.create_table("away", SCHEMA, split_points=points(0))
        functions_meet(instance, table, "before")
        tasks_meet(instance, table, "before")
        for seed in (1, 2, 3):
            table.clear(split_points=points(seed))
            instance.cloud.fire(f"{NAME}-snapshots")
        assert bodies(instance, table) == 2
        tasks_meet(instance, table, "after")
        functions_meet(instance, table, "after")
        assert same_rows(table, rows(20, seed=1), rows(20, seed=2))
        assert not instance.cloud.failures


def functions_meet(instance: RunningInstance, table: Table, when: str) -> None:
    """Let each function that opens tables open this one."""
    cloud = instance.cloud
    table.ingest(rows(20, seed=1), job=f"queued {when}", queued=True)
    asked = {"id": f"kept {when}", "table": table.name, "ranges": [{}]}
    send(instance, "query", json.dumps(asked), message_group="away")
    elsewhere = {"id": f"import {when}", "table": table.name, "files": ["s3://elsewhere/file"]}
    send(instance, "bulk-import", json.dumps(elsewhere), message_group="away")
    send_ended_job(instance, table, "compaction-dead", when)
    cloud.settle()
    cloud.fire(*(f"{NAME}-{tick}" for tick in TICKS), f"{NAME}-dead-letters")
    found = cloud.invoke(f"{NAME}-query-answer", {"table": table.name, "ranges": [{}]})
    assert found.error is None
    assert found.value["rows"] >= 20
    assert table.jobs(job=f"kept {when}")[0].event == "finished"
    assert table.jobs(job=f"import {when}")[0].event == "rejected"
    assert waiting(instance, "compaction-dead") == 0


def send_ended_job(instance: RunningInstance, table: Table, queue: str, when: str) -> None:
    """Let the message of a compaction job come once more that has ended."""
    sqs = instance.cloud.client("sqs")
    sqs.send_message(
        QueueUrl=sqs.get_queue_url(QueueName=f"{NAME}-{queue}.fifo")["QueueUrl"],
        MessageBody=encode_message(CompactionMessage(table._opened.id, JobId("ended"))).decode(),
        MessageGroupId=when,
        MessageDeduplicationId=f"{table._opened.id}/{when}",
    )


def tasks_meet(instance: RunningInstance, table: Table, when: str) -> None:
    """Let a task of each kind open this table; the second time those that still wait for work."""
    file = put(instance, f"away/{when}.parquet", rows(20, seed=2))
    message = {"id": f"sent {when}", "table": table.name, "files": [file]}
    send(instance, "ingest", json.dumps(message), message_group=table.name)
    send_ended_job(instance, table, "compaction", when)
    if len(instance.cloud.tasks.running) < len(KINDS):
        instance.cloud.fire(*(f"{NAME}-{kind}-tasks" for kind in KINDS))
    for kind in KINDS:
        until(instance, f"{kind} {when}", lambda kind=kind: not waiting(instance, kind))


def test_a_table_whose_maker_died_before_it_had_a_name_is_swept(
    instance: RunningInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what a worker puts that does not know yet that its table was dropped."""
    cloud = instance.cloud

    class Died(BaseException): ...

    def die(*_: object, **__: object) -> None:
        raise Died

    before = set(keys_in_bucket(instance))
    with instance.lake() as lake:
        dropped = lake.create_table("dropped-early", SCHEMA)
        dropped.ingest(rows(10))
        (file,) = keys_in_bucket(instance, f"tables/{dropped._opened.id}/files/")
        lake.drop_table("dropped-early")
        monkeypatch.setattr(lake._app.catalog._registry, "claim", die)
        with pytest.raises(Died):
            lake.create_table("nobody", SCHEMA, split_points=texts(1_000, 100, seed=4))
        assert "nobody" not in lake.tables()
    late = {"Bucket": f"{NAME}-data-{ACCOUNT}-{REGION}", "Key": f"{file}.late"}
    cloud.client("s3").put_object(**late, Body=b"of a worker that was away")
    assert len(set(keys_in_bucket(instance)) - before) == 2
    cloud.fire(f"{NAME}-sweep-nameless")
    assert len(set(keys_in_bucket(instance)) - before) == 1, "it may get its name yet"
    for _ in ("what was done before the leap is as young as the leap", "and grows old from there"):
        cloud.advance(NAMELESS_SECONDS, schedules=False)
        cloud.fire(f"{NAME}-sweep-nameless")  # tells the idle log that days have passed
        cloud.advance(3_600, schedules=False)
        cloud.fire(f"{NAME}-sweep-nameless")  # an hour later they are believed (H35)
    assert not cloud.failures
    assert not set(keys_in_bucket(instance)) - before
