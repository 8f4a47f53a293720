"""How much a feed slows down while another one is defined, started and stopped beside it. Its
worker reads definitions anew, opens a source and closes it; the other has no records."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.feeding.rides import PARTITIONS, SCHEMA, TABLE
from benchmarks.feeding.worker_processes import (
    RECORDS_OF_EACH,
    TOPICS,
    feed_of,
    records_read,
    wait_until,
    when_reached,
    workers_on,
)
from benchmarks.figures import Figure
from lakebed.feed import FeedDefinitions
from lakebed.lake import connect
from tests.servers.kafka import KafkaServer

OTHER = "quiet"
DIP_PERCENT_MAX = 5.0
ROTATE_SECONDS = 0.25
ALONE, BESIDE = (0.2, 0.5), (0.5, 0.8)
"""Shares of all records: what is read while the feed runs alone, and while the other comes and
goes."""


def run(kafka: KafkaServer, rounds: int) -> list[Figure]:
    """Measure. kafka: its topics are filled by `produce`, but for one, which stays empty."""
    kafka.make_topic(f"{OTHER}-0", partitions=PARTITIONS)
    dips = []
    for _ in range(rounds):
        with TemporaryDirectory() as folder:
            dips.append(_dip_percent(kafka, Path(folder, "lake")))
    dip = statistics.median(dips)
    return [Figure("feed.attach_dip_percent", dip, "%", DIP_PERCENT_MAX)]


def _dip_percent(kafka: KafkaServer, lake: Path) -> float:
    """Return by how much less was read a second while another feed came and went."""
    records = TOPICS * PARTITIONS * RECORDS_OF_EACH
    with connect(lake, create=True) as opened:
        for name in (TABLE, OTHER):
            opened.create_table(name, SCHEMA)
        definitions = FeedDefinitions(opened)
        definitions.apply(feed_of(TABLE, kafka, rotate_seconds=ROTATE_SECONDS))
        definitions.start(TABLE)
        seen = [(0.0, 0)]
        due: list[tuple[float, Callable[[], object]]] = [
            (0.5, lambda: definitions.apply(feed_of(OTHER, kafka, rotate_seconds=ROTATE_SECONDS))),
            (0.5, lambda: definitions.start(OTHER)),
            (0.65, lambda: definitions.stop(OTHER)),
        ]

        def has_all() -> bool:
            read = records_read(opened)
            if read != seen[-1][1]:
                seen.append((time.monotonic(), read))
            while due and read >= records * due[0][0]:
                due.pop(0)[1]()
            return read >= records

        with workers_on(lake, sorted(os.sched_getaffinity(0))[:1]) as running:
            wait_until(has_all, running)
    alone, beside = (
        records
        * (until - since)
        / (when_reached(seen, records * until) - when_reached(seen, records * since))
        for since, until in (ALONE, BESIDE)
    )
    return (1 - beside / alone) * 100
