"""Garbage, sweeps and snapshots: each function under its own role, on real tables."""

import random
import string

import pytest

from lakebed.backends.aws.object_store import S3ObjectStore
from lakebed.lake import Lake
from lakebed.model.paths import snapshots_prefix
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

NAME = f"lakebed-{INSTANCE}"


def objects(lake: Lake) -> S3ObjectStore:
    found = lake._app.objects
    assert isinstance(found, S3ObjectStore)
    return found


def test_what_nothing_refers_to_is_deleted(instance: RunningInstance) -> None:
    settings = {"garbage_seconds_min": 60, "pending_seconds_max": 0}
    with instance.lake() as lake:
        table = lake.create_table("garbage", SCHEMA, settings=settings)
        table.ingest(rows(20))
        store, prefix = objects(lake), f"tables/{table._opened.id}/files/"
        (file,) = store.list(prefix)
        left = prefix + "00" * 16 + ".parquet"
        writer = store.create(left)
        writer.write(b"left by a worker that died")
        writer.finish()
        table.clear()
        instance.cloud.advance(300, schedules=False)
        instance.cloud.fire(f"{NAME}-garbage")
        assert not instance.cloud.failures
        assert file not in set(store.list(prefix))
        table.ingest(rows(20))
        instance.cloud.advance(300, schedules=False)
        instance.cloud.fire(f"{NAME}-sweep", f"{NAME}-sweep-nameless")
        assert not instance.cloud.failures
        assert left not in set(store.list(prefix))
        assert same_rows(table, rows(20))


def test_long_logs_become_snapshots_and_are_emptied(instance: RunningInstance) -> None:
    rng = random.Random(7)

    def points() -> list[str]:
        made = ("".join(rng.choices(string.printable[:94], k=100)) for _ in range(14_000))
        return sorted(made)

    with instance.lake() as lake:
        table = lake.create_table("long", SCHEMA, split_points=points())
        store, prefix = objects(lake), snapshots_prefix(table._opened.id)
        for kept in (1, 2, 2):
            instance.cloud.fire(f"{NAME}-snapshots")
            assert not instance.cloud.failures
            assert len(list(store.list(prefix))) == kept
            table.clear(split_points=points())
        bodies = list(store.list(f"logs/{table._opened.id}/"))
        assert len(bodies) == 3  # of four entries
