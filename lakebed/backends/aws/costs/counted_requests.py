"""Requests of boto3's clients, counted where each try of one ends, and their units of DynamoDB.

A try that never left this machine is not counted: it is not paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ProxyConnectionError,
)

from lakebed.observe import usage
from lakebed.observe.usage import Counter

_ASKED: Final = "ReturnConsumedCapacity"
WITH_UNITS: Final = {_ASKED: "TOTAL"}
"""Asks DynamoDB to say how many units a request took."""

_UNSENT = (
    EndpointConnectionError,
    ConnectTimeoutError,
    ProxyConnectionError,
    NoCredentialsError,
)
_READING = {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}
_UNMET_UNITS: Final = {
    "ConditionalCheckFailedException": 1.0,
    "TransactionCanceledException": 2.0,
}
"""Fewest write units of a refused write, by the error's code: no answer says how much."""

_OF_S3: Final[Mapping[str, Counter]] = {
    "Get": "s3_get",
    "Head": "s3_get",
    "List": "s3_list",
    "Delete": "s3_delete",
    "Abort": "s3_delete",
}
"""The counter of an S3 request, by the first word of its operation. Other operations put an object,
or cost as much as a put."""
_OF_SERVICE: Final[Mapping[str, Counter]] = {
    "dynamodb": "dynamodb_requests",
    "sqs": "sqs_requests",
    "kms": "kms_requests",
}


def count_requests(client: Any) -> None:  # noqa: ANN401 - boto3's classes are made at run time
    """Count what a client sends from now on, in the threads that send it."""
    events = client.meta.events
    events.register("needs-retry", _count)
    if client.meta.service_model.service_name == "dynamodb":
        events.register("provide-client-params.dynamodb", _ask_for_units)


def _count(
    operation: Any,  # noqa: ANN401 - botocore's model of it
    request_dict: Mapping[str, Any],
    response: tuple[Any, Mapping[str, Any]] | None = None,
    caught_exception: Exception | None = None,
    **_: object,
) -> None:
    """Count a try that has ended. botocore asks whether to try again, and is not told to."""
    if isinstance(caught_exception, _UNSENT):
        return
    service, name = operation.service_model.service_name, operation.name
    if service == "s3":
        _count_s3(name, request_dict)
        return
    usage.count(_OF_SERVICE.get(service, "other_requests"))
    if service == "dynamodb" and response is not None:
        counter: Counter = "dynamodb_read_units" if name in _READING else "dynamodb_write_units"
        units = _units(response[1])
        if units:
            usage.count(counter, units)


def _count_s3(name: str, request: Mapping[str, Any]) -> None:
    found: list[Counter] = [c for word, c in _OF_S3.items() if name.startswith(word)]
    counter: Counter = found[0] if found else "s3_put"
    usage.count(counter)
    body = request.get("body")
    if counter == "s3_put" and isinstance(body, bytes | bytearray):
        usage.count("s3_put_bytes", len(body))


def _units(answer: Mapping[str, Any]) -> float:
    """Return the units that an answer says, of one table or several."""
    consumed = answer.get("ConsumedCapacity")
    if consumed is None:
        return _UNMET_UNITS.get(answer.get("Error", {}).get("Code", ""), 0.0)
    of_tables = consumed if isinstance(consumed, list) else [consumed]
    return float(sum(each.get("CapacityUnits", 0.0) for each in of_tables))


def _ask_for_units(
    params: dict[str, Any],
    model: Any,  # noqa: ANN401 - botocore's model of the operation
    **_: object,
) -> None:
    if _ASKED in model.input_shape.members:
        params.setdefault(_ASKED, WITH_UNITS[_ASKED])
