"""What feeds are measured with: rides as JSON, in topics of a broker."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakebed.model.schema import schema_of
from tests.servers.kafka import JARS, KafkaServer, kafka_server, mock_kafka

TABLE = "rides"
PARTITIONS = 4
"""Of a topic: librdkafka's mock gives each so many."""
SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={"at": "timestamp[us, UTC]", "fare": "float64", "vehicle": "string", "note": "string"},
)
TEXT_BYTES = 100
HOUR_SECONDS = 3_600


@contextmanager
def broker() -> Iterator[KafkaServer]:
    """Run Apache's broker in a process of its own where Java and its jars are; else librdkafka's
    mock in this one, which keeps 5 MB of a topic partition."""
    if JARS.is_there:
        with tempfile.TemporaryDirectory() as folder, kafka_server(Path(folder)) as server:
            yield server
        return
    print("no Kafka here: the mock of a broker is used", file=sys.stderr)
    with mock_kafka() as mock:
        yield mock


def produce(server: KafkaServer, topics: int, of_each: int, *, seconds: int = HOUR_SECONDS) -> int:
    """Fill topics that are called as the table, with a number. Returns the bytes of all records.

    of_each: records of each topic partition; ids rise through all. seconds: among which the event
    times of a partition go round.
    """
    producer, rng, size = server.producer(linger_ms=50), random.Random(1), 0
    for number in range(topics):
        server.make_topic(f"{TABLE}-{number}", partitions=PARTITIONS)
    for partition in range(topics * PARTITIONS):
        for index in range(of_each):
            id_ = partition * of_each + index
            value = ride(id_, id_ % seconds, rng)
            size += len(value)
            producer.produce(
                f"{TABLE}-{partition // PARTITIONS}", value, partition=partition % PARTITIONS
            )
            producer.poll(0)
    assert producer.flush(60) == 0
    return size


def produce_more(server: KafkaServer, topics: int, count: int) -> None:
    """Add a few records to all topics that `produce` has filled."""
    producer, rng = server.producer(), random.Random(2)
    for id_ in range(count):
        partition = id_ % (topics * PARTITIONS)
        topic = f"{TABLE}-{partition // PARTITIONS}"
        producer.produce(topic, ride(id_, id_, rng), partition=partition % PARTITIONS)
    assert producer.flush(60) == 0


def ride(id_: int, second: int, rng: random.Random) -> bytes:
    """Return one record. second: of its event time, in the first hours of a day."""
    hour, minute = second // 3_600, second // 60 % 60
    said = {
        "id": id_,
        "at": f"2026-11-24T{hour:02}:{minute:02}:{second % 60:02}Z",
        "fare": rng.randrange(10_000) / 100,
        "vehicle": f"v{rng.randrange(5_000)}",
        "note": "x" * TEXT_BYTES,
    }
    return json.dumps(said).encode()
