"""Makers of what operators look at: alarms, dashboards, logs."""

from __future__ import annotations

from typing import Any

from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import ACCOUNT, REGION
from localcloud.templates.running import AlarmSpec, emulated_metric_name


def make_alarm(making: Making, properties: Properties) -> Made:
    """An alarm: the emulator judges it, by metrics that the runner counts."""
    cloudwatch = making.client("cloudwatch")
    name = properties.need("AlarmName")
    properties.take("Tags")
    told = properties.rest()
    looked_at = [told] if "MetricName" in told else []
    queries = told.get("Metrics", [])
    looked_at += [query["MetricStat"]["Metric"] for query in queries if "MetricStat" in query]
    spec = AlarmSpec(name, frozenset(map(_metric, looked_at)))
    for metric in looked_at:
        _, metric_name, dimensions = _metric(metric)
        metric["MetricName"] = emulated_metric_name(metric_name, dimensions)
    cloudwatch.put_metric_alarm(AlarmName=name, **told)
    making.running.alarms.append(spec)
    arn = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"
    return Made(name, {"Arn": arn}, lambda: cloudwatch.delete_alarms(AlarmNames=[name]))


def _metric(told: dict[str, Any]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    dimensions = sorted((d["Name"], d["Value"]) for d in told.get("Dimensions", []))
    return told["Namespace"], told["MetricName"], tuple(dimensions)


def make_dashboard(making: Making, properties: Properties) -> Made:
    """A dashboard: the emulator keeps it, and does not show it."""
    cloudwatch = making.client("cloudwatch")
    name = properties.need("DashboardName")
    cloudwatch.put_dashboard(DashboardName=name, DashboardBody=properties.need("DashboardBody"))
    return Made(name, {}, lambda: cloudwatch.delete_dashboards(DashboardNames=[name]))


def make_log_group(making: Making, properties: Properties) -> Made:
    """A log group: what functions say goes to files in place of it."""
    name = properties.take("LogGroupName") or f"{making.stack}-{properties.logical_id}"
    for ignored in ("RetentionInDays", "KmsKeyId", "LogGroupClass"):
        properties.take(ignored)
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}:*"
    return Made(name, {"Arn": arn})
