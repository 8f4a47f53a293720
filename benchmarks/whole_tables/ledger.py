"""The ledger of usage: what counting costs, how exact it is, and what a billion rows cost by it.

Rows are taken in, merged and read in a directory. What was counted there is priced as if objects
lay in S3, logs in DynamoDB, and tasks computed for seven tenths of their life. How exact the ledger
is shows a story in the local cloud, whose emulator counts requests by role.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import lakebed
from benchmarks.figures import Figure, table
from benchmarks.shapes import shapes_named
from lakebed.backends.system.clock import SystemClock
from lakebed.costs.amounts import Amounts
from lakebed.costs.prices import packaged_prices
from lakebed.costs.spent import MERGING, READING, TAKING_IN
from lakebed.costs.usage_amounts import HOUR
from lakebed.costs.work_costs import BUSY, TASK_GB_PER_VCPU
from lakebed.lake import Lake
from lakebed.observe import usage
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.deployed_stage import DeployedStage
from tests.cloud.instance import FEED_SETTINGS, INSTANCE, SOURCES, RunningInstance
from tests.cloud.ledger.exact_ledger import (
    kept_requests,
    ledger_writes,
    nothing_kept_here,
    seen_requests,
)
from tests.cloud.users import stop_tasks
from tests.dsl.lake_story import LakeStory
from tests.dsl.table_rows import rows

ROOT = Path(__file__).parents[2]
COUNTS, THREADS = 200_000, 8
JOBS, JOB_ROWS = 12, 500_000
KINDS = {
    "ingest": (TAKING_IN, "rows_in"),
    "merge": (MERGING, "rows_merged"),
    "read": (READING, "rows_read"),
}


def run() -> list[Figure]:
    """Measure it; takes two minutes."""
    return [*_counting(), *_billions(), *_truth()]


def _counting() -> list[Figure]:
    """Return what one count costs: alone, and while eight threads count for the same work."""

    def count() -> None:
        for _ in range(COUNTS):
            usage.count("s3_get")

    begun = time.perf_counter()
    with usage.work("query", "t"):
        count()
    alone = (time.perf_counter() - begun) / COUNTS
    with usage.work("query", "t"):
        threads = [threading.Thread(target=usage.carried(count)) for _ in range(THREADS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = (time.perf_counter() - begun) / COUNTS / THREADS
    return [
        Figure("ledger.count_ns", alone * 1e9, "ns", 2_000),
        Figure("ledger.count_ns_of_8_threads", together * 1e9, "ns", 2_000),
    ]


def _billions() -> list[Figure]:
    """Return dollars for a billion rows of the shape `sleeper`, by what was counted."""
    (shape,) = shapes_named(["sleeper"])
    with (
        tempfile.TemporaryDirectory(prefix="lakebed-ledger-") as folder,
        lakebed.connect(folder) as lake,
    ):
        rows_ = lake.create_table("rows", shape.schema)
        for job in range(JOBS):
            rows_.ingest(shape.rows(job + 1, JOB_ROWS))
        lake.run()
        for _ in rows_.query():
            pass
        report = lake.costs("rows")
    figures = []
    for name, (kinds, counter) in KINDS.items():
        lines = [line.counts for line in report.lines if line.name in kinds]
        dollars = sum(as_if_deployed(counts).dollars(packaged_prices()) for counts in lines)
        count = sum(counts.get(counter, 0.0) for counts in lines)
        figures.append(Figure(f"cost.per_billion_rows.{name}", dollars / count * 1e9, "$"))
    return figures


def as_if_deployed(counts: Mapping[str, float]) -> Amounts:
    """Return what work in a directory would be of what Amazon charges for: an object is a request,
    a transaction of SQLite two units, a second of processor a vCPU for as long as tasks take."""
    hours = counts.get("processor_seconds", 0.0) / BUSY / HOUR
    return Amounts(
        s3_get=counts.get("local_get", 0.0),
        s3_put=counts.get("local_put", 0.0) + counts.get("local_list", 0.0),
        dynamodb_write_unit=2 * counts.get("local_writes", 0.0),
        dynamodb_read_unit=counts.get("local_reads", 0.0),
        fargate_vcpu_hour=hours,
        fargate_gb_hour=hours * TASK_GB_PER_VCPU,
        address_hour=hours,
    )


def _truth() -> list[Figure]:
    """Return by how many requests ledger and emulator differ after a story, and how many requests
    of the ledger's there were for each unit of work."""
    settings = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        synthesize(ROOT, folder / "assembly", settings | FEED_SETTINGS)
        with LocalCloud(folder / "assembly", folder / "cloud", clock=SystemClock()) as cloud:
            instance = RunningInstance(cloud, folder / "cache")
            with nothing_kept_here(), instance.led_here(), instance.lake() as lake:
                _story(LakeStory(DeployedStage(instance, lake)))
                stop_tasks(instance)
                seen, kept = seen_requests(instance), kept_requests(lake)
                units = kept["lambda_runs"] + _jobs(lake)
                writes = ledger_writes(instance)
    difference = sum(abs(count - kept.get(counter, 0.0)) for counter, count in seen.items())
    return [
        Figure("ledger.difference", difference, "requests", 0),
        Figure("ledger.extra_requests_per_unit", writes / units, "requests", 1),
    ]


def _story(story: LakeStory) -> None:
    story.given_table("t", job_files_max=3, compaction_strategy="basic", leaf_rows_max=150)
    story.when_files_are_sent("t", rows(60), rows(60, seed=1), job="sent")
    story.when_files_are_sent("t", rows(60, seed=2), job="sent again")
    story.when_messages_are_ingested()
    story.when_ingest_is_queued("t", rows(60, seed=3), job="queued")
    story.when_queued_commits_are_made()
    story.when_compacted()
    story.when_split()
    story.when_garbage_is_collected()
    story.then_queries_match("t")


def _jobs(lake: Lake) -> int:
    """Return how many jobs tasks did, and tasks: each keeps in the end what no job caused."""
    return sum(1 + task.jobs for task in lake.tasks())


if __name__ == "__main__":
    print(table(run()))
