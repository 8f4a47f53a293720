"""Metrics: out of what functions print, and of queues and functions themselves."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from localcloud.services.amazon import Amazon
from localcloud.templates.running import AlarmSpec, emulated_metric_name

DATA_AT_ONCE_MAX = 500
QUEUES, FUNCTIONS = "AWS/SQS", "AWS/Lambda"


class Datum(msgspec.Struct, frozen=True):
    """One value of a metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    value: float
    unit: str = "None"


def embedded_metrics(said: bytes) -> Iterator[Datum]:
    """Yield the metrics in what a function printed: lines of JSON in CloudWatch's embedded format.

    A line that only looks like it is passed over, as CloudWatch does.
    """
    for line in said.splitlines():
        if b'"_aws"' not in line:
            continue
        try:
            record = json.loads(line)
            for directive in record["_aws"]["CloudWatchMetrics"]:
                yield from _of_directive(record, directive)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _of_directive(record: Mapping[str, Any], directive: Mapping[str, Any]) -> Iterator[Datum]:
    for names in directive.get("Dimensions") or [[]]:
        dimensions = tuple(sorted((name, str(record[name])) for name in names))
        for metric in directive["Metrics"]:
            given = record[metric["Name"]]
            for value in given if isinstance(given, list) else [given]:
                yield Datum(
                    directive["Namespace"],
                    metric["Name"],
                    dimensions,
                    float(value),
                    metric.get("Unit", "None"),
                )


class Watch:
    """Hands metrics to the emulator, which judges alarms by them. Safe to share among threads.

    Of queues and functions it hands over only what an alarm looks at.
    """

    def __init__(self, amazon: Amazon, alarms: Iterable[AlarmSpec]) -> None:
        self._amazon = amazon
        self._wanted = {metric for alarm in alarms for metric in alarm.metrics}
        self._names = [alarm.name for alarm in alarms]
        self._lock = threading.Lock()
        self._said: list[Datum] = []
        self._calls: Counter[tuple[str, str]] = Counter()

    def note_said(self, said: bytes) -> None:
        """Take the metrics in what a function printed."""
        found = list(embedded_metrics(said))
        with self._lock:
            self._said += found

    def note_call(self, function: str, *, failed: bool) -> None:
        """Count a call of a function, and its error."""
        with self._lock:
            self._calls[function, "Invocations"] += 1
            self._calls[function, "Errors"] += failed

    def publish(self, queues: Mapping[str, Mapping[str, float]]) -> None:
        """Hand over what was noted, and how queues are now."""
        with self._lock:
            data, self._said = self._said, []
            calls, self._calls = self._calls, Counter()
        about = [
            Datum(FUNCTIONS, name, (("FunctionName", function),), count, "Count")
            for (function, name), count in calls.items()
        ]
        for queue, figures in queues.items():
            names = {
                "ApproximateNumberOfMessagesVisible": ("visible", "Count"),
                "ApproximateNumberOfMessagesNotVisible": ("hidden", "Count"),
                "ApproximateAgeOfOldestMessage": ("age_seconds", "Seconds"),
            }
            about += [
                Datum(QUEUES, name, (("QueueName", queue),), figures[figure], unit)
                for name, (figure, unit) in names.items()
            ]
        data += [d for d in about if (d.namespace, d.name, d.dimensions) in self._wanted]
        for namespace in sorted({datum.namespace for datum in data}):
            self._put(namespace, [datum for datum in data if datum.namespace == namespace])

    def states(self) -> dict[str, str]:
        """Return the state of each alarm: OK, ALARM, INSUFFICIENT_DATA."""
        if not self._names:
            return {}
        pages = self._amazon.client("cloudwatch").get_paginator("describe_alarms").paginate()
        found = {
            alarm["AlarmName"]: alarm["StateValue"]
            for page in pages
            for alarm in page["MetricAlarms"]
        }
        return {name: found[name] for name in self._names}

    def _put(self, namespace: str, data: list[Datum]) -> None:
        for at in range(0, len(data), DATA_AT_ONCE_MAX):
            metric_data = [
                {
                    "MetricName": emulated_metric_name(datum.name, datum.dimensions),
                    "Dimensions": [{"Name": n, "Value": v} for n, v in datum.dimensions],
                    "Value": datum.value,
                    "Unit": datum.unit,
                }
                for datum in data[at : at + DATA_AT_ONCE_MAX]
            ]
            self._amazon.client("cloudwatch").put_metric_data(
                Namespace=namespace, MetricData=metric_data
            )
