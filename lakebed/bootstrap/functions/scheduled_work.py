"""Builds the service of one kind of scheduled work on tables. A variable names the kind.

Each kind imports its service when it is built: a function starts without those of the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.counted_function import function_budgets, function_ledger
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.config.environments import (
    CompactionCreationEnvironment,
    ScheduledWorkEnvironment,
    environment_of,
)
from lakebed.errors import InvalidError
from lakebed.model.jobs import COMPACTION_CREATION, GARBAGE, SNAPSHOTS, SPLITTING, SWEEP
from lakebed.ports.job_queue import JobQueue
from lakebed.ports.job_tracker import JobTracker
from lakebed.schedules.work_on_table import WorkOnTable
from lakebed.statestore.open_table import OpenTable

App = WorkOnTable


class JobStores(NamedTuple):
    """The queue and the tracker that new compaction jobs are sent to.

    queue: takes their messages.
    tracker: gets reports of them.
    """

    queue: JobQueue
    tracker: JobTracker


OpenJobStores = Callable[[], JobStores]
"""Opens them. Only work that creates jobs does: the other functions may not."""

Build = Callable[[TableStores, OpenJobStores], App]
"""Builds the service of one kind of work."""


def app() -> App:
    """Builds the service that the variables of this process name."""
    environment = environment_of(ScheduledWorkEnvironment, os.environ)
    clients = amazon_clients()

    def open_job_stores() -> JobStores:
        from lakebed.backends.aws.job_queues import SqsJobQueue
        from lakebed.backends.aws.job_tracker import DynamoDbJobTracker

        names = environment_of(CompactionCreationEnvironment, os.environ)
        queue = SqsJobQueue(clients, names.jobs_queue_url, rng=system_random())
        return JobStores(queue, DynamoDbJobTracker(clients, names.tracker_table))

    stores = amazon_table_stores(clients, environment)
    return app_over(environment.work, stores, open_job_stores=open_job_stores)


def app_over(work: str, stores: TableStores, *, open_job_stores: OpenJobStores) -> App:
    """Builds the same over stores. work: one of `TICK_KINDS`.

    Raises:
        InvalidError: it is another.
    """
    build = WORKS.get(work)
    if build is None:
        hint = "deploy the instance again: its stacks set LAKEBED_WORK"
        raise InvalidError(
            "no scheduled work has this name", work=work, known=",".join(sorted(WORKS)), hint=hint
        )
    return build(stores, open_job_stores)


def _split_leaves(stores: TableStores, _: OpenJobStores) -> App:
    from lakebed.sorted_files.format.file_samples import FileSamples
    from lakebed.splitting.split_leaves import SplitLeaves

    return stores.work(SPLITTING, SplitLeaves(files=FileSamples(stores.objects)).run)


def _create_compaction_jobs(stores: TableStores, open_job_stores: OpenJobStores) -> App:
    from lakebed.backends.system.strategy_processes import StrategyProcesses
    from lakebed.compaction.create_jobs import CreateCompactionJobs, look_again
    from lakebed.schedules.measure_table import measure_table

    queue, tracker = open_job_stores()
    create = CreateCompactionJobs(
        queue=queue, tracker=tracker, clock=stores.clock, strategies=StrategyProcesses()
    )

    def work(table: OpenTable) -> int:
        try:
            return create.run(table)
        finally:  # a table whose strategy fails is looked at by alarms all the same
            measure_table(table)

    return stores.work(COMPACTION_CREATION, work, due=look_again)


def _collect_garbage(stores: TableStores, _: OpenJobStores) -> App:
    from lakebed.garbage.collect import CollectGarbage, next_garbage

    return stores.work(GARBAGE, CollectGarbage(objects=stores.objects).run, due=next_garbage)


def _sweep_objects(stores: TableStores, _: OpenJobStores) -> App:
    from lakebed.garbage.sweep import SweepObjects
    from lakebed.schedules.stored_bytes import KeepStoredBytes
    from lakebed.tasks.budgets import warn_of_budget

    sweep, ledger = SweepObjects(objects=stores.objects), function_ledger()
    stored = None if ledger is None else KeepStoredBytes(ledger, clock=stores.clock)
    budgets = function_budgets()

    def work(table: OpenTable) -> int:
        swept = sweep.run(table)
        if stored is not None:
            stored.run(table)
        warn_of_budget(budgets, table, table.settings())
        return swept

    return stores.work(SWEEP, work)


def _write_snapshot(stores: TableStores, _: OpenJobStores) -> App:
    from lakebed.statestore.write_snapshot import WriteSnapshot

    write = WriteSnapshot(snapshots=stores.heads.snapshots, logs=stores.logs)
    return stores.work(SNAPSHOTS, write.run)


WORKS: Mapping[str, Build] = {
    SPLITTING: _split_leaves,
    COMPACTION_CREATION: _create_compaction_jobs,
    GARBAGE: _collect_garbage,
    SWEEP: _sweep_objects,
    SNAPSHOTS: _write_snapshot,
}
"""The function that builds each kind of scheduled work."""
