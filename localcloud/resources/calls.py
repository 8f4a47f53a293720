"""Makers of what is run and of what calls it: functions, sources of events, schedules."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lakebed.errors import InvalidError
from localcloud.resources.making import Made, Making, Properties
from localcloud.resources.stores import taken_over
from localcloud.services.emulator import ACCOUNT, REGION
from localcloud.templates.running import (
    MIB,
    USUAL_RETRIES,
    FunctionSpec,
    PermissionSpec,
    QueueSourceSpec,
    RuleSpec,
    StreamSourceSpec,
    function_arn,
    name_in,
)
from localcloud.templates.stream_filters import check_filter

RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
SIGNED = "AWS_IAM"
"""Authentication of a URL: only requests that are signed reach its function."""
USUAL_MEMORY_MIB, USUAL_TIMEOUT_SECONDS, USUAL_BATCH, USUAL_RECORDS = 128, 3, 10, 100


def make_function(making: Making, properties: Properties) -> Made:
    """Make a function: a folder, run by this machine's Python in processes of its own."""
    name = properties.need("FunctionName")
    runtime = properties.need("Runtime")
    if runtime != RUNTIME:
        hint = f"synthesize for the Python of this machine: {RUNTIME}"
        raise InvalidError(
            "a function for another Python", function=name, runtime=runtime, hint=hint
        )
    code = making.asset(properties, properties.need("Code")["S3Key"])
    arn = function_arn(ACCOUNT, REGION, name)
    properties.only("TracingConfig", {"Mode": "PassThrough"}, {"Mode": "Active"})
    for ignored in ("Architectures", "Description", "LoggingConfig", "EphemeralStorage"):
        properties.take(ignored)
    making.running.functions[name] = FunctionSpec(
        name=name,
        arn=arn,
        handler=properties.need("Handler"),
        code=code,
        role=properties.need("Role"),
        environment=properties.take("Environment", {}).get("Variables", {}),
        timeout_seconds=int(properties.take("Timeout", USUAL_TIMEOUT_SECONDS)),
        memory_bytes=int(properties.take("MemorySize", USUAL_MEMORY_MIB)) * MIB,
        concurrency_max=properties.take("ReservedConcurrentExecutions"),
    )
    return Made(name, {"Arn": arn})


