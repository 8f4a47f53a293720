"""Computes what work costs: a TB ingested and compacted to rest, imported in bulk, a million
lookups.

A TB is 10^12 bytes of files that Lakebed wrote. How much is merged is counted by the planner;
messages, reports and units of a job are taken from the design (docs/design/costs.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.costs.amounts import DAYS_OF_MONTH, EXPIRY_ROUNDED_DAYS, Amounts
from lakebed.costs.compaction_work import CompactionWork, work_to_rest
from lakebed.costs.measured import Measured

TB = 10**12
GB = 10**9
_HOUR = 3_600

PART_BYTES = 32 << 20
"""Bytes of a part of an upload in parts; smaller files take one request. Files above it begin and
end an upload."""
READ_BYTES = 8 << 20
"""Bytes of one read of a file or source; a merged part of a file takes two reads or more."""
BUSY = 0.7
"""The share of its life in which a task computes: the rest is waiting, starting and ending."""
TASK_GB_PER_VCPU = 4.0
EMR_GB_PER_VCPU = 2.0

QUEUE_REQUESTS_OF_JOB = 4.0
"""The job is sent, received and deleted; so are commits, many at a time, and a job that takes
longer is kept out of sight."""
WRITE_UNITS_OF_REPORT = 2.0
"""An item of the tracker and its index."""
INGEST_REPORTS, MERGE_REPORTS = 4, 4
"""Number of reports of a job: accepted or created, started, finished, committed."""
WRITE_UNITS_OF_COMMIT = 2.0
"""Write units of one of many commits in an entry: its part of the entry, twice as a transaction."""
WRITE_UNITS_OF_USAGE = 1.0
"""Write units to add what a job used to the ledger."""
READ_UNITS_OF_JOB = 8.0
"""A worker looks up the table's name and follows its log."""


class WorkScenario(msgspec.Struct, frozen=True, kw_only=True):
    """The assumptions about how rows come in.

    job_bytes: of an ingest job's files.
    deleted_days: of the instance.
    """

    job_bytes: int = 10 * GB
    deleted_days: int = 1
    settings: TableSettings = TableSettings()


def ingested_tb(measured: Measured, scenario: WorkScenario) -> Amounts:
    """Return what it takes to bring a TB in, in the jobs of a scenario."""
    jobs = TB / scenario.job_bytes
    hours = TB / measured.row_bytes / measured.ingest_rows_per_core_second / _HOUR / BUSY
    puts = _puts(compaction_of(measured, scenario).files_in, measured)
    stored = Amounts(s3_put=puts, s3_get=TB / READ_BYTES)
    return stored + _task(hours) + _jobs(jobs, INGEST_REPORTS)


def compaction_of(measured: Measured, scenario: WorkScenario) -> CompactionWork:
    """Return what compaction does with a TB until nothing is due."""
    return work_to_rest(
        rows=int(TB / measured.row_bytes),
        job_rows=int(scenario.job_bytes / measured.row_bytes),
        settings=scenario.settings,
    )


def compacted_tb(measured: Measured, scenario: WorkScenario) -> Amounts:
    """Return what it takes to compact a TB to rest, without what is kept of deleted files."""
    work = compaction_of(measured, scenario)
    written = work.rows_rewritten * measured.row_bytes
    hours = work.rows_rewritten / measured.merge_rows_per_core_second / _HOUR / BUSY
    stored = Amounts(
        s3_put=_puts(work.files_merged, measured),
        s3_get=2 * work.inputs + written / READ_BYTES,
    )
    return stored + _task(hours) + _jobs(work.merges, MERGE_REPORTS)


def replaced_files(measured: Measured, scenario: WorkScenario) -> Amounts:
    """Return what is kept of files that compaction replaced: a while for readers, then as deleted
    versions."""
    work = compaction_of(measured, scenario)
    kept_for_readers = scenario.settings.garbage_seconds_min / 86_400
    days = kept_for_readers + scenario.deleted_days + EXPIRY_ROUNDED_DAYS
    replaced = work.rows_rewritten * measured.row_bytes
    return Amounts(s3_gb_month=replaced / GB * days / DAYS_OF_MONTH)


def bulk_imported_tb(measured: Measured) -> Amounts:
    """Return what it takes to import a TB by Spark on EMR Serverless: files are at rest then."""
    rows = TB / measured.row_bytes
    hours = rows / measured.bulk_import_rows_per_core_second / _HOUR / BUSY
    sorted_runs = Amounts(s3_put=TB / PART_BYTES, s3_get=TB / READ_BYTES)
    files = Amounts(s3_put=TB / PART_BYTES, s3_get=TB / READ_BYTES)
    return sorted_runs + files + Amounts(emr_vcpu_hour=hours, emr_gb_hour=hours * EMR_GB_PER_VCPU)


def million_lookups(measured: Measured, *, memory_gb: float) -> Amounts:
    """Return what a million keys cost that a warm function looks up, one a call."""
    one = Amounts(
        s3_get=measured.lookup_requests,
        lambda_request=1,
        lambda_gb_second=measured.lookup_seconds * memory_gb,
        dynamodb_read_unit=1,  # whether the log has grown
    )
    return one * 1_000_000


def _task(vcpu_hours: float) -> Amounts:
    """Return a task of one vCPU."""
    return Amounts(
        fargate_vcpu_hour=vcpu_hours,
        fargate_gb_hour=vcpu_hours * TASK_GB_PER_VCPU,
        address_hour=vcpu_hours,
    )


def _jobs(jobs: float, reports: int) -> Amounts:
    """Return what jobs take beside their rows: messages, reports, commits."""
    one = Amounts(
        sqs_request=QUEUE_REQUESTS_OF_JOB,
        dynamodb_write_unit=reports * WRITE_UNITS_OF_REPORT
        + WRITE_UNITS_OF_COMMIT
        + WRITE_UNITS_OF_USAGE,
        dynamodb_read_unit=READ_UNITS_OF_JOB,
    )
    return one * jobs


def _puts(files: Mapping[int, int], measured: Measured) -> float:
    """Return the requests that put files, given how many there are by their rows: one each, or its
    parts, a first and a last one."""
    return sum(_puts_of_file(rows * measured.row_bytes) * files[rows] for rows in files)


def _puts_of_file(size: float) -> int:
    return 1 if size <= PART_BYTES else math.ceil(size / PART_BYTES) + 2
