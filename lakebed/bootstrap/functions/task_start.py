"""What the functions need that start tasks for a queue."""

from __future__ import annotations

import os
from functools import partial

import msgspec

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.table_stores import amazon_clients
from lakebed.config.environments import TaskStartEnvironment, environment_of
from lakebed.config.fargate import SPOT
from lakebed.tasks.start_tasks import StartTasks

App = StartTasks


def app(kind: str) -> App:
    """Return what the variables of this process name. kind: of the tasks' jobs."""
    from lakebed.backends.aws.job_queues import SqsJobQueue
    from lakebed.backends.aws.task_runner import EcsTaskRunner, FargateTask

    environment = environment_of(TaskStartEnvironment, os.environ)
    clients = amazon_clients()
    task = msgspec.convert(
        {
            **msgspec.structs.asdict(environment),
            "subnets": tuple(environment.subnets.split(",")),
        },
        FargateTask,
    )
    queue = SqsJobQueue(clients, environment.queue_url, rng=system_random())
    return StartTasks(
        kind,
        load=queue.load,
        runner=EcsTaskRunner(clients, task),
        tasks_max=int(environment.tasks_max),
        spot=environment.capacity == SPOT,
    )


ingest = partial(app, "ingest")
compaction = partial(app, "compaction")
