"""Schedules, event sources, functions, queues and alarms of an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.backends.aws.deployed.asking import Asking
from lakebed.config.functions import DISK_MIB_MIN
from lakebed.ports.examined.deployed_parts import (
    DeployedAlarm,
    DeployedFunction,
    DeployedQueue,
    DeployedRule,
    EventSource,
    Recipient,
)

OFF = {"Disabled", "Disabling", "Deleting"}
WORKS = {"Active", "Inactive", "Pending", ""}
"""States of functions: an idle one is made ready again when it is called."""
UNCONFIRMED = "PendingConfirmation"
PUT_BACK = (
    "AlarmName",
    "AlarmDescription",
    "OKActions",
    "InsufficientDataActions",
    "MetricName",
    "Namespace",
    "Statistic",
    "ExtendedStatistic",
    "Dimensions",
    "Period",
    "Unit",
    "EvaluationPeriods",
    "DatapointsToAlarm",
    "Threshold",
    "ComparisonOperator",
    "TreatMissingData",
)
"""Fields of an alarm's description that suffice to make the same alarm again."""


def rules(asking: Asking) -> list[DeployedRule]:
    """Return the schedules, and the rules that send events on."""
    others, client = asking.longer_instances(), asking.clients.schedules
    found = asking.listed(
        "events:ListRules", client.list_rules, "Rules", NamePrefix=asking.name("")
    )
    return [
        DeployedRule(
            name=rule["Name"],
            enabled=rule.get("State", "ENABLED") != "DISABLED",
            targets=len(
                asking.ask(
                    "events:ListTargetsByRule", client.list_targets_by_rule, Rule=rule["Name"]
                )["Targets"]
            ),
            scheduled="ScheduleExpression" in rule,
        )
        for rule in found
        if asking.is_ours(rule["Name"], others)
    ]


def event_sources(asking: Asking, kind: str, queue_arn: str) -> list[EventSource]:
    """Return what takes messages of a queue."""
    found = asking.listed(
        "lambda:ListEventSourceMappings",
        asking.clients.functions.list_event_source_mappings,
        "EventSourceMappings",
        token="Marker",  # noqa: S106 - names a page
        next_token="NextMarker",  # noqa: S106 - names a page
        EventSourceArn=queue_arn,
    )
    return [
        EventSource(
            id=one["UUID"],
            queue=kind,
            function=one["FunctionArn"].rpartition(":")[2],
            enabled=one.get("State", "Enabled") not in OFF,
            problem=_problem(one.get("LastProcessingResult") or ""),
        )
        for one in found
        if one.get("EventSourceArn") == queue_arn
    ]


def _problem(result: str) -> str:
    return result if result.startswith("PROBLEM") else ""


def functions(asking: Asking) -> list[DeployedFunction]:
    """Return the functions."""
    others, client = asking.longer_instances(), asking.clients.functions
    found = asking.listed(
        "lambda:ListFunctions",
        client.list_functions,
        "Functions",
        token="Marker",  # noqa: S106 - names a page
        next_token="NextMarker",  # noqa: S106 - names a page
    )
    names = [one["FunctionName"] for one in found if asking.is_ours(one["FunctionName"], others)]
    return [_function(asking, name) for name in names]


def _function(asking: Asking, name: str) -> DeployedFunction:
    client = asking.clients.functions
    state = asking.ask(
        "lambda:GetFunctionConfiguration", client.get_function_configuration, FunctionName=name
    )
    limit = asking.ask(
        "lambda:GetFunctionConcurrency", client.get_function_concurrency, FunctionName=name
    )
    problem = ""
    if state.get("State", "") not in WORKS:
        problem = f"{state['State']}: {state.get('StateReason', '')}"
    elif state.get("LastUpdateStatus") == "Failed":
        problem = f"its update failed: {state.get('LastUpdateStatusReason', '')}"
    return DeployedFunction(
        name=name,
        problem=problem,
        reserved=limit.get("ReservedConcurrentExecutions"),
        disk_mib=state.get("EphemeralStorage", {}).get("Size", DISK_MIB_MIN),
    )


