"""Opens what the function needs that publishes ends of jobs: the bus, and names of tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.config.environments import JobEventsEnvironment, environment_of
from lakebed.ports.job_end_bus import JobEndBus
from lakebed.ports.table_registry import TableRegistry
from lakebed.tasks.publish_job_ends import PublishJobEnds


class StreamedJobEnds:
    """Publishes what the stream of the tracker's table says of ends of jobs."""

    def __init__(self, bus: JobEndBus, registry: TableRegistry, *, instance: str) -> None:
        self._publish = PublishJobEnds(
            bus,
            instance=instance,
            names=lambda: {entry.id: entry.name for entry in registry.list()},
        )

    def run(self, records: Sequence[Mapping[str, Any]]) -> set[str]:
        """Publish the ends among records. Returns nothing: where it raises, all come again."""
        from lakebed.backends.aws.job_ends.tracker_stream import reports_in_stream

        self._publish.run(reports_in_stream(records))
        return set()


App = StreamedJobEnds


def app() -> StreamedJobEnds:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.job_ends.event_bus import EventBridgeBus
    from lakebed.backends.aws.table_registry import DynamoTableRegistry

    environment = environment_of(JobEventsEnvironment, os.environ)
    clients = amazon_clients()
    return StreamedJobEnds(
        EventBridgeBus(clients),
        DynamoTableRegistry(clients, environment.registry_table),
        instance=environment.instance,
    )
