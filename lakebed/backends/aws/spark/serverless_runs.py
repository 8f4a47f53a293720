"""Runs of Spark on EMR Serverless, of one program on one application."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_SPARK
from lakebed.backends.aws.spark.submit_conf import REASON_LENGTH, messages_since, submit_conf
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import RunAsked, RunState, SparkRun

MINUTES_MAX = 720
RUNS_AT_ONCE = 50
"""Most runs that one answer lists."""
REFUSED, KNOWN = "ValidationException", "ConflictException"

OF_DRIVER = "spark.emr-serverless.driverEnv."

_ENDED: Mapping[str, RunState] = {
    "SUCCESS": "succeeded",
    "FAILED": "failed",
    "CANCELLED": "failed",
}
_START = Request(
    what="starting a Spark run",
    needs="emr-serverless:StartJobRun, emr-serverless:TagResource, iam:PassRole",
)
_LIST = Request(what="looking at Spark runs", needs="emr-serverless:ListJobRuns")


class EmrServerlessRuns:
    """Runs on an application, which starts when it is needed. Starting again under the same name
    gives the same run: the name is the request's token."""

    def __init__(self, clients: AmazonClients, application_id: str) -> None:
        self._clients = clients
        self._application = application_id
        self._requests = clients.requests(AMAZON_SPARK, application_id)

    def since(self, at: Micros) -> list[SparkRun]:
        """Return the runs that were created since a time."""
        created = datetime.fromtimestamp(at // MICROS_PER_SECOND, UTC)
        asked: dict[str, Any] = {"createdAtAfter": created, "maxResults": RUNS_AT_ONCE}
        found: list[SparkRun] = []
        while True:
            answer = self._requests.run(
                _LIST,
                lambda: self._clients.spark.list_job_runs(applicationId=self._application, **asked),
            )
            found += [_run(summary) for summary in answer["jobRuns"]]
            if not answer.get("nextToken"):
                return found
            asked["nextToken"] = answer["nextToken"]


class StartableRuns(EmrServerlessRuns):
    """The same for who may start them, as its environment says."""

    def __init__(self, clients: AmazonClients, environment: BulkImportRunsEnvironment) -> None:
        super().__init__(clients, environment.application_id)
        self._environment = environment

    def start(self, name: str, asked: RunAsked, *, launch: int = 0) -> str:
        """Start a run, unless it was started with what an earlier deployment said. launch: not
        looked at, for a run waits here until there is capacity.

        Raises:
            InvalidError: with what EMR Serverless says of the request, too. UnavailableError: it
                may be started; try it again.
        """
        del launch
        submitted = submit_conf(
            self._environment, self._clients.region, asked.spark_conf, of_driver=OF_DRIVER
        )
        options = " ".join(f"--conf {key}={value}" for key, value in submitted.items())
        driver = {
            "sparkSubmit": {
                "entryPoint": self._environment.entry_point,
                "entryPointArguments": [name],
                "sparkSubmitParameters": options,
            }
        }
        started = self._requests.run(_START, lambda: self._start(name, driver))
        return started or self._known(name)

    def _known(self, name: str) -> str:
        """Return the run that a name stands for, which is never refused: it may commit."""
        for run in self.since(messages_since(self._clients.clock)):
            if run.name == name:
                return run.id
        raise UnavailableError("EMR Serverless is busy with a run of this name", run=name)

    def _start(self, name: str, driver: Any) -> str | None:  # noqa: ANN401 - boto3's argument
        """Return the run's id; None: its name stands for a run with other settings."""
        try:
            answer = self._clients.spark.start_job_run(
                applicationId=self._application,
                clientToken=name,
                name=name,
                executionRoleArn=self._environment.job_role_arn,
                executionTimeoutMinutes=MINUTES_MAX,
                jobDriver=driver,
                tags=msgspec.json.decode(self._environment.tags, type=dict[str, str]),
            )
        except ClientError as error:
            details = error.response.get("Error", {})
            if details.get("Code") == KNOWN:
                return None
            if details.get("Code") != REFUSED:
                raise
            hint = "change `spark_conf`, or deploy with a larger `bulk_import_vcpus_max`"
            why = str(details.get("Message", ""))[:REASON_LENGTH]
            raise InvalidError("EMR Serverless refuses the run", why=why, hint=hint) from None
        return str(answer["jobRunId"])


def _run(summary: Any) -> SparkRun:  # noqa: ANN401 - a summary as boto3 gives it
    state = str(summary["state"])
    reason = "" if state == "SUCCESS" else f"{state}: {summary.get('stateDetails', '')}"
    return SparkRun(
        name=str(summary.get("name", "")),
        id=str(summary["id"]),
        state=_ENDED.get(state, "open"),
        reason=reason[:REASON_LENGTH],
    )
