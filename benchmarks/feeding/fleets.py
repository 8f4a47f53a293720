"""Workers that share a feed: what a second one adds, how long a commit takes, and how soon one
takes over from another that was killed."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

from benchmarks.feeding.rides import PARTITIONS, SCHEMA, TABLE, broker, produce
from benchmarks.figures import Figure
from benchmarks.processes import ROOT
from lakebed.feed import FeedDefinitions
from lakebed.lake import connect
from tests.servers.kafka import KafkaServer

TOPICS, RECORDS_OF_EACH = 8, 30_000
COMMAND = "from lakebed.cli.main import main; main()"
SECONDS_MAX = 300
RATIO_MIN, RECOVERY_MAX = 1.8, 10.0
DEFINED = """
[feed.{table}]
source = {{ kafka = "{servers}", topics = "{table}-[0-9]+" }}
decoder = {{ format = "json" }}
[connection.{table}]
feed = "{table}"
table = "{table}"
policy = "Small"
[policy.Small]
rotate_bytes = {rotate_bytes}
"""


def run(rounds: int) -> list[Figure]:
    """Measure how fast two workers are beside one, and how soon one takes over."""
    with broker() as kafka:
        if not kafka.has_topic_ids:
            return []
        produce(kafka, TOPICS, RECORDS_OF_EACH)
        rates: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(rounds):
            for workers, found in rates.items():
                with TemporaryDirectory() as folder:
                    found.append(_rate(kafka, Path(folder, "lake"), workers))
    one, two = (statistics.median(found) for found in rates.values())
    return [
        Figure("feed.workers_2.ratio_to_1", two / one, "", RATIO_MIN, "higher"),
        Figure("feed.workers_1.records_per_second", one, "records/s", None, "higher"),
    ]


def _rate(kafka: KafkaServer, lake: Path, workers: int) -> float:
    """Return records a second while all workers are busy: of the middle half of what there is. Each
    worker has a core of its own, which it shares with the broker."""
    records = TOPICS * PARTITIONS * RECORDS_OF_EACH
    _defined(lake, kafka, rotate_bytes=4 << 20)
    cores = sorted(os.sched_getaffinity(0))
    with connect(lake) as opened, _workers(lake, cores[:workers]) as running:
        seen, end = [(0.0, 0)], time.monotonic() + SECONDS_MAX
        while seen[-1][1] < records:
            assert time.monotonic() < end
            assert all(process.poll() is None for process in running), "one has ended"
            time.sleep(0.05)
            (status,) = opened.status(TABLE)
            read = sum(one.read for one in status.connections)
            if read != seen[-1][1]:
                seen.append((time.monotonic(), read))
    first, last = (_when(seen, records * share) for share in (0.25, 0.75))
    return records / 2 / (last - first)


def _when(seen: list[tuple[float, int]], wanted: float) -> float:
    """Return when so many records had been read, on a straight line between two looks."""
    for (before, less), (after, more) in pairwise(seen):
        if more >= wanted:
            return before + (after - before) * (wanted - less) / (more - less)
    raise AssertionError("all were read")


def _defined(lake: Path, kafka: KafkaServer, *, rotate_bytes: int) -> None:
    with connect(lake, create=True) as opened:
        opened.create_table(TABLE, SCHEMA)
        definitions = FeedDefinitions(opened)
        said = DEFINED.format(table=TABLE, servers=kafka.servers, rotate_bytes=rotate_bytes)
        definitions.apply(said)
        definitions.start(TABLE)


@contextmanager
def _workers(lake: Path, cores: list[int]) -> Iterator[list[Popen[bytes]]]:
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
