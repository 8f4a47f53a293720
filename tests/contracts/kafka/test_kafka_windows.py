"""Topics with event time: records by their own times into windows, which a partition that says
nothing more does not keep open (protocol R18, R19)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lakebed
from lakebed.statestore.table_state.feed_records import connections
from lakebed.statestore.table_state.window_records import (
    Watermark,
    Window,
    watermark_of,
    windows_of,
)
from tests.servers.kafka import KafkaServer

FIRST = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
MINUTE = 60_000_000
SECONDS_MAX = 60
PARTITIONS = 4
"""Those that the mock of a cluster makes."""


class Clicks:
    """A lake that defines a feed of clicks from a topic. idle_seconds: after
    which a partition holds nothing up."""

    def __init__(self, folder: Path, server: KafkaServer, *, idle_seconds: int) -> None:
        self.server = server
        self.topic = server.new_topic(partitions=PARTITIONS)
        self.lake = lakebed.connect(folder / "lake", create=True)
        values = {"_time": "timestamp[us, UTC]"}
        self.lake.create_table("clicks", lakebed.schema_of(row_keys={"id": "int64"}, values=values))
        definitions = lakebed.FeedDefinitions(self.lake)
        source = {"kafka": server.servers, "topics": [self.topic], "topic_ids": False}
        decoder = {"format": "json", "time": {"path": ""}}
        definitions.define("feed", "clicks", {"source": source, "decoder": decoder})
        policy = {"idle_seconds": idle_seconds, "rotate_seconds": 0.5, "rotate_idle_seconds": 0.1}
        definitions.define("policy", "own", policy)
        connection = {
            "feed": "clicks",
            "table": "clicks",
            "policy": "own",
            "meta": ["time"],
            "window_seconds": 60,
            "disorder_seconds": 5,
        }
        definitions.define("connection", "clicks", connection)
        definitions.start("clicks")
        self.sent = 0

    def send(self, partition: int, *seconds: int) -> None:
        for second in seconds:
            self.sent += 1
            value = b'{"id": %d}' % self.sent
            at = int((FIRST + timedelta(seconds=second)).timestamp() * 1_000)
            self.server.put(self.topic, value, partition=partition, timestamp=at)

    def work_until(
        self, is_so: Callable[[], bool] = lambda: False, *, seconds: float = SECONDS_MAX
    ) -> None:
        """Work until it is so, or for some seconds."""
        end = time.monotonic() + seconds
        looked = 0.0

        def should_stop() -> bool:
            nonlocal looked
            now = time.monotonic()
            if now - looked < 0.2:
                return False
            looked = now
            return now > end or is_so()

        lakebed.Feeds(self.lake).work(should_stop)

    def known(self) -> tuple[Watermark, list[Window]]:
        head = self.lake._app.catalog.find("clicks").head
        head.follow()
        with head.reading() as state:
            found = connections(state)
            if not found:
                return Watermark(), []
            return watermark_of(state, found[0]), list(windows_of(state, found[0]))

    def sealed(self) -> list[tuple[int, int]]:
        """Minute and rows of each window that is sealed."""
        first = int(FIRST.timestamp() * 1_000_000)
        return [((w.start - first) // MINUTE, w.rows) for w in self.known()[1] if w.sealed]

    def rows(self) -> int:
        return self.lake.table("clicks").query().read_all().num_rows


def clicks_of(folder: Path, server: KafkaServer, *, idle_seconds: int) -> Iterator[Clicks]:
    given = Clicks(folder, server, idle_seconds=idle_seconds)
    yield given
    given.lake.close()


@pytest.fixture
def patient(tmp_path: Path, kafka_mock: KafkaServer) -> Iterator[Clicks]:
    yield from clicks_of(tmp_path, kafka_mock, idle_seconds=600)


@pytest.fixture
def hasty(tmp_path: Path, kafka_mock: KafkaServer) -> Iterator[Clicks]:
    yield from clicks_of(tmp_path, kafka_mock, idle_seconds=2)


def test_records_lie_in_the_windows_of_the_times_that_kafka_gives_them(patient: Clicks) -> None:
    patient.send(0, 1, 59, 61, 190)
    patient.send(1, 2, 62, 119, 185)
    for partition in range(2, PARTITIONS):
        patient.send(partition, 200)
    patient.work_until(lambda: patient.rows() == 10 and bool(patient.sealed()))
    assert patient.sealed() == [(0, 3), (1, 3)]
    watermark, _ = patient.known()
    assert watermark.time == int((FIRST + timedelta(seconds=180)).timestamp() * 1_000_000)


def test_a_partition_that_is_behind_holds_windows_open(patient: Clicks) -> None:
    for partition in range(1, PARTITIONS):
        patient.send(partition, 1, 61, 300)
    patient.send(0, 2)
    patient.work_until(lambda: patient.rows() == 10)
    patient.work_until(seconds=3)
    assert patient.sealed() == []


def test_a_partition_that_says_nothing_more_holds_nothing_up(hasty: Clicks) -> None:
    hasty.send(0, 1, 61, 300)
    hasty.send(1, 2)
    hasty.work_until(lambda: len(hasty.sealed()) == 2)
    assert hasty.rows() == 4
    assert hasty.sealed() == [(0, 2), (1, 1)]
