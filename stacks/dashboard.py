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
from stacks.constructs.names import NamedJobQueue, NamedQueue
from stacks.constructs.operator_alarm import AlarmNotice, Breach, operator_alarm

COLUMNS = 24
ROWS = 6
PERIOD_MINUTES = 5
VISIBLE = "ApproximateNumberOfMessagesVisible"


class DashboardStack(Stack):
    """A row of graphs for queues, and one for each section of metrics.

    An instance without `dashboard` has the alarms all the same: who looks at nothing must be told.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        queues: Sequence[NamedJobQueue],
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("dashboard"),
            description=f"Lakebed {deployment.instance}: what an operator looks at",
        )
        if "dashboard" in deployment.stacks:
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
        notice=AlarmNotice(what=metric.meaning, command=alarm.command, page=alarm.page),
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


def _of_queues(queues: Sequence[NamedJobQueue]) -> list[cloudwatch.IWidget]:
    graphs = {
        "oldest message, seconds": [
            _of_queue(queue.queue, "ApproximateAgeOfOldestMessage", queue.kind) for queue in queues
        ],
        "messages": [_of_queue(queue.queue, VISIBLE, queue.kind) for queue in queues],
        "dead letters": [_of_queue(queue.dead_letters, VISIBLE, queue.kind) for queue in queues],
    }
    return [
        cloudwatch.GraphWidget(title=title, width=COLUMNS // len(graphs), height=ROWS, left=left)
        for title, left in graphs.items()
    ]


def _of_queue(queue: NamedQueue, metric: str, label: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name=metric,
        dimensions_map={"QueueName": queue.queue_name},
        statistic="Maximum",
        period=Duration.minutes(PERIOD_MINUTES),
        label=label,
    )


def _metric(deployment: Deployment, metric: Metric, minutes: int) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=metric.name,
        dimensions_map={"instance": deployment.instance},
        statistic=metric.statistic,
        period=Duration.minutes(minutes),
    )
