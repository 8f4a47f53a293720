"""Opens what the functions need that start tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import StartedTaskEnvironment, TaskStartEnvironment, environment_of
from lakebed.config.fargate import MACHINES, SPOT
from lakebed.config.instance import InstanceId, capacity_provider
from lakebed.ports.job_queue import QueueLoad
from lakebed.tasks.start_tasks import StartTasks

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.backends.aws.task_runner import EcsTaskRunner

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
    return StartTasks(
        kind,
        load=load,
        runner=task_runner(clients, environment),
        tasks_max=int(environment.tasks_max),
        spot=environment.capacity == SPOT,
    )


def task_runner(clients: AmazonClients, environment: StartedTaskEnvironment) -> EcsTaskRunner:
    """Return what runs tasks as an environment says."""
    from lakebed.backends.aws.task_runner import EcsTask, EcsTaskRunner

    said = msgspec.structs.asdict(environment)
    on_machines = environment.capacity == MACHINES
    provider = capacity_provider(InstanceId(environment.instance)) if on_machines else ""
    subnets = tuple(environment.subnets.split(","))
    task = msgspec.convert({**said, "subnets": subnets, "capacity_provider": provider}, EcsTask)
    return EcsTaskRunner(clients, task)


ingest = partial(app, "ingest")
compaction = partial(app, "compaction")
