"""Opens what the function needs that starts bulk imports of messages."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakebed.bootstrap.functions.sent_messages import Record, SentMessages
from lakebed.config.environments import BulkImportStartEnvironment, environment_of, sources_in
from lakebed.model.names import Micros
from lakebed.ports.job_queue import JobQueue, Received

if TYPE_CHECKING:
    from lakebed.bulk_import.start_runs import StartRuns


class ImportStarter(SentMessages):
    """Starts the runs of messages. received: what a record says."""

    def __init__(
        self, service: StartRuns, queue: JobQueue, *, received: Callable[[Record], Received]
    ) -> None:
        super().__init__(queue, received=received)
        self._service = service

    def start(self, body: bytes, *, sent_at: Micros) -> None:
        """Start the run of a message. Raises: as `StartRuns.start`."""
        self._service.start(body, sent_at=sent_at)


App = ImportStarter


def app() -> App:
    """Return what the variables of this process name. Loads what checks messages."""
    from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
    from lakebed.backends.aws.job_queues import SqsJobQueue, received_record
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
    from lakebed.bootstrap.aws_stores import import_requests_of
    from lakebed.bootstrap.functions.function_clients import amazon_clients
    from lakebed.bootstrap.functions.spark_platforms import platforms_of
    from lakebed.bootstrap.functions.table_names import catalog_over
    from lakebed.bootstrap.functions.table_stores import amazon_table_stores
    from lakebed.bulk_import.start_runs import StartRuns
    from lakebed.ingest.allowed_files import AllowedSources

    environment = environment_of(BulkImportStartEnvironment, os.environ)
    clients = amazon_clients()
    stores = amazon_table_stores(clients, environment)
    service = StartRuns(
        find_table=catalog_over(stores).find,
        find_id=stores.find,
        batches=DynamoFileBatches(clients, environment.batches_table, rng=stores.rng),
        check_file=AllowedSources(sources_in(environment.sources)).check,
        requests=import_requests_of(clients, environment.bucket, stores.rng),
        platforms=platforms_of(clients, environment),
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
        clock=stores.clock,
    )
    queue = SqsJobQueue(clients, environment.queue_url, rng=stores.rng)
    return App(service, queue, received=received_record)
