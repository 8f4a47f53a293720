"""How much memory it takes to read a thousand source splits at once, into many windows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.feeding.one_core import PEAK_MIB_MAX, PREFIX
from benchmarks.feeding.rides import PARTITIONS, TABLE, produce
from benchmarks.figures import Figure
from benchmarks.processes import measured
from lakebed.lake import connect
from tests.servers.kafka import mock_kafka

TOPICS, RECORDS_OF_EACH, WINDOWS = 250, 400, 10_000


def run() -> list[Figure]:
    """Measure, by the mock of a broker: it has a thousand topic partitions at once."""
    with mock_kafka() as kafka, TemporaryDirectory() as folder:
        produce(kafka, TOPICS, RECORDS_OF_EACH, seconds=WINDOWS)
        lake = str(Path(folder) / "lake")
        used = measured("benchmarks.programs.feed_ours", lake, kafka.servers, "1")
        with connect(lake) as opened:
            (status,) = opened.status(TABLE)
            (fed,) = status.connections
            assert fed.stored == TOPICS * PARTITIONS * RECORDS_OF_EACH
    return [Figure(f"{PREFIX}.many_splits_peak_mib", used.peak_mib, "MiB", PEAK_MIB_MAX)]
