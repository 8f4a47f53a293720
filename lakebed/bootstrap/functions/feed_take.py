"""Takes records of feeds whose sources trickle, in a function: does what `lakebed feed run` does,
for these feeds alone, and with an end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa

from lakebed.bootstrap.app import App as LakeApp
from lakebed.bootstrap.aws import open_instance
from lakebed.bootstrap.feeds.worker import taking_worker
from lakebed.bootstrap.machine import cpus, task_work_bytes
from lakebed.bootstrap.memory import Memory
from lakebed.bootstrap.tasks.task_process import resources_named
from lakebed.config.environments import FeedTakeEnvironment, environment_of
from lakebed.config.functions import states_bytes_max

TAKE_SECONDS_MAX = 90.0
"""Most seconds of a run; then it commits what it holds. The function ends after twice as long."""


class TakeFeeds:
    """Takes what there is. seconds_max: then it stops."""

    def __init__(self, app: LakeApp, *, seconds_max: float = TAKE_SECONDS_MAX) -> None:
        self._app = app
        self._seconds_max = seconds_max

    def run(self) -> None:
        """Take what there is of the feeds that ask for a function and were started. Several runs at
        once share the work: leases and positions keep them apart.

        Raises:
            UnavailableError: definitions cannot be read. Whatever a feed meets, is its own.
        """
        worker = taking_worker(self._app)
        if worker is None:
            return
        clock = self._app.clock
        end = clock.monotonic() + self._seconds_max
        worker.take(lambda: clock.monotonic() >= end)


App = TakeFeeds


def app() -> App:
    """Return what the variables of this process name."""
    environment = environment_of(FeedTakeEnvironment, os.environ)
    pa.set_cpu_count(cpus())
    resources = resources_named(environment, {})
    states_bytes = states_bytes_max(int(environment.function_disk_mib))
    opened = open_instance(
        resources.instance,
        resources=resources,
        folder=Path(tempfile.mkdtemp(prefix="lakebed-")),
        memory=Memory(work_bytes=task_work_bytes(), states_bytes=states_bytes),
        states_bytes_max=states_bytes,
    )
    return TakeFeeds(opened)
