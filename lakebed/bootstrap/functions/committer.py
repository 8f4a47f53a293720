"""Opens what the function needs that commits what is queued: the batch it was handed is its
queue."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.config.environments import CommitterEnvironment, environment_of
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import JobTracker
from lakebed.statestore.committer import Committer
from lakebed.tasks.handed_messages import HandedMessages

Record = Mapping[str, Any]


class BatchCommitter:
    """Commits a batch of messages. received: what a record says.

    queue: from which they came; one that cannot be answered yet is shown again soon.
    """

    def __init__(
        self,
        stores: TableStores,
        *,
        queue: JobQueue,
        tracker: JobTracker,
        received: Callable[[Record], Received],
    ) -> None:
        self._received = received
        self._messages = HandedMessages(queue)
        self._committer = Committer(
            queue=self._messages,
            objects=stores.objects,
            heads=stores.heads,
            tracker=tracker,
            clock=stores.clock,
        )

    def run(self, records: Sequence[Record]) -> set[str]:
        """Commit all. Returns ids of records that are to come again."""
        ids = {record["receiptHandle"]: str(record["messageId"]) for record in records}
        self._messages.hand([self._received(record) for record in records])
        while self._committer.step() is not None:
            pass
        return {ids[receipt] for receipt in self._messages.left()}


App = BatchCommitter


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_queues import SqsJobQueue, received_record
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(CommitterEnvironment, os.environ)
    clients = amazon_clients()
    return App(
        amazon_table_stores(clients, environment),
        queue=SqsJobQueue(clients, environment.commits_queue_url, rng=system_random()),
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
        received=received_record,
    )
