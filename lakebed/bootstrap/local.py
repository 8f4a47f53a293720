"""A lake in a directory: every service in one process, over files and SQLite.

Its objects may lie in a bucket, or in a store that the caller gives.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, closing

from lakebed.backends.local.file_batches import SqliteFileBatches
from lakebed.backends.local.job_queues import SqliteJobQueues
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.lake_directory import LakeDirectory, open_lake_directory
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.local.usage_ledger import SqliteUsageLedger
from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.app import App, LocalParts, Paying
from lakebed.bootstrap.assemble import Stores, assemble
from lakebed.bootstrap.feeds.stores import local_feed_stores
from lakebed.bootstrap.machine import open_tables_max
from lakebed.bootstrap.memory import Memory
from lakebed.bootstrap.object_locations import (
    GIVEN,
    ObjectsLocation,
    location_of,
    objects_at,
    opened_objects,
)
from lakebed.errors import InvalidError
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore


def open_local(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    clock: Clock | None = None,
    objects: str | ObjectStore | None = None,
    memory: Memory | None = None,
) -> App:
    """Return the services of a lake in a directory. Several processes may open one at once.

    clock: None: this machine's. All processes of a lake use the same.
    objects: a store, or s3://bucket/prefix; None: as the lake says, a new one's in the directory.
    memory: None: the usual.

    Raises:
        InvalidError: nothing to keep it in, or more than machines have.
    """
    memory = memory or Memory()
    memory.check()
    clock, rng = clock or SystemClock(), system_random()
    directory, store = _opened(path, create=create, objects=objects, clock=clock, rng=rng)
    with ExitStack() as undo:
        tracker = undo.enter_context(closing(SqliteJobTracker(directory.queues)))
        registry = undo.enter_context(closing(SqliteTableRegistry(directory.path)))
        batches = undo.enter_context(closing(SqliteFileBatches(directory.queues)))
        queues = undo.enter_context(closing(SqliteJobQueues(directory.queues, clock=clock)))
        feeds = local_feed_stores(directory.path, undo, clock)
        ledger = undo.enter_context(closing(SqliteUsageLedger(directory.queues)))
        logs = SqliteTransactionLogs(directory.logs, clock, open_max=open_tables_max())
        undo.callback(logs.close)
        stores = Stores(
            location=str(directory.path),
            clock=clock,
            rng=rng,
            objects=store,
            logs=logs,
            registry=registry,
            queues=queues,
            tracker=tracker,
            feeds=feeds,
            batches=batches,
            paying=Paying(ledger),
            for_processes=_for_processes(directory, objects, store),
            close=undo.pop_all().close,
        )
    return assemble(
        stores,
        states=directory.cache,
        spill=directory.spill,
        memory=memory,
        local=LocalParts(directory, logs.open, registry),
    )


def _for_processes(
    directory: LakeDirectory, given: str | ObjectStore | None, store: ObjectStore
) -> ObjectsLocation | None:
    """Return where other processes find the objects: not those in a store that a program made."""
    if not isinstance(given, str | None):
        return None
    is_here = isinstance(store, LocalObjectStore)
    return ObjectsLocation(str(directory.path) if is_here else location_of(store))


def _opened(
    path: str | os.PathLike[str],
    *,
    create: bool,
    objects: str | ObjectStore | None,
    clock: Clock,
    rng: random.Random,
) -> tuple[LakeDirectory, ObjectStore]:
    """Return the directory, and the objects of which it says where they are."""
    if objects is None:
        directory = open_lake_directory(path, create=create)
        if directory.objects is None:
            return directory, LocalObjectStore(directory.path, clock)
        if directory.objects == GIVEN:
            hint = "give it again: connect(path, objects=STORE)"
            raise InvalidError("the lake's objects lie in a store", path=path, hint=hint)
        return directory, objects_at(directory.objects, clock=clock, rng=rng)
    store = opened_objects(objects, clock=clock, rng=rng)
    directory = open_lake_directory(
        path,
        create=create,
        objects=location_of(store),
        before_making=getattr(store, "probe", lambda: None),
    )
    return directory, store
