"""The page of costs, and the measures behind it: of what the library counts, and of figures."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.config.instance import InstanceSettings
from lakebed.costs.amounts import Amounts
from lakebed.costs.estimate import CostEstimate, TbCosts, estimate
from lakebed.costs.idle_costs import (
    POLLED_QUEUES,
    SCHEDULES,
    alarms,
    changing_table,
    idle_parts,
    working_metrics,
)
from lakebed.costs.measured import packaged_measures
from lakebed.costs.prices import Prices, packaged_prices

FIGURES = {
    "row_bytes": ("cost.row_bytes", 1.0),
    "ingest_rows_per_core_second": ("ingest.sleeper.rows_per_core_second", 1.0),
    "merge_rows_per_core_second": ("merge.sleeper.rows_per_core_second", 1.0),
    "bulk_import_rows_per_core_second": ("bulk_import.sleeper.rows_per_core_second", 1.0),
    "lookup_requests": ("lookup.one_file.requests", 1.0),
    "lookup_seconds": ("lookup.one_file.p50_ms", 0.001),
}
"""Which figure each measure is, and in which unit of it."""
_WORDS = {
    "sqs_request": "requests of SQS",
    "lambda_request": "runs",
    "lambda_gb_second": "GB-seconds",
    "dynamodb_read_unit": "read units",
    "dynamodb_write_unit": "write units",
    "alarm_month": "alarms",
    "dashboard_month": "dashboard",
    "s3_put": "lists of S3",
    "log_gb": "GB",
    "image_gb_month": "GB",
}


_PAGE = """\
# What an instance on AWS costs

{made}
In dollars, by prices of {region} of {prices_of}; what an account has free, and taxes, are not taken
into account. `lakebed cost estimate` prints the same, with `--prices FILE` by prices of your own:
`lakebed cost prices` prints the file to begin with.

## While it is idle

| What | How much of it in a month | Costs |
|---|---|---|
{idle}
| **together** | | **{idle_month:.2f}** |

{alarms} alarms, {queues} queues that Lambda asks, {schedules} schedules: a test counts them in the
templates. Buckets, tables of DynamoDB, schedules, the parameter and EMR Serverless cost nothing but
what they store; no task runs, and the network's gateways are free. A table that is idle adds
{idle_table:.4f}. A paused instance (`-c paused=true`) costs {paused:.2f}: its queues are not asked.

With `-c task_addresses=private` its network has four endpoints of 0.01 an hour, seven where tasks
run on machines of EC2: 29.20 or 51.10 more, whether tasks run or not
([why](../decisions/0015-tasks-have-public-addresses.md)). With a network of yours they are yours.

## A TB, from its arrival to rest

A TB is 10^12 bytes of files that Lakebed wrote, here of rows of {row_bytes:.0f} bytes (a key and a
value of ten letters, a time and one more value) whose keys are spread evenly. At rest is a table in
which no compaction is due. How often bytes are rewritten, and by how many jobs, is counted by the
planner itself (`lakebed/costs/compaction_work.py`); processor time follows from
[measured rates](../reference/figures.md), with tasks that compute for seven tenths of their life.
All prices are those of capacity on demand: tasks on Fargate Spot take a third of theirs.

| Jobs of | Ingest | Compaction | Replaced files | Together | Rewritten | Merges |
|---|---|---|---|---|---|---|
{per_tb}

Many small jobs cost more. A job writes one file for each leaf that gets at least
[`shared_file_rows_max`](../reference/settings.md) of its rows, and a small file takes as many
requests to write and to merge as a large one. Send large files, or several in one message. Replaced
files are kept for readers, and as deleted versions for as long as
[`deleted_days`](../reference/instance.md) says, here {deleted_days}
([why](../decisions/0010-the-bucket-keeps-what-was-deleted.md)), and in the mean half a day more: S3
removes them at the next midnight UTC.

## Other work

