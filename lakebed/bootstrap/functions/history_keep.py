"""Builds what keeps the jobs of each day in a table of the instance."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.bootstrap.history import begin_history
from lakebed.config.environments import HistoryEnvironment, environment_of
from lakebed.history.keep_jobs import KeepJobs, Kept
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.ports.job_tracker import JobTracker
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.open_table import OpenTable

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients


class KeepHistory:
    """Keeps jobs. table: returns where, made if there is none."""

    def __init__(self, keep: KeepJobs, table: Callable[[], OpenTable]) -> None:
        self._keep = keep
        self._table = table

    def run(self) -> Kept:
        """Keep the days that have ended. Raises: as `KeepJobs.run`."""
        return self._keep.run(self._table())


def app() -> KeepHistory:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(HistoryEnvironment, os.environ)
    clients: AmazonClients = amazon_clients()
    return history_over(
        amazon_table_stores(clients, environment),
        DynamoDbJobTracker(clients, environment.tracker_table),
        days=int(environment.history_days),
    )


def history_over(stores: TableStores, tracker: JobTracker, *, days: int) -> KeepHistory:
    """Return the same over stores. days: for which a new table keeps jobs."""
    catalog = catalog_over(stores)
    files = ParquetFiles(stores.objects, spill_directory=stores.scratch)
    keep = KeepJobs(
        ingest=IngestRows[pa.RecordBatch](files=files, clock=stores.clock, tracker=tracker),
        entries=catalog.list,
        tracker=tracker,
        clock=stores.clock,
    )
    return KeepHistory(keep, lambda: begin_history(catalog, days))
