"""Runs the driver of a bulk import that came as a message."""

from __future__ import annotations

import os
import sys
from contextlib import closing

from lakebed.backends.aws.absent_queues import AbsentQueues
from lakebed.bootstrap.app import App
from lakebed.bootstrap.aws import open_instance
from lakebed.bootstrap.aws_stores import import_requests_of
from lakebed.bootstrap.bulk_import import BulkImportApp, ClusterFor
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.environments import BulkImportEnvironment, environment_of, sources_in
from lakebed.config.instance import instance_id
from lakebed.observe.json_lines import write_json_lines
from lakebed.tasks.user_jobs import Ingested


def run(name: str, cluster_for: ClusterFor) -> Ingested:
    """Do what is asked for under a name, of the instance that this process's variables name.

    Raises:
        ObjectMissingError: nothing is, any more. Others as `ImportRows.run`; the tracker has the
            reason.
    """
    environment = environment_of(BulkImportEnvironment, os.environ)
    always = {"instance": environment.instance, "run": name}
    write_json_lines(sys.stdout, always, table_metrics=environment.table_metrics)
    services = opened(environment)
    with BulkImportApp(services) as app, closing(amazon_clients()) as clients:
        request = import_requests_of(clients, environment.bucket, services.rng).get(name)
        sources = sources_in(environment.sources)
        return app.run_request(request, sources=sources, cluster_for=cluster_for)


def opened(environment: BulkImportEnvironment) -> App:
    """Return the services of an instance by the names that a driver was given: it has no queue."""
    instance = instance_id(environment.instance)
    resources = InstanceResources(
        instance=instance,
        bucket=environment.bucket,
        prefix=environment.objects_prefix,
        log_table=environment.log_table,
        registry_table=environment.registry_table,
        tracker_table=environment.tracker_table,
    )
    return open_instance(
        instance, resources=resources, queues=AbsentQueues(), first_report_seconds=0.0
    )
