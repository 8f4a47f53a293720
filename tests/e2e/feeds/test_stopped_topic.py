"""A topic that stops: its last record is a row within the time that its policy allows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.feeds.fed_by_kafka import FedByKafka
from tests.servers.fixtures import kafka  # noqa: F401 - it is a fixture
from tests.servers.kafka import RealKafka

ROTATE_SECONDS = 4.0
IDLE_SECONDS = 600.0
"""So no round ends because nothing more comes."""
SPARE_SECONDS = 10.0
"""To read, to commit and to look, on a machine that tests share."""


@pytest.fixture
def fed(folder: Path, kafka: RealKafka) -> Iterator[FedByKafka]:  # noqa: F811 - the fixture
    given = FedByKafka(
        folder, kafka, rotate_seconds=ROTATE_SECONDS, rotate_idle_seconds=IDLE_SECONDS
    )
    yield given
    given.close()


def test_the_last_record_of_a_topic_that_stops_is_a_row_within_the_age_limit(
    fed: FedByKafka,
) -> None:
    worker = fed.start_and_wait()
    for _ in range(3):
        end = time.monotonic() + fed.rng.uniform(0, ROTATE_SECONDS)
        while time.monotonic() < end:
            fed.produce_some()
            time.sleep(0.1)
        fed.produce(1)
        assert fed.producer.flush(10) == 0
        assert fed.wait_until(fed.has_all) < ROTATE_SECONDS + SPARE_SECONDS
    fed.stop(worker)
    fed.check()
