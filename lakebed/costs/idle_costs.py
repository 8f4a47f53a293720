"""Counts what an idle instance costs in a month, and what a table and work add.

Tests compare the counts with the templates (tests/stacks/test_dashboard.py).
"""

from __future__ import annotations

from lakebed.config.job_queues import ALL_QUEUES
from lakebed.costs.amounts import DAYS_OF_MONTH, Amounts
from lakebed.observe.metrics import METRICS

FUNCTIONS = 22
POLLED_QUEUES = 10
"""Number of queues whose messages call functions."""
POLLERS, POLL_SECONDS = 5, 20
"""Pollers of Lambda that ask an idle queue, and seconds of each poll."""
MINUTE, FIVE_MINUTES, DAY = 60, 300, 86_400
MONTH_SECONDS = DAYS_OF_MONTH * DAY
SCHEDULES = {
    "batching": MINUTE,
    "bulk-import": FIVE_MINUTES,
    "compaction-creation": MINUTE,
    "compaction-tasks": MINUTE,
    "dead-letters": FIVE_MINUTES,
    "garbage": FIVE_MINUTES,
    "ingest-tasks": MINUTE,
    "snapshots": FIVE_MINUTES,
    "splitting": MINUTE,
    "sweep": DAY,
    "sweep-nameless": DAY,
}
"""Seconds between two runs of each schedule, by the name of its rule."""
RUN_GB_SECONDS = 0.060 * 0.25
"""GB-seconds of a run that finds nothing to do."""
READ_UNITS_OF_RUN = 2
WRITE_UNITS_OF_RUN = 1
"""Write units of the ledger, to which each run adds what it used."""
LOG_BYTES_OF_RUN = 700
QUEUE_LOOKS = (("compaction-tasks", 1), ("ingest-tasks", 1), ("dead-letters", 2))
"""Number of queues that a run of a schedule asks."""
IMAGE_GB = 1.0
TABLE_TICKS = ("compaction-creation", "splitting", "garbage", "snapshots")
"""Schedules that send a message for a table that changes, each time that they run."""
TICK_GB_SECONDS = 0.2 * 0.5
TICK_QUEUE_REQUESTS = 3
TICK_UNITS = 4
IDLE_TICKS_OF_DAY = 5


def idle_parts() -> dict[str, Amounts]:
    """Return what an idle instance takes in a month, by part."""
    runs = {name: MONTH_SECONDS / seconds for name, seconds in SCHEDULES.items()}
    total = sum(runs.values())
    polls = POLLED_QUEUES * POLLERS * MONTH_SECONDS / POLL_SECONDS
    looks = sum(runs[name] * queues for name, queues in QUEUE_LOOKS)
    return {
        "functions that wait for messages": Amounts(sqs_request=polls),
        "alarms": Amounts(alarm_month=alarms()),
        "dashboard": Amounts(dashboard_month=1),
        "runs of schedules": Amounts(lambda_request=total, lambda_gb_second=total * RUN_GB_SECONDS),
        "what they add to the ledger": Amounts(dynamodb_write_unit=total * WRITE_UNITS_OF_RUN),
        "what they read": Amounts(dynamodb_read_unit=total * READ_UNITS_OF_RUN),
        "what they ask of queues": Amounts(sqs_request=looks),
        "whether a bulk import is open": Amounts(s3_put=runs["bulk-import"]),
        "their logs": Amounts(log_gb=total * LOG_BYTES_OF_RUN / 1e9),
        "images of tasks": Amounts(image_gb_month=IMAGE_GB),
    }


def alarms() -> int:
    """Return how many alarms there are: two a queue, one a function, some of metrics."""
    return 2 * len(ALL_QUEUES) + FUNCTIONS + sum(metric.alarm is not None for metric in METRICS)


def paused_parts() -> dict[str, Amounts]:
    """Return what is left of that while the instance is paused."""
    return {
        n: a for n, a in idle_parts().items() if n in {"alarms", "dashboard", "images of tasks"}
    }


def standing_parts() -> dict[str, Amounts]:
    """Return what of it no run of a function counts: what is paid for by the month, and requests
    that Lambda sends for queues that are empty."""
    uncounted = {*paused_parts(), "functions that wait for messages"}
    return {n: a for n, a in idle_parts().items() if n in uncounted}


def idle_table() -> Amounts:
    """Return what a table takes in a month in which it is neither changed nor read."""
    return _ticks(IDLE_TICKS_OF_DAY * MONTH_SECONDS / DAY)


def changing_table(*, metrics: bool) -> Amounts:
    """Return what a table takes in a month that changes each minute: its ticks, and its metrics
    where they are kept."""
    by_table = sum(metric.by_table for metric in METRICS) if metrics else 0
    ticks = sum(MONTH_SECONDS / SCHEDULES[name] for name in TABLE_TICKS)
    return _ticks(ticks) + Amounts(metric_month=by_table)


def working_metrics(*, of_feeds: bool) -> Amounts:
    """Return the metrics of an instance that have values while it works and nothing goes wrong:
    those of feeds, or all others. All of its functions and tasks share them."""
    found = [m for m in METRICS if not m.of_trouble and (m.section == "feeds") == of_feeds]
    return Amounts(metric_month=len(found))


def _ticks(count: float) -> Amounts:
    one = Amounts(
        sqs_request=TICK_QUEUE_REQUESTS,
        lambda_request=1,
        lambda_gb_second=TICK_GB_SECONDS,
        dynamodb_read_unit=TICK_UNITS,
        dynamodb_write_unit=WRITE_UNITS_OF_RUN,
    )
    return one * count
