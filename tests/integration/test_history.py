"""The function that keeps the jobs of each day makes its table, and keeps each day once."""

from lakebed.backends.memory import MemoryJobTracker
from lakebed.bootstrap.functions.history_keep import history_over
from lakebed.history.job_table import JOBS_TABLE
from lakebed.model.names import JobId
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lambdas.history.handle import keep
from lambdas.shape import scheduled_handler
from tests.dsl.memory_instance import MemoryInstance, Run, once

DAY = 86_400


def rows(instance: MemoryInstance) -> int:
    with instance.lake.catalog.find(JOBS_TABLE).head.reading() as state:
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
    handler = scheduled_handler(once(history_over(instance.stores, tracker, days=30)), keep)
    handler({"time": "1"}, Run())
    assert rows(instance) == 0
    instance.clock.advance(2 * DAY)
    for time in ("2", "2", "3"):
        handler({"time": time}, Run())
    assert rows(instance) == 2
