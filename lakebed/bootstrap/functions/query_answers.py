"""Opens what the functions need that answer users' queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws_stores import objects_of
from lakebed.bootstrap.functions.counted_function import function_budgets
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.sent_messages import SentMessages
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.bootstrap.functions.table_stores import amazon_table_stores
from lakebed.config.environments import QueryEnvironment, QueryQueueEnvironment, environment_of
from lakebed.config.job_queues import QUERY_HELD_SECONDS
from lakebed.errors import LakebedError
from lakebed.model.names import Micros
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.query.answer_messages import AnswerMessages, QueryAnswer
from lakebed.query.past_versions import PastVersions
from lakebed.query.results import Results
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.keep_hidden import keep_hidden

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

App = AnswerMessages


class QueuedQueries(SentMessages):
    """Answers queries of a queue. received: what a record says."""

    def __init__(
        self,
        answers: AnswerMessages,
        queue: JobQueue,
        *,
        received: Callable[[Mapping[str, Any]], Received],
    ) -> None:
        super().__init__(queue, received=received)
        self._answers = answers

    def keep(self, body: bytes, *, sent_at: Micros, receipt: str) -> QueryAnswer:
        """Write a result down. The message stays out of sight as long as that takes, and comes back
        soon when this process dies meanwhile. Raises: as `AnswerMessages.keep`."""
        with suppress(LakebedError):  # then it comes back later
            self._queue.extend(receipt, hidden_seconds=QUERY_HELD_SECONDS)
        with keep_hidden(self._queue, receipt, hidden_seconds=QUERY_HELD_SECONDS):
            return self._answers.keep(body, sent_at=sent_at)


def app() -> App:
    """Return what the variables of this process name."""
    return _answers(amazon_clients(), environment_of(QueryEnvironment, os.environ))


def queued() -> QueuedQueries:
    """Return the same for messages of a queue."""
    from lakebed.backends.aws.job_queues import SqsJobQueue, received_record

    environment = environment_of(QueryQueueEnvironment, os.environ)
    clients = amazon_clients()
    queue = SqsJobQueue(clients, environment.query_queue_url, rng=system_random())
    return QueuedQueries(_answers(clients, environment), queue, received=received_record)


def _answers(clients: AmazonClients, environment: QueryEnvironment) -> App:
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    stores = amazon_table_stores(clients, environment)
    results = objects_of(clients, environment.results_bucket, "", stores.rng)
    return answers_over(
        query=RunQuery(
            files=ParquetFiles(stores.objects, spill_directory=stores.scratch),
            past=PastVersions(logs=stores.logs, snapshots=stores.heads.snapshots),
            budgets=function_budgets(),
        ),
        find_table=catalog_over(stores).find,
        tracker=DynamoDbJobTracker(clients, environment.tracker_table),
        clock=stores.clock,
        results=results,
        location=f"{results.location}/objects",
    )


def answers_over(
    *,
    query: RunQuery[pa.RecordBatch],
    find_table: Callable[[str], OpenTable],
    tracker: JobTracker,
    clock: Clock,
    results: ObjectStore,
    location: str,
) -> App:
    """Return what answers queries of messages on a lake. location: where people find results."""
    return AnswerMessages(
        query=query,
        find_table=find_table,
        results=Results(results, location=location),
        tracker=tracker,
        clock=clock,
    )
