"""One scan of a table by Spark: `... WAY LAKE SHAPE`. WAY: `read` and `format` are ours, `parquet`
is Spark's reader of the same files.

It groups rows by one column and looks at the others; ours are told which columns those are, Spark
finds that out for itself. The digest of what is found is a line of its own.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

import lakebed.spark
from benchmarks.shapes import SHAPES
from benchmarks.under_spark.spark_processes import CORES, SETTINGS, told


def main(way: str, lake: str, shape: str) -> None:
    keys = SHAPES[shape].keys
    columns = [keys[-1], SHAPES[shape].schema.values[0].name]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{CORES}]").appName(way)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with told() as begin:
        begin(spark)
        rows = frame(spark, way, lake, columns)
        by = F.expr(f"pmod(hash({columns[0]}), 100)")
        found = rows.groupBy(by).agg(F.max(columns[1]), F.count("*")).collect()
        print(hashlib.sha256(repr(sorted(map(tuple, found))).encode()).hexdigest())
    spark.stop()


def frame(spark: SparkSession, way: str, lake: str, columns: list[str]) -> DataFrame:
    """Return the rows of the table."""
    match way:
        case "read":
            return lakebed.spark.read(spark, lake, "bench", columns=columns)
        case "format":
            lakebed.spark.register(spark)
            options = {"lake": lake, "table": "bench", "columns": ",".join(columns)}
            return spark.read.format("lakebed").options(**options).load()
        case _:
            files = Path(lake, "objects").glob("tables/*/files/**/*.parquet")
            return spark.read.parquet(*sorted(map(str, files)))


if __name__ == "__main__":
    main(*sys.argv[1:])
