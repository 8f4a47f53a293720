"""Opens what a schedule's function needs: names and marks of tables, and the queue for one kind of
work."""

from __future__ import annotations

import os

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import TriggerEnvironment, environment_of
from lakebed.schedules.send_ticks import SendTicks

App = SendTicks


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_queues import SqsJobQueue
    from lakebed.backends.aws.table_marks import DynamoTableMarks
    from lakebed.backends.aws.table_registry import DynamoTableRegistry

    environment = environment_of(TriggerEnvironment, os.environ)
    clients = amazon_clients()
    return SendTicks(
        environment.work,
        registry=DynamoTableRegistry(clients, environment.registry_table),
        marks=DynamoTableMarks(clients, environment.registry_table),
        queue=SqsJobQueue(clients, environment.queue_url, rng=system_random()),
        clock=clients.clock,
    )