def empty_code() -> bytes:
    """Return what the emulator knows as the code of every function."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("elsewhere.txt", "The runner has the code.")
    return packed.getvalue()


def make_url(making: Making, properties: Properties) -> Made:
    """Make an address of the emulator's, by which who may calls a function with requests of
    HTTP."""
    name = name_in(properties.need("TargetFunctionArn"))
    type_ = properties.need("AuthType")
    if type_ != SIGNED:
        hint = f"let it ask for signatures: {SIGNED}"
        raise InvalidError("an address that is open to all", function=name, type=type_, hint=hint)
    properties.only("InvokeMode", "BUFFERED")
    function, client = making.running.functions[name], making.client("lambda")
    with taken_over("ResourceConflictException"):
        client.create_function(
            FunctionName=name,
            Runtime=RUNTIME,
            Role=function.role,
            Handler=function.handler,
            Code={"ZipFile": empty_code()},
        )
    with taken_over("ResourceConflictException"):
        client.create_function_url_config(FunctionName=name, AuthType=type_)
    known = client.get_function_url_config(FunctionName=name)["FunctionUrl"]
    # Names like AWS's lead nowhere on this machine: the emulator also takes them as paths.
    id_ = (urlsplit(known).hostname or "").partition(".")[0]
    url = f"{client.meta.endpoint_url}/_aws/lambda-url/{id_}/"

    def remove() -> None:
        with taken_over("ResourceNotFoundException"):
            client.delete_function_url_config(FunctionName=name)

    return Made(function.arn, {"FunctionUrl": url, "FunctionArn": function.arn}, remove)


def make_source(making: Making, properties: Properties) -> Made:
    """Messages of a queue, or changes of a table, that call a function, received with the
    function's own role.

    One that is not enabled receives nothing: it is as if there were none.
    """
    enabled = str(properties.take("Enabled", True)).lower() == "true"
    properties.only("MaximumBatchingWindowInSeconds", 0)
    arn, function = properties.need("EventSourceArn"), name_in(properties.need("FunctionName"))
    responses = properties.take("FunctionResponseTypes", [])
    if ":dynamodb:" in arn:
        properties.only("StartingPosition", "LATEST")
        criteria = properties.take("FilterCriteria", {}).get("Filters", [])
        filters = tuple(json.loads(one["Pattern"]) for one in criteria)
        for pattern in filters:
            check_filter(pattern)
        stream = StreamSourceSpec(
            stream=arn,
            function=function,
            batch_records_max=int(properties.take("BatchSize", USUAL_RECORDS)),
            filters=filters,
        )
        making.running.streams += [stream] if enabled else []
    elif ":sqs:" in arn:
        scaling = properties.take("ScalingConfig", {})
        queue = QueueSourceSpec(
            queue=name_in(arn),
            function=function,
            batch_messages_max=int(properties.take("BatchSize", USUAL_BATCH)),
            reports_failures="ReportBatchItemFailures" in responses,
            concurrency_max=scaling.get("MaximumConcurrency"),
        )
        making.running.sources += [queue] if enabled else []
    else:
        hint = "only queues and streams of tables call functions here"
        raise InvalidError("a source of events that is not known", source=arn, hint=hint)
    return Made(f"{making.stack}-{properties.logical_id}")


def make_rule(making: Making, properties: Properties) -> Made:
    """Make a schedule that calls functions, or a rule by which the emulator sends events to
    queues."""
    name = properties.take("Name") or f"{making.stack}-{properties.logical_id}"
    arn = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{name}"
    properties.take("Description")
    pattern = properties.take("EventPattern")
    if pattern is not None:
        return _event_rule(making, properties, name, pattern)
    inputs: dict[str, str | None] = {}
    for target in properties.take("Targets", []):
        known = {"Arn", "Id", "Input", "RetryPolicy"}
        if set(target) - known or ":lambda:" not in target["Arn"]:
            hint = "schedules call functions here, with an input or without"
            raise InvalidError("a target that is not known", rule=name, target=target, hint=hint)
        inputs[target["Arn"]] = target.get("Input")
    making.running.rules[name] = RuleSpec(
        name=name,
        arn=arn,
        expression=properties.need("ScheduleExpression"),
        enabled=properties.take("State", "ENABLED") == "ENABLED",
        inputs=inputs,
    )
    return Made(name, {"Arn": arn})


def _event_rule(
    making: Making, properties: Properties, name: str, pattern: Mapping[str, Any]
) -> Made:
    """Make a rule of the emulator's, which hands events of its own services on."""
    events = making.client("events")
    state, targets = properties.take("State", "ENABLED"), properties.take("Targets", [])
    for target in targets:
        if set(target) - {"Arn", "Id", "SqsParameters"} or ":sqs:" not in target["Arn"]:
            hint = "events of services go to queues here"
            raise InvalidError("a target that is not known", rule=name, target=target, hint=hint)
    made = events.put_rule(Name=name, EventPattern=json.dumps(pattern), State=state)
    events.put_targets(Rule=name, Targets=targets)

    def remove() -> None:
        events.remove_targets(Rule=name, Ids=[target["Id"] for target in targets])
        events.delete_rule(Name=name)

    return Made(name, {"Arn": made["RuleArn"]}, remove)


def make_custom(making: Making, properties: Properties) -> Made:
    """Make nothing of what a function would check when an instance is deployed: on one machine
    there is nothing of AWS to look at."""
    if "Files" in properties.rest():
        hint = "leave the setting `tables` out, and run `lakebed apply`"
        resource = properties.logical_id
        raise InvalidError("files of tables are not applied here", resource=resource, hint=hint)
    return Made(f"{making.stack}-{properties.logical_id}")


def make_permission(making: Making, properties: Properties) -> Made:
    """Note who else may call a function: schedules are held to it."""
    properties.only("Action", "lambda:InvokeFunction")
    making.running.permissions.append(
        PermissionSpec(
            name_in(properties.need("FunctionName")),
            str(properties.need("Principal")),
            properties.take("SourceArn"),
        )
    )
    return Made(f"{making.stack}-{properties.logical_id}")


def make_invoke_config(making: Making, properties: Properties) -> Made:
    """Note how often a function is called again whose caller does not wait. Calls never wait long
    here: the age of an event is not looked at."""
    function = name_in(properties.need("FunctionName"))
    for name in ("Qualifier", "MaximumEventAgeInSeconds", "DestinationConfig"):
        properties.take(name)
    retries = int(properties.take("MaximumRetryAttempts", USUAL_RETRIES))
    making.running.retries[function] = retries
    return Made(json.dumps([making.stack, properties.logical_id]))
