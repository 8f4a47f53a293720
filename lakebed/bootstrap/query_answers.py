"""What the functions need that answer users' queries."""

from __future__ import annotations

import os

from lakebed.bootstrap.app import App as Services
from lakebed.bootstrap.aws import AwsApp
from lakebed.config.environments import QueryEnvironment, environment_of
from lakebed.config.instance import InstanceResources, instance_id
from lakebed.ports.object_store import ObjectStore
from lakebed.query.answer_messages import AnswerMessages
from lakebed.query.results import Results

App = AnswerMessages


def app() -> App:
    """Return what the variables of this process name."""
    environment = environment_of(QueryEnvironment, os.environ)
    instance = instance_id(environment.instance)
    resources = InstanceResources(
        instance=instance,
        bucket=environment.bucket,
        prefix=environment.objects_prefix,
        log_table=environment.log_table,
        registry_table=environment.registry_table,
        tracker_table=environment.tracker_table,
    )
    services = AwsApp(instance, resources=resources)
    objects = services.objects_in(environment.results_bucket)
    return answers_over(services, objects, place=f"{objects.place}/objects")


def answers_over(services: Services, results: ObjectStore, *, place: str) -> App:
    """Return what answers queries of messages on a lake. place: where people find results."""
    return AnswerMessages(
        query=services.query,
        find_table=services.catalog.find,
        results=Results(results, place=place),
        tracker=services.tracker,
        clock=services.clock,
    )
