"""Kafka into a typed table by real processes, which are killed, stopped and frozen, and the broker
with them: each record is once in the table or in the quarantine."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from lakebed.backends.kafka.topics import parsed
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.errors import TableMissingError, VersionExpiredError
from lakebed.model.names import table_name
from lakebed.statestore.table_state.feed_records import connections, positions_of
from tests.e2e.feeds.fed_lake import PACE, FedLake
from tests.servers.fixtures import kafka  # noqa: F401 - it is a fixture
from tests.servers.kafka import RealKafka

PARTITIONS, PARTITIONS_OF_MANY = 4, 16
"""Of 4 one of two workers may have none, by chance."""
KILLS, KILLS_MAX = 25, 200
BROKER_KILLED_AFTER = 6
LOOK_SECONDS = 0.1
RECOVERY_SECONDS_MAX = 10


class FedByKafka(FedLake):
    """A lake fed by a topic, and a producer that has no record doubled."""

    def __init__(self, folder: Path, server: RealKafka, partitions: int) -> None:
        self.server = server
        self.partitions = partitions
        self.topic = server.new_topic(partitions=partitions)
        super().__init__(folder, f'{{ kafka = "{server.servers}", topics = ["{self.topic}"] }}')
        self.producer = server.producer(enable_idempotence=True, delivery_timeout_ms=120_000)
        self.at: list[dict[int, int]] = [{} for _ in range(partitions)]
        """Of each partition, which id is at which offset."""

    def produce(self, count: int) -> None:
        for _ in range(count):
            id_, value = self.written, self.next_record().encode()

            def written(error: KafkaError | None, message: Message, id_: int = id_) -> None:
                assert error is None
                self.at[message.partition() or 0][message.offset() or 0] = id_

            partition = self.rng.randrange(self.partitions)
            self.producer.produce(self.topic, value, partition=partition, on_delivery=written)
            self.producer.poll(0)

    def produce_some(self, _killed: int = 0) -> None:
        self.produce(self.rng.randrange(20))

    def has_two_owners(self) -> bool:
        return len(self.owners()) == 2 and "" not in self.owners()

    def check_topic(self) -> None:
        """The producer doubled and lost nothing."""
        assert self.producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": self.server.servers, "group.id": "looks"})
        ends = [
            consumer.get_watermark_offsets(TopicPartition(self.topic, n), timeout=30)[1]
            for n in range(self.partitions)
        ]
        consumer.close()
        assert sum(ends) == self.written == sum(map(len, self.at))


class Watcher:
    """Looks all the time whether what the positions say to be taken is in the tables, once."""

    def __init__(self, fed: FedByKafka) -> None:
        self._fed = fed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._seen: dict[int, int] = {}
        self.looks = 0
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self.wrong == []
        assert self.looks > 0

    def _watch(self) -> None:
        try:
            app = open_local(self._fed.path, create=False)
            while not self._ended.wait(LOOK_SECONDS):
                try:
                    self._look(app)
                except VersionExpiredError:  # compacted meanwhile: it looks again
                    continue
                self.looks += 1
            app.close()
        except BaseException as error:
            self.wrong.append(repr(error))
            raise

    def _look(self, app: App) -> None:
        table = app.catalog.find(table_name("orders"))
        table.head.follow()
        with table.head.reading() as state:
            ends = {
                parsed(name).partition: int(position.next)  # type: ignore[arg-type]  # an offset
                for one in connections(state)
                for name, position, _ in positions_of(state, one.id)
            }
        new = [  # before rows are read: these only grow
            self._fed.at[partition].get(offset)
            for partition, end in ends.items()
            for offset in range(self._seen.get(partition, 0), end)
        ]
        ids = _ids(rows["id"].to_numpy() for rows in app.query.run(table))
        bad = _ids(_bad(rows["value"].to_pylist()) for rows in self._quarantined(app))
        there = np.concatenate([ids, bad])
        if len(np.unique(there)) != len(there):
            self.wrong.append("a record is doubled")
        taken = np.array([id_ for id_ in new if id_ is not None], np.int64)
        gone = taken[~np.isin(taken, there)]
        if len(gone):
            self.wrong.append(f"taken, and not there: {gone[:10]}")
        self._seen = ends

    def _quarantined(self, app: App) -> Iterator[pa.RecordBatch]:
        try:
            yield from app.query.run(app.catalog.find(table_name("orders_quarantine")))
        except TableMissingError:  # none was bad so far
            return


def _ids(found: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *found])


def _bad(values: list[bytes]) -> npt.NDArray[np.int64]:
    return np.array([int(value.removeprefix(b"bad ")) for value in values], np.int64)


@pytest.fixture
def fed(folder: Path, kafka: RealKafka) -> Iterator[FedByKafka]:  # noqa: F811 - the fixture
    given = FedByKafka(folder, kafka, PARTITIONS)
    yield given
    given.close()


@pytest.fixture
def shared(folder: Path, kafka: RealKafka) -> Iterator[FedByKafka]:  # noqa: F811 - the fixture
    """Two workers at work, each with a share, and all is read."""
    given = FedByKafka(folder, kafka, PARTITIONS_OF_MANY)
    given.produce(50)
    for _ in range(2):
        given.start()
    given.wait_until(given.has_two_owners)
    given.wait_until(given.has_all)
    yield given
    given.close()


def kill_workers_and_broker(fed: FedByKafka, kills: int) -> None:
    def between(killed: int) -> None:
        fed.produce_some()
        if killed % KILLS == BROKER_KILLED_AFTER and killed not in broken:
            broken.add(killed)
            fed.server.kill()
            fed.server.restart()

    broken: set[int] = set()
    with Watcher(fed):
        fed.kill_again_and_again(kills, between)
        taken, written = fed.ledger()[0], fed.written
        assert taken > written / 10, "who is killed works, too"
        fed.check_topic()
        last = fed.start_and_wait(pace=PACE)
        fed.wait_until(fed.has_all)
        fed.stop(last)
    fed.check()


@pytest.mark.timeout(600)
def test_each_record_is_taken_once_though_workers_and_the_broker_are_killed(
    fed: FedByKafka,
) -> None:
    kill_workers_and_broker(fed, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_and_double_nothing(fed: FedByKafka) -> None:
    kill_workers_and_broker(fed, KILLS_MAX)


def test_a_worker_that_is_to_stop_commits_and_lets_go(fed: FedByKafka) -> None:
    worker = fed.start_and_wait()
    fed.produce(300)
    fed.wait_until(lambda: fed.ledger()[0] > 0)
    fed.produce(300)
    time.sleep(fed.rng.uniform(0, 1))
    fed.stop(worker)
    assert set(fed.owners()) == {""}
    assert fed.workers() == []
    last = fed.start_and_wait()
    fed.wait_until(fed.has_all)
    fed.stop(last)
    fed.check()


def test_a_worker_that_stands_still_is_replaced_and_fenced(shared: FedByKafka) -> None:
    still = shared.running[0]
    still.send_signal(signal.SIGSTOP)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        shared.produce_some()
        time.sleep(0.1)
    shared.wait_until(lambda: len(shared.owners()) == 1)
    shared.wait_until(shared.has_all)
    still.send_signal(signal.SIGCONT)
    shared.produce(200)
    shared.wait_until(shared.has_two_owners)
    shared.produce(200)
    shared.wait_until(shared.has_all)
    for process in list(shared.running):
        shared.stop(process)
    shared.check()


@pytest.mark.parametrize(("killed", "spare"), [(1, 0), (2, 0), (2, 1)])
def test_what_killed_workers_had_is_read_again_soon(
    shared: FedByKafka, killed: int, spare: int
) -> None:
    """Both at once, too: another takes over, or new workers do, and nobody starts the feed anew."""
    for _ in range(spare):
        shared.start()
        shared.wait_until(lambda: len(shared.owners()) == 3 and "" not in shared.owners())
    for _ in range(killed):
        shared.kill_one()
    shared.produce(100)  # into all partitions
    begin = time.monotonic()
    while len(shared.running) < 2 - spare:
        shared.start()
    shared.wait_until(shared.has_all)
    seconds = time.monotonic() - begin
    print(f"{killed} killed, recovered after {seconds:.1f} s")  # noqa: T201 - a figure
    assert seconds < 3 * RECOVERY_SECONDS_MAX, "three times that: tests share a machine"
    for process in list(shared.running):
        shared.stop(process)
    shared.check()
