"""What the functions need that start tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import StartedTaskEnvironment, TaskStartEnvironment, environment_of
from lakebed.config.fargate import SPOT
from lakebed.ports.job_queue import QueueLoad
from lakebed.tasks.start_tasks import StartTasks

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

App = StartTasks


def app(kind: str) -> App:
    """Return what the variables of this process name. kind: of the tasks' jobs."""
    from lakebed.backends.aws.job_queues import SqsJobQueue

    environment = environment_of(TaskStartEnvironment, os.environ)
    clients = amazon_clients()
    queue = SqsJobQueue(clients, environment.queue_url, rng=system_random())
    return started_by(kind, clients, environment, load=queue.load)


def started_by(
    kind: str,
    clients: AmazonClients,
    environment: StartedTaskEnvironment,
    *,
    load: Callable[[], QueueLoad],
) -> App:
    """Return what starts tasks as an environment says. load: what they are to do."""
    from lakebed.backends.aws.task_runner import EcsTaskRunner, FargateTask

    said = msgspec.structs.asdict(environment)
    task = msgspec.convert({**said, "subnets": tuple(environment.subnets.split(","))}, FargateTask)
    return StartTasks(
        kind,
        load=load,
        runner=EcsTaskRunner(clients, task),
        tasks_max=int(environment.tasks_max),
        spot=environment.capacity == SPOT,
    )


ingest = partial(app, "ingest")
compaction = partial(app, "compaction")
