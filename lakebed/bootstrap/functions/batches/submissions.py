"""Opens what the function needs that submits files of messages, and files that arrive."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.bootstrap.functions.sent_messages import Record, SentMessages
from lakebed.config.environments import SubmissionsEnvironment, environment_of, sources_in
from lakebed.ports.job_queue import JobQueue, Received

if TYPE_CHECKING:
    from lakebed.ingest.take_submissions import TakeSubmissions


class Submissions(SentMessages):
    """Submits what messages tell of. received: what a record says."""

    def __init__(
        self, service: TakeSubmissions, queue: JobQueue, *, received: Callable[[Record], Received]
    ) -> None:
        super().__init__(queue, received=received)
        self._service = service

    def run(self, body: bytes) -> None:
        """Submit the files of a message. Raises: as `TakeSubmissions.run`."""
        self._service.run(body)


App = Submissions


def app() -> App:
    """Return what the variables of this process name. Loads what checks messages."""
    from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
    from lakebed.backends.aws.job_queues import SqsJobQueue, received_record
    from lakebed.backends.aws.table_registry import DynamoTableRegistry
    from lakebed.backends.local.source_files import LocalSourceFiles
    from lakebed.backends.system.random_source import system_random
    from lakebed.bootstrap.aws_stores import source_files_of
    from lakebed.bootstrap.functions.function_clients import amazon_clients
    from lakebed.ingest.allowed_files import AllowedFiles
    from lakebed.ingest.submit_files import SubmitFiles
    from lakebed.ingest.take_submissions import TakeSubmissions
    from lakebed.tables.catalog import entry_named

    environment = environment_of(SubmissionsEnvironment, os.environ)
    clients, rng = amazon_clients(), system_random()
    objects = source_files_of(clients, rng, Path(tempfile.gettempdir()))
    files = AllowedFiles(sources_in(environment.sources), objects=objects, local=LocalSourceFiles())
    batches = DynamoFileBatches(clients, environment.batches_table, rng=rng)
    registry = DynamoTableRegistry(clients, environment.registry_table)
    service = TakeSubmissions(
        submit=SubmitFiles(batches=batches, files=files, clock=clients.clock),
        registry=registry,
        find=partial(entry_named, registry),
    )
    queue = SqsJobQueue(clients, environment.queue_url, rng=rng)
    return App(service, queue, received=received_record)
