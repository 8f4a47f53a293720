"""Opens what the function needs that frees what dead compaction jobs held."""

from __future__ import annotations

import os

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.compaction.run_job import GiveUpCompactionJob
from lakebed.config.environments import DeadLettersEnvironment, environment_of
from lakebed.ports.job_queue import JobQueue
from lakebed.ports.job_tracker import JobTracker

App = GiveUpDeadJobs


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_queues import SqsJobQueue
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(DeadLettersEnvironment, os.environ)
    clients, rng = amazon_clients(), system_random()
    return app_over(
        amazon_table_stores(clients, environment),
        jobs=SqsJobQueue(clients, environment.jobs_queue_url, rng=rng),
        commits=SqsJobQueue(clients, environment.commits_queue_url, rng=rng),
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
    )


def app_over(stores: TableStores, *, jobs: JobQueue, commits: JobQueue, tracker: JobTracker) -> App:
    """Return the same over stores."""
    return GiveUpDeadJobs(
        jobs=jobs,
        commits=commits,
        objects=stores.objects,
        find_table=stores.find,
        give_up=GiveUpCompactionJob(clock=stores.clock, tracker=tracker),
        tracker=tracker,
    )
