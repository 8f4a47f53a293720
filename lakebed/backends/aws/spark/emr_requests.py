"""Makes the requests to EMR for each run of Spark, and reads its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from lakebed.backends.aws.requests import Request, Requests
from lakebed.backends.aws.spark.submit_conf import REASON_LENGTH, submit_conf
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import RunAsked

OF_DRIVER = "spark.yarn.appMasterEnv."
_REFUSED = ("ValidationException", "InvalidRequestException")


def pages(
    requests: Requests,
    request: Request,
    call: Callable[..., Any],
    asked: Mapping[str, Any],
    field: str,
) -> Iterator[Any]:
    """Yield what all pages of a list have. Raises: UnavailableError."""
    given = dict(asked)
    while True:
        answer = requests.run(request, lambda: call(**given))
        yield from answer[field]
        if not answer.get("Marker"):
            return
        given["Marker"] = answer["Marker"]


def refused_as(call: Callable[[], Any], hint: str) -> Any:  # noqa: ANN401 - boto3's answer
    """Return what EMR answers. Raises: InvalidError where it finds the request invalid."""
    try:
        return call()
    except ClientError as error:
        details = error.response.get("Error", {})
        if details.get("Code") not in _REFUSED:
            raise
        why = str(details.get("Message", ""))[:REASON_LENGTH]
        raise InvalidError("EMR refuses the run", why=why, hint=hint) from None


def submit_step(
    name: str, environment: BulkImportRunsEnvironment, region: str, asked: RunAsked
) -> dict[str, Any]:
    """Return a step that submits our program, whose driver runs in the cluster, once."""
    submitted = submit_conf(environment, region, asked.spark_conf, of_driver=OF_DRIVER)
    submitted["spark.yarn.maxAppAttempts"] = "1"
    options = [word for key, value in submitted.items() for word in ("--conf", f"{key}={value}")]
    words = ["spark-submit", "--deploy-mode", "cluster", *options, environment.entry_point, name]
    return {"Name": name, "HadoopJarStep": {"Jar": "command-runner.jar", "Args": words}}


def micros_of(at: datetime | None) -> Micros:
    """Return a time as EMR tells it; 0: it tells none."""
    return Micros(0 if at is None else int(at.timestamp() * MICROS_PER_SECOND))
