"""What the function needs that creates compaction jobs of tables."""

from __future__ import annotations

import os

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.compaction.create_jobs import CreateCompactionJobs, look_again
from lakebed.config.environments import CompactionCreationEnvironment, environment_of
from lakebed.model.jobs import COMPACTION_CREATION
from lakebed.ports.job_queue import JobQueue
from lakebed.ports.job_tracker import JobTracker
from lakebed.schedules.measure_table import measure_table
from lakebed.schedules.work_on_table import WorkOnTable
from lakebed.statestore.open_table import OpenTable

App = WorkOnTable


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_queues import SqsJobQueue
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(CompactionCreationEnvironment, os.environ)
    clients = amazon_clients()
    return app_over(
        amazon_table_stores(clients, environment),
        queue=SqsJobQueue(clients, environment.jobs_queue_url, rng=system_random()),
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
    )


def app_over(stores: TableStores, *, queue: JobQueue, tracker: JobTracker) -> App:
    """Return the same over stores."""
    create = CreateCompactionJobs(queue=queue, tracker=tracker, clock=stores.clock)

    def work(table: OpenTable) -> int:
        created = create.run(table)
        measure_table(table)
        return created

    return stores.work(COMPACTION_CREATION, work, due=look_again)
