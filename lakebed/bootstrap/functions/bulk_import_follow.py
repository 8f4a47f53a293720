"""Opens what the function needs that looks how bulk imports ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from lakebed.bootstrap.aws_stores import import_requests_of
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.bulk_import.follow_runs import FollowRuns
from lakebed.bulk_import.requests import ImportRequests
from lakebed.config.environments import BulkImportFollowEnvironment, environment_of
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.spark_runs import Platform, SparkRuns

App = FollowRuns


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
    from lakebed.bootstrap.functions.spark_platforms import platforms_of

    environment = environment_of(BulkImportFollowEnvironment, os.environ)
    clients = amazon_clients()
    stores = amazon_table_stores(clients, environment)
    return app_over(
        stores,
        requests=import_requests_of(clients, environment.bucket, stores.rng),
        platforms=platforms_of(clients, environment),
        instance_types=environment.cluster_types.split(","),
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
    )


def app_over(
    stores: TableStores,
    *,
    requests: ImportRequests,
    platforms: Mapping[Platform, SparkRuns],
    instance_types: Sequence[str],
    tracker: JobTracker,
) -> App:
    """Return the same over stores."""
    return FollowRuns(
        find_table=stores.find,
        requests=requests,
        platforms=platforms,
        instance_types=instance_types,
        tracker=tracker,
        clock=stores.clock,
    )
