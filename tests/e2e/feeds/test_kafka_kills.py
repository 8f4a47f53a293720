"""Kafka into a typed table by real processes, which are killed, stopped and frozen, and the broker
with them: each record is once in the table or in the quarantine."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.feeds.fed_by_kafka import PARTITIONS_OF_MANY, FedByKafka
from tests.e2e.feeds.fed_lake import PACE
from tests.e2e.feeds.watcher import TakenRecords, Watcher
from tests.servers.fixtures import kafka  # noqa: F401 - it is a fixture
from tests.servers.kafka import RealKafka

KILLS, KILLS_MAX = 25, 200
BROKER_KILLED_EVERY = 5
RECOVERY_SECONDS_MAX = 10


@pytest.fixture
def fed(folder: Path, kafka: RealKafka) -> Iterator[FedByKafka]:  # noqa: F811 - the fixture
    given = FedByKafka(folder, kafka)
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


def kill_workers_and_broker(fed: FedByKafka, broker: RealKafka, kills: int) -> None:
    def between(killed: int) -> None:
        fed.produce_some()
        if killed % BROKER_KILLED_EVERY == BROKER_KILLED_EVERY - 1 and killed not in broken:
            broken.add(killed)
            broker.kill()
            broker.restart()

    broken, records = set[int](), TakenRecords(fed.ids)
    with Watcher(fed.path, records) as watcher:
        fed.kill_again_and_again(kills, between)
        taken, written = fed.ledger()[0], fed.written
        assert taken > written / 10, "who is killed works, too"
        assert records.compared > written / 20, "it looks while they are killed"
        fed.check_topic()
        watcher.check()
        fed.wait_until(lambda: records.compared >= taken)
        last = fed.start_and_wait(pace=PACE)
        fed.wait_until(fed.has_all)
        watcher.check()
        fed.wait_until(lambda: records.compared == fed.written)
        fed.stop(last)
    assert len(broken) == kills // BROKER_KILLED_EVERY
    fed.check()


@pytest.mark.timeout(600)
def test_each_record_is_taken_once_though_workers_and_the_broker_are_killed(
    fed: FedByKafka,
    kafka: RealKafka,  # noqa: F811 - the fixture
) -> None:
    kill_workers_and_broker(fed, kafka, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_and_double_nothing(
    fed: FedByKafka,
    kafka: RealKafka,  # noqa: F811 - the fixture
) -> None:
    kill_workers_and_broker(fed, kafka, KILLS_MAX)


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
