"""What the functions need that answer users' queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.backends.system.chance import system_random
from lakebed.bootstrap.aws_stores import objects_of
from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.config.environments import QueryEnvironment, QueryQueueEnvironment, environment_of
from lakebed.garbage.sweep import DeleteTableObjects
from lakebed.model.names import Micros
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.query.answer_messages import Answer, AnswerMessages
from lakebed.query.results import Results
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.tables.catalog import TableCatalog

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

RETRY_SECONDS = 120.0
"""After which a queued query that failed is tried again."""

App = AnswerMessages


class QueuedQueries:
    """Answers queries of a queue. received: what a record says."""

    def __init__(
        self,
        answers: AnswerMessages,
        queue: JobQueue,
        *,
        received: Callable[[Mapping[str, Any]], Received],
    ) -> None:
        self._answers = answers
        self._queue = queue
        self._received = received

    def keep(self, body: bytes, *, sent_at: Micros) -> Answer:
        """Write a result down. Raises: as `AnswerMessages.keep`."""
        return self._answers.keep(body, sent_at=sent_at)

    def refused(self, record: Mapping[str, Any]) -> None:
        """Put a message that can never work among the dead letters. Raises: as `give_up`."""
        self._queue.give_up(self._received(record))

    def failed(self, record: Mapping[str, Any]) -> None:
        """Let a message come back soon. Raises: UnavailableError."""
        self._queue.extend(self._received(record).receipt, hidden_seconds=RETRY_SECONDS)


def app() -> App:
    """Return what the variables of this process name."""
    return _answers(amazon_clients(), environment_of(QueryEnvironment, os.environ))


def queued() -> QueuedQueries:
    """Return the same for messages of a queue."""
    from lakebed.backends.aws.job_queues import SqsJobQueue, received_record

    environment = environment_of(QueryQueueEnvironment, os.environ)
    clients = amazon_clients()
    queue = SqsJobQueue(clients, environment.query_queue_url, chance=system_random())
    return QueuedQueries(_answers(clients, environment), queue, received=received_record)


def _answers(clients: AmazonClients, environment: QueryEnvironment) -> App:
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    stores = amazon_table_stores(clients, environment)
    results = objects_of(clients, environment.results_bucket, "", stores.chance)
    return answers_over(
        query=RunQuery(files=ParquetFiles(stores.objects, spill_directory=stores.scratch)),
        find_table=_catalog(stores).find,
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
        clock=stores.clock,
        results=results,
        place=f"{results.place}/objects",
    )


def _catalog(stores: TableStores) -> TableCatalog:
    return TableCatalog(
        registry=stores.registry,
        logs=stores.logs,
        open_head=stores.heads,
        delete_objects=DeleteTableObjects(objects=stores.objects),
        chance=stores.chance,
    )


def answers_over(
    *,
    query: RunQuery[pa.RecordBatch],
    find_table: Callable[[str], OpenTable],
    tracker: JobTracker,
    clock: Clock,
    results: ObjectStore,
    place: str,
) -> App:
    """Return what answers queries of messages on a lake. place: where people find results."""
    return AnswerMessages(
        query=query,
        find_table=find_table,
        results=Results(results, place=place),
        tracker=tracker,
        clock=clock,
    )
