"""Platforms of AWS that run Spark, answered in this process as the local cloud answers for them:
requests are checked and answers are read by boto3."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import msgspec
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.spark.cluster_runs import EmrClusterRuns
from lakebed.backends.aws.spark.serverless_runs import StartableRuns
from lakebed.backends.aws.spark.shared_runs import EmrSharedRuns
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.ports.spark_runs import SparkRuns
from localcloud.programs import emulator_spark
from localcloud.programs.emulator_emr import Clusters, RefusedError

APPLICATION = "00application"
ENVIRONMENT = BulkImportRunsEnvironment(
    instance="dev",
    bucket="data",
    objects_prefix="lake",
    log_table="log",
    registry_table="registry",
    table_metrics="false",
    tracker_table="tracker",
    sources="s3://landing",
    function_disk_mib="512",
    spark_release="emr-spark-8.0.0",
    application_id=APPLICATION,
    job_role_arn="arn:aws:iam::123456789012:role/job",
    entry_point="s3://assets/main.py",
    archive="s3://assets/archive.zip",
    python="python3.11",
    tags='{"team":"data"}',
    cluster_service_role="service",
    cluster_profile="machines",
    cluster_security="security",
    cluster_security_group="sg-1",
    cluster_subnets="subnet-1,subnet-2",
    cluster_types="m7g.2xlarge,m6g.2xlarge",
    cluster_units_max="10",
    cluster_logs="s3://data/spark-logs/",
    shared_cluster="",
)


class _Body(BytesIO):
    def stream(self, **_: object) -> list[bytes]:
        return [self.read()]


Answer = Callable[[AWSPreparedRequest], tuple[int, dict[str, str], bytes]]


def answered(clients: AmazonClients, service: str, answer: Answer) -> None:
    """Answer all requests to a service."""

    def before_send(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        status, headers, body = answer(request)
        return AWSResponse(request.url, status, headers, _Body(body))

    client = clients.emr if service == "emr" else clients.spark
    client.meta.events.register(f"before-send.{service}", before_send)


class ServerlessDouble:
    """EMR Serverless."""

    def __init__(self, clients: AmazonClients) -> None:
        self.loses_answers = False
        emulator_spark._runs.clear()
        emulator_spark._applications[APPLICATION] = {}
        answered(clients, "emr-serverless", self._answer)
        self.runs: SparkRuns = StartableRuns(clients, ENVIRONMENT)

    def _answer(self, request: AWSPreparedRequest) -> tuple[int, dict[str, str], bytes]:
        path, _, query = request.url.partition("amazonaws.com")[2].partition("?")
        given = json.loads(request.body or b"{}")
        fields = {"createdAtAfter": ""} if query else {}
        try:
            found = emulator_spark._done(request.method, path, {}, given, fields)
        except emulator_spark._RefusedError as refusal:
            headers = {"x-amzn-ErrorType": refusal.code}
            return refusal.status, headers, json.dumps({"message": str(refusal)}).encode()
        if self.loses_answers and request.method == "POST":
            return 500, {}, b"{}"
        return 200, {}, json.dumps(found).encode()

    def started(self) -> int:
        return len(emulator_spark._runs)

    def begin(self) -> None:
        self._set("RUNNING", "")

    def succeed(self) -> None:
        self._set("SUCCESS", "")

    def fail(self, why: str) -> None:
        self._set("FAILED", why)

    def _set(self, state: str, details: str) -> None:
        emulator_spark.set_state(list(emulator_spark._runs)[-1], state, details)


class EmrDouble:
    """EMR, for clusters of one run, or for one that stays."""

    def __init__(self, clients: AmazonClients, *, shared: bool) -> None:
        self.loses_answers = False
        self.clusters = Clusters()
        answered(clients, "emr", self._answer)
        self._shared = shared
        self.runs: SparkRuns = EmrClusterRuns(clients, ENVIRONMENT)
        if shared:
            self.runs = EmrSharedRuns(clients, with_shared(self.given_cluster()))

    def given_cluster(self) -> str:
        fleet = {"InstanceFleetType": "MASTER", "InstanceTypeConfigs": []}
        instances = {"KeepJobFlowAliveWhenNoSteps": True, "InstanceFleets": [fleet]}
        given = {"Name": "shared", "JobFlowRole": "machines", "Instances": instances}
        return str(self.clusters.answer("RunJobFlow", given)["JobFlowId"])

    def _answer(self, request: AWSPreparedRequest) -> tuple[int, dict[str, str], bytes]:
        operation = request.headers["X-Amz-Target"]
        operation = operation.decode() if isinstance(operation, bytes) else operation
        given = json.loads(request.body)
        try:
            found = self.clusters.answer(operation.rpartition(".")[2], given)
        except RefusedError as refusal:
            body = {"__type": refusal.code, "Message": str(refusal), "message": str(refusal)}
            return 400, {}, json.dumps(body).encode()
        if self.loses_answers and operation.endswith(("RunJobFlow", "AddJobFlowSteps")):
            return 500, {}, b"{}"
        return 200, {}, json.dumps(found).encode()

    def started(self) -> int:
        return len(self.clusters._clusters) if not self._shared else len(self._open())

    def begin(self) -> None:
        self._set("RUNNING", "")

    def succeed(self) -> None:
        self._set("COMPLETED", "")

    def fail(self, why: str) -> None:
        self._set("FAILED", why)

    def _open(self) -> list[dict[str, Any]]:
        return self.clusters.waiting()

    def _set(self, state: str, message: str) -> None:
        one = self._open()[-1]
        self.clusters.set_step(one["cluster"]["Id"], one["step"]["Id"], state, message)


def with_shared(cluster: str) -> BulkImportRunsEnvironment:
    """Return what an instance with a shared cluster is deployed with."""
    return msgspec.structs.replace(ENVIRONMENT, shared_cluster=cluster)
