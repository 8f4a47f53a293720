"""The function that keeps jobs and usage of each day makes its tables, and keeps each day once."""

from lakebed.backends.memory import MemoryJobTracker, MemoryUsageLedger
from lakebed.bootstrap.functions.history_keep import history_over
from lakebed.history.job_table import JOBS_TABLE
from lakebed.history.usage_table import USAGE_TABLE
from lakebed.model.names import JobId
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of
from lambdas.history.handle import keep
from lambdas.shape import scheduled_handler
from tests.dsl.memory_instance import MemoryInstance, Run, once

DAY = 86_400


def rows(instance: MemoryInstance, table: str) -> int:
    with instance.lake.catalog.find(table).head.reading() as state:
        return sum(leaf.rows for leaf in state.leaf_figures())


def test_each_day_is_kept_once_however_often_the_schedule_goes_off(
    instance: MemoryInstance,
) -> None:
    instance.given_table("trips")
    tracker = MemoryJobTracker()
    table = instance.lake.catalog.find("trips").id
    for where, job in ((table, "monday"), (NO_TABLE, "lost")):
        tracker.report(
            JobReport(
                table=where, job=JobId(job), kind="ingest", event="failed", at=instance.clock.now()
            )
        )
    ledger = MemoryUsageLedger()
    hour = hour_of(instance.clock.now())
    ledger.add(LedgerEntry(table=table, hour=hour, kind="ingest", counts={"s3_get": 1}))
    history = history_over(instance.stores, tracker, ledger, days=30)
    handler = scheduled_handler(once(history), keep)
    handler({"time": "1"}, Run())
    assert (rows(instance, JOBS_TABLE), rows(instance, USAGE_TABLE)) == (0, 0)
    instance.clock.advance(2 * DAY)
    for time in ("2", "2", "3"):
        handler({"time": time}, Run())
    assert (rows(instance, JOBS_TABLE), rows(instance, USAGE_TABLE)) == (2, 1)
