"""Makers of what operators look at and hear of: alarms and their topics, dashboards, logs."""

from __future__ import annotations

import json
from typing import Any

from localcloud.resources.making import Made, Making, Properties
from localcloud.services.emulator import ACCOUNT, REGION
from localcloud.templates.running import AlarmSpec, emulated_metric_name


def make_alarm(making: Making, properties: Properties) -> Made:
    """Make an alarm: the emulator judges it, by metrics that the runner counts."""
    cloudwatch = making.client("cloudwatch")
    name = properties.need("AlarmName")
    properties.take("Tags")
    alarm = properties.rest()
    looked_at = [alarm] if "MetricName" in alarm else []
    queries = alarm.get("Metrics", [])
    looked_at += [query["MetricStat"]["Metric"] for query in queries if "MetricStat" in query]
    spec = AlarmSpec(name, frozenset(map(_metric, looked_at)))
    for metric in looked_at:
        _, metric_name, dimensions = _metric(metric)
        metric["MetricName"] = emulated_metric_name(metric_name, dimensions)
    cloudwatch.put_metric_alarm(AlarmName=name, **alarm)
    making.running.alarms.append(spec)
    arn = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"
    return Made(name, {"Arn": arn}, lambda: cloudwatch.delete_alarms(AlarmNames=[name]))


def _metric(metric: dict[str, Any]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    dimensions = sorted((d["Name"], d["Value"]) for d in metric.get("Dimensions", []))
    return metric["Namespace"], metric["MetricName"], tuple(dimensions)


def make_topic(making: Making, properties: Properties) -> Made:
    """Make a topic: the emulator hands its notices on to queues and functions, and sends no
    mail."""
    sns = making.client("sns")
    name = properties.need("TopicName")
    key = properties.take("KmsMasterKeyId")
    arn = sns.create_topic(Name=name)["TopicArn"]
    if key:
        sns.set_topic_attributes(TopicArn=arn, AttributeName="KmsMasterKeyId", AttributeValue=key)
    attributes = {"TopicArn": arn, "TopicName": name}
    return Made(arn, attributes, lambda: sns.delete_topic(TopicArn=arn))


def make_topic_policy(making: Making, properties: Properties) -> Made:
    """Set who may publish to topics: kept by the emulator."""
    sns = making.client("sns")
    policy = json.dumps(properties.need("PolicyDocument"))
    for arn in properties.need("Topics"):
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
    return Made(f"{properties.logical_id}-policy")


def make_subscription(making: Making, properties: Properties) -> Made:
    """Subscribe an endpoint to a topic: it gets what is published there."""
    sns = making.client("sns")
    found = sns.subscribe(
        TopicArn=properties.need("TopicArn"),
        Protocol=properties.need("Protocol"),
        Endpoint=properties.need("Endpoint"),
        ReturnSubscriptionArn=True,
    )
    arn = found["SubscriptionArn"]
    return Made(arn, {}, lambda: sns.unsubscribe(SubscriptionArn=arn))


def make_dashboard(making: Making, properties: Properties) -> Made:
    """Make a dashboard: the emulator keeps it, and does not show it."""
    cloudwatch = making.client("cloudwatch")
    name = properties.need("DashboardName")
    cloudwatch.put_dashboard(DashboardName=name, DashboardBody=properties.need("DashboardBody"))
    return Made(name, {}, lambda: cloudwatch.delete_dashboards(DashboardNames=[name]))


def make_log_group(making: Making, properties: Properties) -> Made:
    """Name a log group: what functions say goes to files in place of it."""
    name = properties.take("LogGroupName") or f"{making.stack}-{properties.logical_id}"
    for ignored in ("RetentionInDays", "KmsKeyId", "LogGroupClass"):
        properties.take(ignored)
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}:*"
    return Made(name, {"Arn": arn})
