"""All workers are replaced, one after the other, while records come: nothing is lost or doubled,
and no record waits for long."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from tests.e2e.feeds.fed_by_kafka import PARTITIONS_OF_MANY, FedByKafka
from tests.e2e.feeds.fed_lake import FedLake
from tests.servers.fixtures import kafka  # noqa: F401 - it is a fixture
from tests.servers.kafka import RealKafka

WORKERS = 2
LAG_SECONDS_MAX = 60.0
BETWEEN_SECONDS = 0.2


class Lag:
    """How long the oldest record waits that no commit has counted."""

    def __init__(self, fed: FedLake) -> None:
        self._fed = fed
        self._waiting: deque[tuple[int, float]] = deque()
        self.greatest = 0.0

    def look(self) -> None:
        """Look once, after records were written."""
        now, taken = time.monotonic(), self._fed.ledger()[0]
        self._waiting.append((self._fed.written, now))
        while self._waiting and self._waiting[0][0] <= taken:
            self._waiting.popleft()
        if self._waiting:
            self.greatest = max(self.greatest, now - self._waiting[0][1])


def test_workers_are_replaced_one_by_one_while_records_come(
    folder: Path,
    kafka: RealKafka,  # noqa: F811 - the fixture
) -> None:
    fed = FedByKafka(folder, kafka, PARTITIONS_OF_MANY)
    lag = Lag(fed)
    try:
        for _ in range(WORKERS):
            fed.start_and_wait()

        def is_shared() -> bool:
            fed.produce(5)
            fed.producer.flush(10)
            lag.look()
            time.sleep(BETWEEN_SECONDS)
            owners = fed.owners()
            return "" not in owners and set(owners) == set(fed.workers())

        fed.wait_until(is_shared)
        for old in list(fed.running):
            fed.start()
            fed.stop(old)
            fed.wait_until(lambda: len(fed.workers()) == WORKERS and is_shared())
        fed.wait_until(fed.has_all)
        print(f"the longest wait was {lag.greatest:.1f} s")  # noqa: T201 - a figure
        assert 0 < lag.greatest < LAG_SECONDS_MAX
        for last in list(fed.running):
            fed.stop(last)
        fed.check()
    finally:
        fed.close()
