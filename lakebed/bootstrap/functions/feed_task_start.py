"""Opens what the function needs that starts tasks for feeds."""

from __future__ import annotations

import os
from functools import partial

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.task_start import started_by
from lakebed.config.environments import FeedTaskStartEnvironment, environment_of
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.pacing.wanted_tasks import listened_tasks
from lakebed.feeds.pacing.wanted_workers import wanted_workers
from lakebed.ports.clock import Clock
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.job_queue import QueueLoad
from lakebed.ports.leases import Leases
from lakebed.tasks.start_tasks import StartTasks

App = StartTasks

FEEDS = "feeds"
"""The kind of these tasks, in events."""


def feeds() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry
    from lakebed.backends.aws.feeds.leases import DynamoLeases

    environment = environment_of(FeedTaskStartEnvironment, os.environ)
    clients = amazon_clients()
    table, rng, clock = environment.registry_table, system_random(), SystemClock()
    registry = DynamoFeedRegistry(clients, table, rng=rng)
    leases = DynamoLeases(clients, table, rng=rng)
    load = partial(load_of, registry, leases, clock)
    return started_by(FEEDS, clients, environment, load=load)


def load_of(registry: FeedRegistry, leases: Leases, clock: Clock) -> QueueLoad:
    """Return what is to do for tasks: a message for each that is wanted, and none in hand. So as
    many are started as are missing."""
    bounds = wanted_workers(read_definitions(registry))
    return QueueLoad(waiting=listened_tasks(bounds, leases, clock), in_hand=0)
