"""What is counted by formula is what the services do."""

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.aws.object_store import UploadSizes
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.config.instance import InstanceSettings
from lakebed.config.settings import TableSettings, table_settings
from lakebed.costs import work_costs
from lakebed.costs.compaction_work import work_to_rest
from lakebed.costs.estimate import estimate
from lakebed.costs.idle_costs import DAY, working_metrics
from lakebed.costs.measured import packaged_measures
from lakebed.costs.prices import packaged_prices
from lakebed.costs.work_costs import GB, WorkScenario, compacted_tb, ingested_tb, replaced_files
from lakebed.lake import Lake
from lakebed.observe.json_lines import JsonLines
from lakebed.observe.metrics import METRICS
from lakebed.sorted_files.reading.read_ahead import PIECE_BYTES

JOBS, ROWS = 30, 200
METRIC_NAMES = {metric.name for metric in METRICS}


@pytest.mark.parametrize(
    ("leaf_rows_max", "shared_file_rows_max"),
    [
        pytest.param(100_000, 5_000, id="one leaf"),
        pytest.param(2_000, 30, id="leaves with files of their own"),
        pytest.param(500, 10, id="many leaves, which come to share files"),
    ],
)
def test_a_real_table_has_as_many_files_and_merges_as_are_counted(
    tmp_path: Path, leaf_rows_max: int, shared_file_rows_max: int
) -> None:
    changes = {"leaf_rows_max": leaf_rows_max, "shared_file_rows_max": shared_file_rows_max}
    with lakebed.connect(tmp_path) as lake:
        schema = lakebed.schema_of(row_keys={"key": "int64"})
        table = lake.create_table("t", schema, settings=changes)
        done = 0
        for job in range(JOBS):  # keys of each job are spread as evenly as all of them
            table.ingest(pa.table({"key": pa.array(range(job, JOBS * ROWS, JOBS), pa.int64())}))
            done += lake.run().jobs_done
        (status,) = lake.status("t")
    written = len(list(tmp_path.rglob("*.parquet")))  # what was replaced is kept for readers
    counted = work_to_rest(rows=JOBS * ROWS, job_rows=ROWS, settings=table_settings(changes))
    assert status.leaves == counted.leaves
    assert done == counted.merges == counted.files_merged.total()
    assert done > 5
    assert written - done == counted.files_in.total()


def test_rows_are_rewritten_more_often_the_smaller_the_jobs_are() -> None:
    settings = TableSettings()
    works = [
        work_to_rest(rows=10**9, job_rows=job_rows, settings=settings)
        for job_rows in (10**6, 10**7, 10**8)
    ]
    rewritten = [work.rows_rewritten for work in works]
    assert rewritten == sorted(rewritten, reverse=True)
    assert len({work.leaves for work in works}) == 1


def test_parts_and_pieces_are_those_that_are_sent_and_read() -> None:
    sizes = UploadSizes()
    assert sizes.part_bytes_min == work_costs.PART_BYTES
    assert sizes.single_bytes_max == work_costs.PART_BYTES
    assert work_costs.READ_BYTES == PIECE_BYTES


def test_tasks_are_of_the_default_size() -> None:
    usual = InstanceSettings()
    assert usual.task_memory_mib / 1024 == work_costs.TASK_GB_PER_VCPU * float(usual.task_vcpus)


def test_a_tb_costs_less_than_seven_dollars_in_jobs_of_ten_gigabytes() -> None:
    costs = {one.job_gb: one for one in estimate(packaged_prices(), packaged_measures()).per_tb}
    assert costs[10].together <= 7
    assert costs[1].together > costs[10].together > costs[100].together


def test_metrics_of_tables_are_paid_for_where_they_are_kept() -> None:
    prices, measured = packaged_prices(), packaged_measures()
    without, kept = (
        estimate(prices, measured, instance=InstanceSettings(table_metrics=metrics))
        for metrics in (False, True)
    )
    extra = kept.changing_table_month - without.changing_table_month
    assert extra == pytest.approx(3 * prices.prices["metric_month"])


def test_a_lake_that_works_has_metrics_that_are_paid_for_and_none_of_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = VirtualClock()
    settings = {"job_files_max": 3, "size_ratio": 2, "leaf_rows_max": 500}
    with Lake(open_local(tmp_path, clock=clock)) as lake:
        schema = lakebed.schema_of(row_keys={"key": "int64"})
        table = lake.create_table("t", schema, settings=settings)
        for job in range(JOBS):
            table.ingest(pa.table({"key": pa.array(range(job, JOBS * ROWS, JOBS), pa.int64())}))
            lake.run()
        clock.advance(3 * DAY)
        lake.run()
    lines = [JsonLines({}).format(record) for record in caplog.records]
    found = {name for line in lines for name in METRIC_NAMES & json.loads(line).keys()}
    assert {"jobs_ingested", "compactions", "leaves_split", "files_collected"} <= found
    assert found <= {metric.name for metric in METRICS if not metric.of_trouble}


def test_each_metric_of_a_working_instance_is_counted_once() -> None:
    others, of_feeds = (working_metrics(of_feeds=feeds).metric_month for feeds in (False, True))
    of_trouble = [metric for metric in METRICS if metric.of_trouble]
    assert others + of_feeds + len(of_trouble) == len(METRICS)
    assert all(metric.of_trouble for metric in METRICS if metric.section == "errors")
    found, price = estimate(packaged_prices(), packaged_measures()), 0.30
    assert found.metrics_month == pytest.approx(others * price)
    assert found.feed_metrics_month == pytest.approx(of_feeds * price)


def test_deleted_versions_are_paid_for_until_the_midnight_after_their_days() -> None:
    prices, measured = packaged_prices(), packaged_measures()
    one, seven = (
        replaced_files(measured, WorkScenario(deleted_days=days)).dollars(prices) for days in (1, 7)
    )
    hour = 1 / 24  # is kept for readers, whatever the days
    assert seven / one == pytest.approx((7.5 + hour) / (1.5 + hour))


def test_a_file_takes_a_request_for_each_part_and_two_more() -> None:
    measured, jobs = packaged_measures(), work_costs.TB / GB
    one_leaf = WorkScenario(job_bytes=GB, settings=TableSettings(leaf_rows_max=10**12))
    amounts = ingested_tb(measured, one_leaf)
    assert amounts.s3_put == pytest.approx(jobs * (30 + 2), rel=0.001), "of 32 MiB each"


def test_each_file_of_a_job_and_each_of_a_merge_takes_a_request() -> None:
    measured, jobs = packaged_measures(), work_costs.TB / GB
    small_leaves = WorkScenario(job_bytes=GB, settings=TableSettings(leaf_rows_max=1_000_000))
    work = work_costs.compaction_of(measured, small_leaves)
    merged = compacted_tb(measured, small_leaves)
    assert merged.s3_put == work.merges, "none is sent in parts"
    taken_in = ingested_tb(measured, small_leaves)
    assert taken_in.s3_put >= work.files_in.total() > 1_000 * jobs
