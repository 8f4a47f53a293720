"""Opens what a schedule's function needs: which tables have submitted files, and the queue for
them."""

from __future__ import annotations

import os

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import BatchingTriggerEnvironment, environment_of
from lakebed.schedules.send_ticks import SendBatchTicks

App = SendBatchTicks


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
    from lakebed.backends.aws.job_queues import SqsJobQueue

    environment = environment_of(BatchingTriggerEnvironment, os.environ)
    clients, rng = amazon_clients(), system_random()
    return SendBatchTicks(
        batches=DynamoFileBatches(clients, environment.batches_table, rng=rng),
        queue=SqsJobQueue(clients, environment.queue_url, rng=rng),
    )
