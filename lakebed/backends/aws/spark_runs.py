"""Runs of Spark on EMR Serverless, of one program on one application."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_SPARK
from lakebed.config.environments import (
    BulkImportEnvironment,
    BulkImportStartEnvironment,
    variables_of,
)
from lakebed.config.job_queues import KEPT_DAYS
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import RunState, SparkRun

FOLDER = "environment"
"""Where each process of Spark finds our code and its packages, below where it runs."""
STATES_FOLDER = "/tmp/lakebed"  # noqa: S108 - the only folder that a worker surely may write
MINUTES_MAX = 720
RUNS_AT_ONCE = 50
"""That one answer lists at the most."""
REASON_LENGTH = 300
REFUSED, KNOWN = "ValidationException", "ConflictException"
SENT_SECONDS_MAX = KEPT_DAYS * 86_400
"""How long a message may have been under way, and its run be known."""

CONF = {
    "spark.driver.cores": "2",
    "spark.driver.memory": "2g",
    "spark.driver.memoryOverhead": "6g",
    "spark.executor.cores": "4",
    "spark.executor.memory": "2g",
    "spark.executor.memoryOverhead": "6g",
    "spark.task.maxFailures": "4",
}
"""Unless a message says otherwise. Rows are in processes of Python, beside Spark's: 1.5 GB each."""

_ENDED: Mapping[str, RunState] = {
    "SUCCESS": "succeeded",
    "FAILED": "failed",
    "CANCELLED": "failed",
}
_START = Request(what="starting a Spark run", needs="emr-serverless:StartJobRun, iam:PassRole")
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

    def __init__(self, clients: AmazonClients, environment: BulkImportStartEnvironment) -> None:
        super().__init__(clients, environment.application_id)
        self._environment = environment

    def start(self, name: str, conf: Mapping[str, str]) -> str:
        """Start a run, unless it was started with what an earlier deployment said.

        Raises:
            InvalidError: with what EMR Serverless says of the request, too. UnavailableError: it
                may be started; try it again.
        """
        environment = self._environment
        submitted = {**CONF, **conf, **submit_conf(environment, self._clients.region)}
        options = " ".join(f"--conf {key}={value}" for key, value in submitted.items())
        driver = {
            "sparkSubmit": {
                "entryPoint": environment.entry_point,
                "entryPointArguments": [name],
                "sparkSubmitParameters": options,
            }
        }
        started = self._requests.run(_START, lambda: self._start(name, driver))
        return started or self._known(name)

    def _known(self, name: str) -> str:
        """Return the run that a name stands for, which is never refused: it may commit."""
        since = self._clients.clock.now() - SENT_SECONDS_MAX * MICROS_PER_SECOND
        for run in self.since(Micros(max(0, since))):
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


def submit_conf(environment: BulkImportStartEnvironment, region: str) -> dict[str, str]:
    """Return the settings of Spark that are ours: where code and packages are, and what the driver
    is told. No message may say otherwise."""
    own = BulkImportEnvironment(
        **{name: getattr(environment, name) for name in BulkImportEnvironment.__struct_fields__}
    )
    everywhere = {
        "PYTHONPATH": f"./{FOLDER}",
        "PYSPARK_PYTHON": environment.python,
        "AWS_REGION": region,
    }
    driver = {
        **everywhere,
        "PYSPARK_DRIVER_PYTHON": environment.python,
        "LAKEBED_CACHE": STATES_FOLDER,
        **variables_of(own),
    }
    return {
        "spark.archives": f"{environment.archive}#{FOLDER}",
        **{f"spark.executorEnv.{name}": value for name, value in everywhere.items()},
        **{f"spark.emr-serverless.driverEnv.{name}": value for name, value in driver.items()},
    }


def _run(summary: Any) -> SparkRun:  # noqa: ANN401 - a summary as boto3 gives it
    state = str(summary["state"])
    reason = "" if state == "SUCCESS" else f"{state}: {summary.get('stateDetails', '')}"
    return SparkRun(
        name=str(summary.get("name", "")),
        id=str(summary["id"]),
        state=_ENDED.get(state, "open"),
        reason=reason[:REASON_LENGTH],
    )