def queue(kind: str, attributes: dict[str, str] | None) -> DeployedQueue | None:
    """Return a queue by what SQS says of it."""
    if attributes is None:
        return None
    return DeployedQueue(
        kind=kind,
        has_dead_letters="RedrivePolicy" in attributes,
        kept_seconds=int(attributes.get("MessageRetentionPeriod", 345_600)),
    )


def queue_attributes(asking: Asking, url: str) -> dict[str, str] | None:
    """Return what SQS says of a queue; None: there is none."""
    answer = asking.found(
        "sqs:GetQueueAttributes",
        asking.clients.sqs.get_queue_attributes,
        QueueUrl=url,
        AttributeNames=["QueueArn", "RedrivePolicy", "MessageRetentionPeriod"],
    )
    return None if answer is None else dict(answer.get("Attributes", {}))


def alarms(asking: Asking) -> list[DeployedAlarm]:
    """Return the alarms."""
    others = asking.longer_instances()
    return [
        DeployedAlarm(
            name=one["AlarmName"],
            state=one.get("StateValue", ""),
            actions=tuple(one.get("AlarmActions", ())),
            is_on=bool(one.get("ActionsEnabled", True)),
            reason=one.get("StateReason", ""),
        )
        for one in _described_alarms(asking, {"AlarmNamePrefix": asking.name("")})
        if asking.is_ours(one["AlarmName"], others)
    ]


def topic(asking: Asking, account: str) -> str:
    """Return the address of the instance's own topic of alarms; "": it has none."""
    arn = f"arn:aws:sns:{asking.clients.region}:{account}:{asking.name('alarms')}"
    client = asking.clients.topics
    there = asking.found("sns:GetTopicAttributes", client.get_topic_attributes, TopicArn=arn)
    return arn if there is not None else ""


def recipients(asking: Asking, topic_arn: str) -> list[Recipient]:
    """Return who hears of what a topic is told."""
    if not topic_arn:
        return []
    found = asking.listed(
        "sns:ListSubscriptionsByTopic",
        asking.clients.topics.list_subscriptions_by_topic,
        "Subscriptions",
        TopicArn=topic_arn,
    )
    return [
        Recipient(
            protocol=one["Protocol"],
            endpoint=one["Endpoint"],
            confirmed=one["SubscriptionArn"] != UNCONFIRMED,
        )
        for one in found
    ]


def turn_on_rule(asking: Asking, name: str) -> None:
    """Let a schedule go off again."""
    asking.change("events:EnableRule", asking.clients.schedules.enable_rule, Name=name)


def turn_on_event_source(asking: Asking, id_: str) -> None:
    """Let a queue hand its messages to a function again."""
    update = asking.clients.functions.update_event_source_mapping
    asking.change("lambda:UpdateEventSourceMapping", update, UUID=id_, Enabled=True)


def turn_on_alarm(asking: Asking, name: str) -> None:
    """Let an alarm tell whom it names again."""
    enable = asking.clients.alarms.enable_alarm_actions
    asking.change("cloudwatch:EnableAlarmActions", enable, AlarmNames=[name])


def add_alarm_action(asking: Asking, name: str, topic_arn: str) -> None:
    """Let an alarm tell a topic, too: the same alarm is put again, with one more action."""
    for alarm in _described_alarms(asking, {"AlarmNames": [name]}):
        same: dict[str, Any] = {field: alarm[field] for field in PUT_BACK if alarm.get(field)}
        actions = [*dict.fromkeys([*alarm.get("AlarmActions", ()), topic_arn])]
        asking.change(
            "cloudwatch:PutMetricAlarm",
            asking.clients.alarms.put_metric_alarm,
            **same,
            AlarmActions=actions,
            ActionsEnabled=alarm.get("ActionsEnabled", True),
        )


def _described_alarms(asking: Asking, which: Mapping[str, Any]) -> list[Any]:
    describe = asking.clients.alarms.describe_alarms
    return list(asking.listed("cloudwatch:DescribeAlarms", describe, "MetricAlarms", **which))
