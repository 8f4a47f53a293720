"""Records of Kafka into a sorted table by one process on one core, beside others that read them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from benchmarks.feeding.rides import PARTITIONS, TABLE, broker, produce
from benchmarks.figures import Figure, medians
from benchmarks.processes import measured
from benchmarks.under_spark.spark_processes import cpu_seconds, spark_home
from lakebed.lake import connect
from tests.servers.jars import Jars
from tests.servers.kafka import KafkaServer

TOPICS, RECORDS_OF_EACH = 5, 20_000
SPARK_JARS = Jars(
    "Spark's classes for Kafka",
    "spark-kafka",
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13"),
    "4.0.0",
)
MICROS = 1_000_000
PREFIX = "feed.kafka_json"
PER_CORE_MIN, RATIO_TO_SPARK_MIN, PEAK_MIB_MAX = 120_000, 2.0, 600


def run(of_each: int | None, rounds: int) -> list[Figure]:
    """Measure. of_each: records of each topic partition. rounds: of all, in turns."""
    of_each = of_each or RECORDS_OF_EACH
    with broker() as kafka, TemporaryDirectory() as folder:
        size = produce(kafka, TOPICS, of_each)
        return _figures(kafka, Path(folder), TOPICS * PARTITIONS * of_each, size, rounds)


def _figures(
    kafka: KafkaServer, folder: Path, records: int, size: int, rounds: int
) -> list[Figure]:
    jars = _spark_jars() if kafka.has_topic_ids else ""  # its clients do not speak to the mock
    taken, streamed = [], []
    for number in range(rounds):
        lake = str(folder / f"lake-{number}")
        ours = measured("benchmarks.programs.feed_ours", lake, kafka.servers)
        alone = measured("benchmarks.peers.feed_consume", kafka.servers, TABLE, str(records))
        taken.append((ours.cpu_seconds, ours.peak_mib, alone.cpu_seconds))
        rows = _rows(lake, records)
        if jars:
            target = folder / "spark"
            module = "benchmarks.under_spark.kafka_stream"
            streamed.append([cpu_seconds(module, str(target), jars, kafka.servers, TABLE)])
            assert _streamed(target).equals(rows), "alike"
            shutil.rmtree(target)
            shutil.rmtree(f"{target}-checkpoint")
    cpu, peak, consume = medians(taken)
    figures = [
        Figure(
            f"{PREFIX}.records_per_core_second", records / cpu, "records/s", PER_CORE_MIN, "higher"
        ),
        Figure(f"{PREFIX}.bytes_of_record", size / records, "B"),
        Figure(f"{PREFIX}.ratio_to_consume", consume / cpu, "", None, "higher"),
        Figure(f"{PREFIX}.peak_mib", peak, "MiB", PEAK_MIB_MAX),
    ]
    figures += _parts(kafka, folder, records)
    if streamed:
        ratio = medians(streamed)[0] / cpu
        figures.append(Figure(f"{PREFIX}.ratio_to_spark", ratio, "", RATIO_TO_SPARK_MIN, "higher"))
    return figures


def _parts(kafka: KafkaServer, folder: Path, records: int) -> list[Figure]:
    """Return where the time of a record goes."""
    out = folder / "parts"
    measured("benchmarks.programs.feed_parts", str(folder / "lake-parts"), kafka.servers, str(out))
    parts = json.loads(out.read_text(encoding="ascii"))
    return [
        Figure(f"{PREFIX}.part.{name}_us", seconds * MICROS / records, "us")
        for name, seconds in parts.items()
    ]


def _spark_jars() -> str:
    """Return what Spark needs to read topics; "": it is not here."""
    if spark_home() is None or not SPARK_JARS.is_there:
        print("no Spark here: feeds are not measured beside it", file=sys.stderr)
        return ""
    SPARK_JARS.java()
    return ",".join(map(str, sorted(SPARK_JARS.folder.glob("*.jar"))))


def _streamed(target: Path) -> pl.DataFrame:
    """Return what Spark wrote, in our order and by our type of times."""
    found = pl.read_parquet(target / "*.parquet").sort("id")
    times = pl.col("at").dt.cast_time_unit("us").dt.replace_time_zone("UTC")
    return found.with_columns(times)


def _rows(lake: str, records: int) -> pl.DataFrame:
    """Return what is in the table. Each record became one row, in order."""
    with connect(lake) as opened:
        found = pl.from_arrow(opened.table(TABLE).query().read_all())
    assert isinstance(found, pl.DataFrame), "a table is a frame"
    assert found["id"].equals(pl.Series("id", range(records), pl.Int64)), "each once, in order"
    return found
