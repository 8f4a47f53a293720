"""Opens what the function needs that makes batches of submitted files."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.config.environments import BatchingEnvironment, environment_of
from lakebed.ingest.batch_files import BatchFiles
from lakebed.ingest.dropped_tables import DropBatches
from lakebed.model.names import TableId
from lakebed.ports.file_batches import BatchTarget, FileBatches
from lakebed.ports.job_queue import JobQueue
from lakebed.ports.job_tracker import JobTracker


class BatchTables:
    """Makes batches of tables that messages name, of offline ones too. queues: take their jobs."""

    def __init__(
        self,
        stores: TableStores,
        *,
        batches: FileBatches,
        queues: Mapping[BatchTarget, JobQueue],
        tracker: JobTracker,
    ) -> None:
        self._stores = stores
        self._batch = BatchFiles(
            batches=batches, queues=queues, tracker=tracker, clock=stores.clock
        )
        self._drop = DropBatches(
            batches=batches, heads=stores.heads, tracker=tracker, clock=stores.clock
        )

    def run(self, table: TableId) -> int:
        """Work on a table. One in quarantine is left alone; what waits for one that was dropped is
        forgotten. Returns how many batches were planned. Raises: as `BatchFiles.run`."""
        entries = [entry for entry in self._stores.registry.list() if entry.id == table]
        if not entries:
            self._drop.run(table)
            return 0
        return 0 if entries[0].quarantined else self._batch.run(self._stores.opened(entries[0]))


App = BatchTables


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
    from lakebed.backends.aws.job_queues import SqsJobQueue
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(BatchingEnvironment, os.environ)
    clients, rng = amazon_clients(), system_random()
    urls: dict[BatchTarget, str] = {
        "ingest": environment.ingest_queue_url,
        "bulk-import": environment.bulk_import_queue_url,
    }
    return BatchTables(
        amazon_table_stores(clients, environment),
        batches=DynamoFileBatches(clients, environment.batches_table, rng=rng),
        queues={name: SqsJobQueue(clients, url, rng=rng) for name, url in urls.items() if url},
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
    )
