"""What schedules do to a table that is written to: compacted, and rid of its garbage."""

import pytest

from lakebed.config.job_queues import COMPACTION_JOBS
from tests.cloud.instance import INSTANCE, RunningInstance
from tests.cloud.operators import keys_in_bucket
from tests.dsl.table_rows import SCHEMA, rows, same_rows

pytestmark = pytest.mark.timeout(600)
"""The first test also waits for the synthesis, and for the packages of bundles."""

CREATION, GARBAGE, SNAPSHOTS = (
    f"lakebed-{INSTANCE}-{kind}" for kind in ("compaction-creation", "garbage", "snapshots")
)
JOBS = f"lakebed-{INSTANCE}-{COMPACTION_JOBS.kind}.fifo"
KEPT_SECONDS = 7_200


def files_in_bucket(instance: RunningInstance, table: str) -> int:
    return sum(table in key and key.endswith(".parquet") for key in keys_in_bucket(instance))


def alarms_on(instance: RunningInstance) -> set[str]:
    """The alarms that are on: some that earlier stories set off never end in the emulator, since
    nothing is counted any more."""
    return {name for name, state in instance.cloud.alarms().items() if state == "ALARM"}


def test_files_are_compacted_and_garbage_goes_after_its_delay(instance: RunningInstance) -> None:
    ingested = [rows(60, seed=seed) for seed in range(4)]
    settings = {"job_files_max": 4, "garbage_seconds_min": KEPT_SECONDS}
    with instance.lake() as lake:
        worn = lake.create_table("worn", SCHEMA, settings=settings)
        for part in ingested:
            worn.ingest(part)
        instance.cloud.fire(CREATION)
        assert instance.cloud.queues()[JOBS]["visible"] >= 1
        assert lake.run(["worn"]).jobs_done >= 1
        id_ = worn._opened.id
        assert files_in_bucket(instance, id_) == 5
        instance.cloud.advance(60, schedules=False)
        instance.cloud.fire(GARBAGE)
        assert files_in_bucket(instance, id_) == 5
        instance.cloud.advance(KEPT_SECONDS + 600, schedules=False)
        instance.cloud.fire(GARBAGE)
        assert files_in_bucket(instance, id_) == 1
        assert same_rows(worn, *ingested)
        assert not instance.cloud.failures


@pytest.mark.slow
def test_schedules_leave_an_idle_instance_alone_for_an_hour(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        lake.create_table("quiet", SCHEMA).ingest(rows(10))
        instance.cloud.fire()
        alarmed = alarms_on(instance)
        entries = lake.table("quiet").log().entries
        instance.cloud.advance(3_600)
        assert lake.table("quiet").log().entries == entries
        assert not instance.cloud.failures
        assert alarms_on(instance) <= alarmed
