"""The platforms on which an instance runs Spark."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.spark.cluster_runs import EmrClusterRuns
from lakebed.backends.aws.spark.serverless_runs import StartableRuns
from lakebed.backends.aws.spark.shared_runs import EmrSharedRuns
from lakebed.config.environments import BulkImportRunsEnvironment
from lakebed.ports.spark_runs import Platform, SparkRuns


def platforms_of(
    clients: AmazonClients, environment: BulkImportRunsEnvironment
) -> Mapping[Platform, SparkRuns]:
    """Return those that an instance was deployed with."""
    found: dict[Platform, SparkRuns] = {"serverless": StartableRuns(clients, environment)}
    if environment.cluster_service_role:
        found["cluster"] = EmrClusterRuns(clients, environment)
    if environment.shared_cluster:
        found["shared"] = EmrSharedRuns(clients, environment)
    return found
