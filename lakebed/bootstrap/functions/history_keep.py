"""Builds what keeps the jobs and the usage of each day in tables of the instance."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.bootstrap.history import begin_history, begin_usage
from lakebed.config.environments import HistoryEnvironment, environment_of
from lakebed.history.keep_days import KeepDays
from lakebed.history.keep_jobs import EndedJobs
from lakebed.history.keep_usage import UsedHours
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.open_table import OpenTable

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients


class KeepHistory:
    """Keeps days. tables: what is kept, and returns where, made if there is none."""

    def __init__(self, *tables: tuple[KeepDays, Callable[[], OpenTable]]) -> None:
        self._tables = tables

    def run(self) -> None:
        """Keep the days that have ended. Raises: as `KeepDays.run`."""
        for keep, table in self._tables:
            keep.run(table())


def app() -> KeepHistory:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.costs.usage_ledger import DynamoUsageLedger
    from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

    environment = environment_of(HistoryEnvironment, os.environ)
    clients: AmazonClients = amazon_clients()
    tracker, registry = environment.tracker_table, environment.registry_table
    return history_over(
        amazon_table_stores(clients, environment),
        DynamoDbJobTracker(clients, tracker),
        DynamoUsageLedger(clients, tracker, registry=registry),
        days=int(environment.history_days),
    )


def history_over(
    stores: TableStores, tracker: JobTracker, ledger: UsageLedger, *, days: int
) -> KeepHistory:
    """Return the same over stores. days: for which new tables keep rows."""
    catalog = catalog_over(stores)
    files = ParquetFiles(stores.objects, spill_directory=stores.scratch)
    ingest = IngestRows[pa.RecordBatch](files=files, clock=stores.clock, tracker=tracker)
    jobs = EndedJobs(entries=catalog.list, tracker=tracker)
    usage = UsedHours(entries=catalog.list, ledger=ledger)
    return KeepHistory(
        (
            KeepDays(jobs, ingest=ingest, clock=stores.clock),
            lambda: begin_history(catalog, days),
        ),
        (
            KeepDays(usage, ingest=ingest, clock=stores.clock),
            lambda: begin_usage(catalog, days),
        ),
    )
