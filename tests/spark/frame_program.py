"""Reads and appends frames in one session of Spark: `... ASKED.json FOLDER`. Run by tests, with a
line of Spark on the path.

ASKED: a list of steps, each {"name": ..., "do": ..., ...}. What each gave, or the error that it
met, is written to FOLDER/NAME.json, rows as Parquet to FOLDER/NAME.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lakebed
import lakebed.spark
from lakebed.errors import LakebedError
from lakebed.spark.registration import PUSHES

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",  # rows do not depend on it
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


class Program:
    """Does steps. folder: for what they give."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def do(self, step: dict[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = getattr(self, step["do"])(step)
        except (LakebedError, PySparkException) as error:
            return {"error": type(error).__name__, "text": str(error)}
        return found

    def read(self, step: dict[str, Any]) -> dict[str, Any]:
        """Read by `lakebed.spark.read`, or by `format`."""
        return self._kept(step, self._frame(step["from"]))

    def append(self, step: dict[str, Any]) -> dict[str, Any]:
        """Append a frame by `lakebed.spark.append`."""
        done = lakebed.spark.append(
            self._frame(step["from"]), step["lake"], step["table"], **step.get("with", {})
        )
        return dict(msgspec.to_builtins(done))

    def save(self, step: dict[str, Any]) -> dict[str, Any]:
        """Append a frame by `format`."""
        lakebed.spark.register(self._spark)
        frame = self._frame(step["from"])
        frame.write.format("lakebed").mode(step.get("mode", "append")).options(
            **step["options"]
        ).save()
        return {}

    def _frame(self, wanted: dict[str, Any]) -> DataFrame:
        asked = dict(wanted)
        match asked.pop("kind"):
            case "table":
                where = asked.pop("where", None)
                if where is not None:
                    asked["where"] = lakebed.predicate_from_text(where)
                chosen = asked.pop("filter", None)
                lake, table = asked.pop("lake"), asked.pop("table")
                return _filtered(lakebed.spark.read(self._spark, lake, table, **asked), chosen)
            case "format":
                if (pushes := asked.pop("pushes", None)) is not None:
                    self._spark.conf.set(PUSHES, str(pushes).lower())
                lakebed.spark.register(self._spark)
                chosen = asked.pop("filter", None)
                return _filtered(self._spark.read.format("lakebed").options(**asked).load(), chosen)
            case "parquet":
                return self._spark.read.parquet(asked["path"])
            case "numbers":
                return made(self._spark, **asked)
            case unknown:
                raise AssertionError(unknown)

    def _kept(self, step: dict[str, Any], frame: DataFrame) -> dict[str, Any]:
        partitions = frame.rdd.getNumPartitions()
        frame.write.parquet(str(self._folder / step["name"]))
        return {"schema": frame.schema.simpleString(), "partitions": partitions}


def _filtered(frame: DataFrame, chosen: str | None) -> DataFrame:
    return frame if chosen is None else frame.where(chosen)


def made(
    spark: SparkSession, rows: int, partitions: int, fail: str = "never", wait_for: str = ""
) -> DataFrame:
    """Return a frame of columns k, n, wide. fail: "first": the first attempt of the first partition
    dies after it has given rows; "always". wait_for: a file before which the last partition does
    not end."""

    def filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number, attempt = task.partitionId(), task.attemptNumber()
        for batch in batches:
            numbers = batch.column(0)
            keys = pa.array([f"{n * 7 % 10}-{n * 31 % 97}" for n in numbers.to_pylist()])
            wide = pa.array([b"w" * 1_000] * len(batch))
            yield pa.record_batch([keys, numbers, wide], names=["k", "n", "wide"])
            if number == 0 and (fail == "always" or (fail == "first" and attempt == 0)):
                raise RuntimeError("this attempt dies")
        while wait_for and number == partitions - 1 and not Path(wait_for).exists():
            time.sleep(0.05)

    numbers = spark.range(0, rows, 1, partitions)
    return numbers.mapInArrow(filled, "k string, n long, wide binary")


def main(asked: Path, folder: Path) -> None:
    steps = json.loads(asked.read_text(encoding="utf-8"))
    builder = SparkSession.builder.master(sys.argv[3])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    program = Program(spark, folder)
    try:
        for step in steps:
            gave = program.do(step)
            (folder / f"{step['name']}.json").write_text(json.dumps(gave), encoding="utf-8")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
