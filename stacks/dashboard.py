"""One dashboard, and the alarms on metrics: both from the list in lakebed/observe/metrics.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.observe.metric import Alarm, Metric, Section
from lakebed.observe.metrics import METRICS, NAMESPACE
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.operator_alarm import Breach, operator_alarm

COLUMNS = 24
ROWS = 6
PERIOD_MINUTES = 5


class DashboardStack(Stack):
    """A row of graphs for queues, and one for each section of metrics."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        queues: Sequence[FifoJobQueue],
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("dashboard"),
            description=f"Lakebed {deployment.instance}: what an operator looks at",
        )
        sections: tuple[Section, ...] = get_args(Section)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=deployment.name("dashboard"),
            widgets=[_of_queues(queues), *(_of_section(deployment, s) for s in sections)],
        )
        for metric in METRICS:
            if metric.alarm is not None:
                metric_alarm(self, deployment, metric, metric.alarm)


def metric_alarm(scope: Construct, deployment: Deployment, metric: Metric, alarm: Alarm) -> None:
    """Make the alarm on a metric, by its name."""
    name = metric.name.replace("_", "-")
    operator_alarm(
        scope,
        "".join(word.capitalize() for word in name.split("-")),
        deployment=deployment,
        name=deployment.name(name),
        says=f"{metric.meaning}: see {alarm.page}",
        metric=_metric(deployment, metric, alarm.minutes),
        statistic=metric.statistic,
        breach=Breach(alarm.threshold, alarm.minutes),
    )


def _of_section(deployment: Deployment, section: Section) -> list[cloudwatch.IWidget]:
    """Return a graph for each unit: counts and seconds have no axis in common."""
    found = [metric for metric in METRICS if metric.section == section]
    units = sorted({metric.unit for metric in found})
    return [
        cloudwatch.GraphWidget(
            title=f"{section}: {unit.lower()}",
            width=COLUMNS // len(units),
            height=ROWS,
            left=[_metric(deployment, m, PERIOD_MINUTES) for m in found if m.unit == unit],
        )
        for unit in units
    ]


def _of_queues(queues: Sequence[FifoJobQueue]) -> list[cloudwatch.IWidget]:
    period = Duration.minutes(PERIOD_MINUTES)
    graphs = {
        "oldest message, seconds": [
            q.queue.metric_approximate_age_of_oldest_message(period=period, label=q.kind)
            for q in queues
        ],
        "messages": [
            q.queue.metric_approximate_number_of_messages_visible(period=period, label=q.kind)
            for q in queues
        ],
        "dead letters": [
            q.dead_letters.metric_approximate_number_of_messages_visible(
                period=period, label=q.kind
            )
            for q in queues
        ],
    }
    return [
        cloudwatch.GraphWidget(title=title, width=COLUMNS // len(graphs), height=ROWS, left=left)
        for title, left in graphs.items()
    ]


def _metric(deployment: Deployment, metric: Metric, minutes: int) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=metric.name,
        dimensions_map={"instance": deployment.instance},
        statistic=metric.statistic,
        period=Duration.minutes(minutes),
    )
