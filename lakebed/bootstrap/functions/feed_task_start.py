"""What the function needs that starts tasks for feeds."""

from __future__ import annotations

import os

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.table_stores import amazon_clients
from lakebed.bootstrap.functions.task_start import started_by
from lakebed.config.environments import FeedTaskStartEnvironment, environment_of
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.pacing.wanted_workers import wanted_workers
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.job_queue import QueueLoad
from lakebed.tasks.start_tasks import StartTasks

App = StartTasks

FEEDS = "feeds"
"""The kind of these tasks, in events."""


def feeds() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry

    environment = environment_of(FeedTaskStartEnvironment, os.environ)
    clients = amazon_clients()
    registry = DynamoFeedRegistry(clients, environment.registry_table, rng=system_random())
    return started_by(FEEDS, clients, environment, load=lambda: load_of(registry))


def load_of(registry: FeedRegistry) -> QueueLoad:
    """Return what is to do for tasks: a message for each worker that is wanted, and none in hand.
    So as many are started as are missing."""
    return QueueLoad(waiting=wanted_workers(read_definitions(registry)), in_hand=0)
