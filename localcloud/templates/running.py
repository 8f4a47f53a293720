"""Lists what the templates want run, as plain facts: functions, what calls them, and what is
watched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from localcloud.templates.images import Image

MIB = 1 << 20
USUAL_RETRIES = 2
"""Retries of a failed call whose caller does not wait, as with Lambda."""


class FunctionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A lambda function.

    code: the folder of its bundle.
    role: an ARN.
    """

    name: str
    arn: str
    handler: str
    code: Path
    role: str
    environment: dict[str, str]
    timeout_seconds: int
    memory_bytes: int
    concurrency_max: int | None


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A task.

    command: in place of the image's own.
    role: an ARN.
    stop_seconds: between SIGTERM and SIGKILL.
    """

    family: str
    container: str
    image: Image
    command: tuple[str, ...]
    role: str
    environment: dict[str, str]
    memory_bytes: int
    stop_seconds: int


class SparkSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An application that runs Spark.

    assets: folders and files that runs may name, by hash.
    """

    name: str
    assets: dict[str, Path]


class MachineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Machines of clusters that run Spark.

    role: that they have, by its ARN.
    """

    spark: SparkSpec
    role: str


class QueueSourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a queue call a function.

    reports_failures: it says which messages failed.
    """

    queue: str
    function: str
    batch_messages_max: int
    reports_failures: bool
    concurrency_max: int | None


class StreamSourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of items of a table call a function.

    stream: an ARN.
    filters: patterns, of which a record has to be like one; none: all records call it.
    """

    stream: str
    function: str
    batch_records_max: int
    filters: tuple[dict[str, Any], ...] = ()


class RuleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that calls functions.

    inputs: what each gets, by its ARN; None: the usual event.
    """

    name: str
    arn: str
    expression: str
    enabled: bool
    inputs: dict[str, str | None]


class PermissionSpec(msgspec.Struct, frozen=True):
    """The permission of another principal to call a function.

    function: name or ARN.
    """

    function: str
    principal: str
    source: str | None


class AlarmSpec(msgspec.Struct, frozen=True):
    """An alarm, and the metrics that it looks at, as (namespace, name, dimensions)."""

    name: str
    metrics: frozenset[tuple[str, str, tuple[tuple[str, str], ...]]]


class Running:
    """Collects what is run. Names are unique, as in an account."""

    def __init__(self) -> None:
        self.functions: dict[str, FunctionSpec] = {}
        self.retries: dict[str, int] = {}
        """Of calls whose caller does not wait, by the function's name; else `USUAL_RETRIES`."""
        self.sources: list[QueueSourceSpec] = []
        self.streams: list[StreamSourceSpec] = []
        self.rules: dict[str, RuleSpec] = {}
        self.permissions: list[PermissionSpec] = []
        self.alarms: list[AlarmSpec] = []
        self.tasks: dict[str, TaskSpec] = {}
        """By the ARN of their definition."""
        self.clusters: list[str] = []
        self.spark: dict[str, SparkSpec] = {}
        """By the id of their application."""
        self.machines: dict[str, MachineSpec] = {}
        """By the name of their profile."""


def function_arn(account: str, region: str, name: str) -> str:
    """Return the ARN of a function."""
    return f"arn:aws:lambda:{region}:{account}:function:{name}"


def name_in(arn_or_name: str) -> str:
    """Return the last part of an ARN; a name as it is."""
    return arn_or_name.rpartition(":")[2].rpartition("/")[2]


def emulated_metric_name(name: str, dimensions: Iterable[tuple[str, str]]) -> str:
    """Return what a metric is called in the emulator. It judges alarms by the name alone and passes
    over dimensions, so these are part of it: else one queue's dead letter is every queue's."""
    return "/".join([name, *(f"{key}={value}" for key, value in sorted(dimensions))])
