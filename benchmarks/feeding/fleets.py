"""Workers that share a feed: what a second one adds, how long a commit takes, and how soon one
takes over from another that was killed."""

from __future__ import annotations

import logging
import os
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.feeding import attaching
from benchmarks.feeding.rides import PARTITIONS, SCHEMA, TABLE, broker, produce, produce_more
from benchmarks.feeding.worker_processes import (
    RECORDS_OF_EACH,
    SECONDS_MAX,
    TOPICS,
    feed_of,
    records_read,
    wait_until,
    when_reached,
    workers_on,
)
from benchmarks.figures import Figure
from lakebed.backends.local.leases import SqliteLeases
from lakebed.feed import FeedDefinitions, Feeds
from lakebed.feeds.living_workers import BEAT_SECONDS
from lakebed.lake import connect
from lakebed.observe.events import FEED_PROGRESSED
from tests.servers.kafka import KafkaServer

COMMITS, PACED_RECORDS = 120, 200
HEARD_SECONDS = 3 * BEAT_SECONDS
RATIO_MIN, COMMIT_SECONDS_MAX, RECOVERY_SECONDS_MAX = 1.8, 1.0, 10.0


def run(rounds: int) -> list[Figure]:
    """Measure all, on one broker; nothing where only the mock of one is."""
    with broker() as kafka:
        if not kafka.has_topic_ids:
            return []
        produce(kafka, TOPICS, RECORDS_OF_EACH)
        rates: dict[int, list[float]] = {1: [], 2: []}
        recovered = []
        for _ in range(rounds):
            for workers, found in rates.items():
                with TemporaryDirectory() as folder:
                    found.append(_rate(kafka, Path(folder, "lake"), workers))
            with TemporaryDirectory() as folder:
                recovered.append(_recovery(kafka, Path(folder, "lake")))
        with TemporaryDirectory() as folder:
            commits = _commit_seconds(kafka, Path(folder, "lake"))
        attached = attaching.run(kafka, rounds)
    one, two = (statistics.median(found) for found in rates.values())
    p99 = sorted(commits)[len(commits) * 99 // 100]
    return [
        Figure("feed.workers_2.ratio_to_1", two / one, "", RATIO_MIN, "higher"),
        Figure("feed.workers_1.records_per_second", one, "records/s", None, "higher"),
        Figure("feed.recovery_seconds", statistics.median(recovered), "s", RECOVERY_SECONDS_MAX),
        Figure("feed.commit_seconds_p99", p99, "s", COMMIT_SECONDS_MAX),
        *attached,
    ]


def _rate(kafka: KafkaServer, lake: Path, workers: int) -> float:
    """Return records a second while all workers are busy: of the middle half of what there is. Each
    worker has a core of its own, which it shares with the broker. The feed is started when they
    have heard of each other: what one has claimed alone, it gives back within eight seconds, and
    there is less to read than that."""
    records = TOPICS * PARTITIONS * RECORDS_OF_EACH
    _define(lake, kafka, is_started=False)
    cores = sorted(os.sched_getaffinity(0))
    seen = [(0.0, 0)]
    with (
        connect(lake) as opened,
        closing(SqliteLeases(lake)) as leases,
        workers_on(lake, cores[:workers]) as running,
    ):

        def has_all() -> bool:
            read = records_read(opened)
            if read != seen[-1][1]:
                seen.append((time.monotonic(), read))
            return read >= records  # what earlier rounds sent meanwhile comes on top

        wait_until(lambda: len(leases.workers()) == workers, running)
        time.sleep(HEARD_SECONDS)
        FeedDefinitions(opened).start(TABLE)
        wait_until(has_all, running)
    first, last = (when_reached(seen, records * share) for share in (0.25, 0.75))
    return records / 2 / (last - first)


def _recovery(kafka: KafkaServer, lake: Path) -> float:
    """Return how long it takes one of two workers to have read all that came into all source splits
    when the other was killed."""
    _define(lake, kafka, start="latest")
    leases = SqliteLeases(lake)
    cores = sorted(os.sched_getaffinity(0))
    with connect(lake) as opened, workers_on(lake, cores[:2]) as running, closing(leases):

        def is_shared() -> bool:
            owners = {owner.worker for owner in leases.owners()}
            return len(owners) == len(running) and "" not in owners

        wait_until(is_shared, running)
        produce_more(kafka, TOPICS, PACED_RECORDS)
        wait_until(lambda: records_read(opened) == PACED_RECORDS, running)
        killed = running.pop()
        killed.kill()
        killed.wait()
        begun = time.monotonic()
        produce_more(kafka, TOPICS, PACED_RECORDS)
        wait_until(lambda: records_read(opened) == 2 * PACED_RECORDS, running)
        return time.monotonic() - begun


def _commit_seconds(kafka: KafkaServer, lake: Path) -> list[float]:
    """Return how long each commit of a feed took that commits twice a second."""
    _define(lake, kafka, start="latest")
    commits = CommitSeconds()
    logger = logging.getLogger("lakebed")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(commits)
    ended = threading.Event()
    with connect(lake) as opened:
        worker = threading.Thread(target=Feeds(opened).work, args=[ended.is_set])
        worker.start()
        end = time.monotonic() + SECONDS_MAX
        while len(commits.found) < COMMITS:
            assert time.monotonic() < end
            produce_more(kafka, TOPICS, PACED_RECORDS)
            time.sleep(0.05)
        ended.set()
        worker.join()
    logger.removeHandler(commits)
    logger.setLevel(before)
    return commits.found


class CommitSeconds(logging.Handler):
    """Listens to what rounds say of their commits."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep how long one took."""
        if record.__dict__.get("event") == FEED_PROGRESSED:
            self.found.append(record.__dict__["facts"]["commit_seconds"])


def _define(
    lake: Path, kafka: KafkaServer, *, start: str = "earliest", is_started: bool = True
) -> None:
    with connect(lake, create=True) as opened:
        opened.create_table(TABLE, SCHEMA)
        definitions = FeedDefinitions(opened)
        definitions.apply(feed_of(TABLE, kafka, start=start, rotate_seconds=0.5))
        if is_started:
            definitions.start(TABLE)
