"""Records of Kafka into a sorted table, by one process on one core, beside `consume()` alone.

The broker is librdkafka's mock, in this process: it keeps 5 MB of a topic partition, so there are
many.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.figures import Figure, medians, quick
from benchmarks.processes import measured
from lakebed.lake import connect
from tests.servers.kafka import mock_kafka

TOPICS, PARTITIONS, RECORDS_OF_EACH = 5, 4, 20_000
"""The mock gives a topic four partitions."""
TABLE = "rides"
TEXT_BYTES = 100
PER_CORE_MIN = 120_000
PEAK_MIB_MAX = 600


def run(rows: int | None = None, rounds: int = 3, _shapes: Sequence[str] = ()) -> list[Figure]:
    """Measure. rows: of each topic partition. rounds: of both, in turns. Takes a minute."""
    of_each = rows or RECORDS_OF_EACH
    records = TOPICS * PARTITIONS * of_each
    with mock_kafka() as kafka, tempfile.TemporaryDirectory() as folder:
        size = _produced(kafka.servers, of_each)
        ours, alone = [], []
        for number in range(rounds):
            lake = str(Path(folder) / f"lake-{number}")
            ours.append(measured("benchmarks.programs.feed_ours", lake, kafka.servers, TABLE))
            _check(lake, records)
            alone.append(
                measured("benchmarks.peers.feed_consume", kafka.servers, TABLE, str(records))
            )
    cpu, peak, consume = medians(
        [(o.cpu_seconds, o.peak_mib, c.cpu_seconds) for o, c in zip(ours, alone, strict=True)]
    )
    prefix = "feed.kafka_json"
    return [
        Figure(
            f"{prefix}.records_per_core_second", records / cpu, "records/s", PER_CORE_MIN, "higher"
        ),
        Figure(f"{prefix}.bytes_of_record", size / records, "B"),
        Figure(f"{prefix}.ratio_to_consume", consume / cpu, "", None, "higher"),
        Figure(f"{prefix}.peak_mib", peak, "MiB", PEAK_MIB_MAX),
    ]


def _produced(servers: str, of_each: int) -> int:
    """Fill the topic. Returns how many bytes its records have."""
    producer, rng, size = (
        Producer({"bootstrap.servers": servers, "linger.ms": 50}),
        random.Random(1),
        0,
    )
    for partition in range(TOPICS * PARTITIONS):
        topic = f"{TABLE}-{partition // PARTITIONS}"
        for index in range(of_each):
            id_ = partition * of_each + index
            said = {
                "id": id_,
                "at": f"2026-11-25T10:{index % 60:02}:00Z",
                "fare": rng.randrange(10_000) / 100,
                "vehicle": f"v{rng.randrange(5_000)}",
                "note": "x" * TEXT_BYTES,
            }
            value = json.dumps(said).encode()
            size += len(value)
            producer.produce(topic, value, partition=partition % PARTITIONS)
            producer.poll(0)
    producer.flush(60)
    return size


def _check(lake: str, records: int) -> None:
    """Look that each record became one row."""
    with connect(lake) as opened:
        ids = opened.table(TABLE).query(columns=["id"]).read_all()["id"].to_numpy()
    assert len(ids) == records
    assert ids[0] == 0
    assert ids[-1] == records - 1
    assert (ids[1:] > ids[:-1]).all(), "each once, in order"


if __name__ == "__main__":
    quick(__doc__, run)