| What | Costs |
|---|---|
| a TB by bulk import, at rest at once | {bulk_import:.2f} |
| a million lookups of one key each, by a warm function with 2 GB | {lookups:.2f} |
| a table that changes each minute, a month: its ticks | {changing_table:.2f} |
| its metrics, with [`table_metrics`](../reference/instance.md), a month | {table_metrics:.2f} |
| metrics of a working instance, at most {metrics:.0f}, a month | {metrics_month:.2f} |
| metrics of feeds, where any run, at most {of_feeds:.0f} more, a month | {of_feeds_month:.2f} |
| a TB of files, a month | {stored_tb:.2f} |
| a GB of log, names and reports in DynamoDB, a month | {state_gb:.2f} |
| a task of one vCPU and 4 GB, an hour | {task_hour:.3f} |

[Metrics](../reference/metrics.md) are of the whole instance, however many functions and tasks add
to them, and are paid for by the hour in which they have values: an instance that works for an hour
a day pays a twenty-fourth, an idle one next to nothing, and those of trouble cost little. What
Container Insights measures of tasks is beside that: about 20 metrics while some run, by the hour.
Less can be had: `cdk deploy` of a subset of stacks leaves the dashboard out, and alarms that no
person reads are best deleted. Nothing of this was compared with a bill of Amazon yet.
"""


def measured_file(figures: Mapping[str, float]) -> str:
    """Return the measures that the library comes with. figures: the newest, by name."""
    lines = ["# Made by `make docs` of benchmarks/latest.jsonl: run `make bench` to change it.\n"]
    for name, (figure, unit) in FIGURES.items():
        lines.append(f"{name} = {figures[figure] * unit:g}  # {figure}\n")
    return "".join(lines)


def cost_page(made: str) -> str:
    """Return the page. made: says what makes it."""
    prices, measured = packaged_prices(), packaged_measures()
    found = estimate(prices, measured)
    return _PAGE.format(
        made=made,
        region=found.region,
        prices_of=found.prices_of,
        idle="\n".join(_idle_lines(found, prices)),
        idle_month=sum(found.idle_month.values()),
        alarms=alarms(),
        queues=POLLED_QUEUES,
        schedules=len(SCHEDULES),
        idle_table=found.idle_table_month,
        paused=found.paused_month,
        row_bytes=measured.row_bytes,
        per_tb="\n".join(map(_tb_line, found.per_tb)),
        deleted_days=InstanceSettings().deleted_days,
        bulk_import=found.bulk_import_per_tb,
        lookups=found.per_million_lookups,
        changing_table=found.changing_table_month,
        table_metrics=changing_table(metrics=True).dollars(prices) - found.changing_table_month,
        metrics=working_metrics(of_feeds=False).metric_month,
        metrics_month=found.metrics_month,
        of_feeds=working_metrics(of_feeds=True).metric_month,
        of_feeds_month=found.feed_metrics_month,
        stored_tb=found.stored_gb_month * 1000,
        state_gb=Amounts(dynamodb_gb_month=1).dollars(prices),
        task_hour=_task_hour().dollars(prices),
    )


def _idle_lines(found: CostEstimate, prices: Prices) -> list[str]:
    lines = []
    for part, amounts in idle_parts().items():
        amount = ", ".join(
            f"{_number(getattr(amounts, name))} {words}"
            for name, words in _WORDS.items()
            if getattr(amounts, name) and prices.prices[name]
        )
        lines.append(f"| {part} | {amount} | {found.idle_month[part]:.2f} |")
    return lines


def _tb_line(one: TbCosts) -> str:
    dollars = (one.ingest, one.compaction, one.replaced_files, one.together)
    cells = [f"{one.job_gb} GB", *(f"{d:.2f}" for d in dollars), f"{one.rewritten:.1f} times"]
    return f"| {' | '.join([*cells, f'{one.merges:,}'])} |"


def _task_hour() -> Amounts:
    return Amounts(fargate_vcpu_hour=1, fargate_gb_hour=4, address_hour=1)


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 1 else f"{amount:.3f}"
