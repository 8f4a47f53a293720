"""Where fault scripts take place: memory, a lake in a directory; `tests/cloud` has the deployed
instance."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from lakebed.backends.local.job_queues import SqliteJobQueues
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.lake_directory import open_lake_directory
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.memory import (
    MemoryFeedRegistry,
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryLeases,
    MemoryObjectStore,
    MemorySecrets,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.bootstrap.assemble import Stores
from lakebed.bootstrap.feeds.stores import FeedStores, local_feed_stores
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.tasks.failed_work import FailedTables


class MemoryFaults:
    """Stores in memory, which all processes of a world share."""

    def __init__(self, folder: Path) -> None:
        self._clock = VirtualClock()
        self._stores = Stores(
            location="memory",
            clock=self._clock,
            rng=random.Random(7),
            objects=MemoryObjectStore(self._clock),
            logs=MemoryTransactionLogs(self._clock),
            registry=MemoryTableRegistry(),
            queues=MemoryJobQueues(self._clock),
            tracker=MemoryJobTracker(),
            feeds=FeedStores(
                MemoryLeases(),
                MemoryFeedRegistry(),
                MemorySecrets({}),
                HeldBytes(),
                TimeShare(),
                FailedTables(self._clock),
                {},
            ),
        )

    def stores(self) -> Stores:
        return self._stores

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)


class DirectoryFaults:
    """A lake in a directory. Each process has connections of its own."""

    def __init__(self, folder: Path) -> None:
        self._clock = VirtualClock()
        self._folder = folder / "lake"
        self._seeds = count(7)

    def stores(self) -> Stores:
        clock, directory = self._clock, open_lake_directory(self._folder, create=True)
        opened = ExitStack()
        logs = SqliteTransactionLogs(directory.logs, clock, open_max=10)
        opened.callback(logs.close)
        return Stores(
            location=str(directory.path),
            clock=clock,
            rng=random.Random(next(self._seeds)),
            objects=LocalObjectStore(directory.path, clock),
            logs=logs,
            registry=opened.enter_context(closing(SqliteTableRegistry(directory.path))),
            queues=opened.enter_context(closing(SqliteJobQueues(directory.queues, clock=clock))),
            tracker=opened.enter_context(closing(SqliteJobTracker(directory.queues))),
            feeds=local_feed_stores(directory.path, opened, clock),
            close=opened.close,
        )

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)
