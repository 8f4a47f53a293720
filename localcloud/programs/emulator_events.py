"""Asks policies about streams of DynamoDB, rules and events of EventBridge, dashboards, and folders
of parameters, as AWS asks: which one it is, and from which source.

Loaded by `emulator_process`.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core import iam_actions, responses
from ministack.services import dynamodb_streams

STREAMS, EVENTS, FIGURES, PARAMETERS = "dynamodbstreams", "events", "monitoring", "ssm"
CONDITION_KEYS = {"events:source": "Source", "events:detail-type": "DetailType"}


def install() -> None:
    """Let requests be judged by the resource that AWS judges by."""
    resource_of, context_of = iam_actions.extract_resource_arn, iam_actions.request_tag_context

    def resource(service: str, *given: Any) -> str:  # noqa: ANN401 - MiniStack's, passed on
        if service == STREAMS:
            return _stream(json.loads(given[3] or b"{}"))
        found = str(resource_of(service, *given))
        if service == EVENTS:  # rules of the default bus are named without it
            rule = iam_actions._safe_json_field(given[3], "Rule")  # noqa: SLF001 - as below
            return (
                _arn("events", f"rule/{rule}")
                if rule
                else found.replace(":rule/default/", ":rule/")
            )
        if service == PARAMETERS:
            folder = iam_actions._safe_json_field(given[3], "Path")  # noqa: SLF001 - as below
            return _arn("ssm", f"parameter{folder}") if folder else found
        if service == FIGURES:
            return _dashboard(given[3]) or found
        return found

    def context(service: str, action: str, body: bytes, params: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = context_of(service, action, body, params)
        if action != "events:PutEvents":
            return found
        entries = json.loads(body or b"{}").get("Entries", [])
        for key, name in CONDITION_KEYS.items():
            values = sorted({entry.get(name, "") for entry in entries})
            found[key] = values[0] if len(values) == 1 else values
        return found

    iam_actions.extract_resource_arn = resource
    iam_actions.request_tag_context = context


def _arn(service: str, resource: str) -> str:
    region, account = responses.get_region(), responses.get_account_id()
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def _dashboard(body: bytes) -> str:
    """Return the dashboard that a request names; "": none."""
    name = iam_actions._safe_json_field(  # noqa: SLF001 - as MiniStack reads bodies
        body, "DashboardName"
    )
    return f"arn:aws:cloudwatch::{responses.get_account_id()}:dashboard/{name}" if name else ""


def _stream(request: dict[str, Any]) -> str:
    """Return the stream that a request names, or that its iterator is of."""
    iterator = dynamodb_streams._decode_iterator(  # noqa: SLF001 - nothing else knows its stream
        request.get("ShardIterator", "")
    )
    return str(request.get("StreamArn") or (iterator or {}).get("arn") or "*")
