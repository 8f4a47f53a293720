"""Workers of feeds as processes, and how far they have come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from subprocess import Popen

from benchmarks.feeding.rides import TABLE
from benchmarks.processes import ROOT
from lakebed.lake import Lake
from tests.servers.kafka import KafkaServer

COMMAND = "from lakebed.cli.main import main; main()"
SECONDS_MAX = 300
TOPICS, RECORDS_OF_EACH = 8, 30_000
"""What they read: topics of `PARTITIONS` each, and records of each of these."""
DEFINED = """
[feed.{name}]
source = {{ kafka = "{servers}", topics = "{name}-[0-9]+", start = "{start}" }}
decoder = {{ format = "json" }}
[connection.{name}]
feed = "{name}"
table = "{name}"
policy = "Paced"
[policy.Paced]
rotate_bytes = 4194304
rotate_seconds = {rotate_seconds}
rotate_idle_seconds = 0.1
"""


def feed_of(
    name: str, kafka: KafkaServer, *, start: str = "earliest", rotate_seconds: float
) -> str:
    """Return the definition of a feed of topics that are called as its table, with a number."""
    return DEFINED.format(
        name=name, servers=kafka.servers, start=start, rotate_seconds=rotate_seconds
    )


def records_read(lake: Lake) -> int:
    """Return how many records are committed. lake: stays open, so that a look costs the workers
    little of their cores."""
    (status,) = lake.status(TABLE)
    return sum(one.read for one in status.connections)


def wait_until(is_so: Callable[[], bool], running: list[Popen[bytes]]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end
        assert all(process.poll() is None for process in running), "one has ended"
        time.sleep(0.05)


def when_reached(seen: list[tuple[float, int]], wanted: float) -> float:
    """Return when so many records had been read, on a straight line between two looks."""
    for (before, less), (after, more) in pairwise(seen):
        if more >= wanted:
            return before + (after - before) * (wanted - less) / (more - less)
    raise AssertionError("all were read")


@contextmanager
def workers_on(lake: Path, cores: list[int]) -> Iterator[list[Popen[bytes]]]:
    """Run a worker on each core."""
    allowed, running = os.sched_getaffinity(0), list[Popen[bytes]]()
    command = [sys.executable, "-c", COMMAND, "--lake", str(lake), "feed", "run"]
    try:
        for core in cores:
            os.sched_setaffinity(0, {core})
            running.append(Popen(command, cwd=ROOT))
        os.sched_setaffinity(0, allowed)
        yield running
    finally:
        os.sched_setaffinity(0, allowed)
        for process in running:
            process.kill()
            process.wait()
