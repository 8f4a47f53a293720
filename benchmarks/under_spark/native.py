"""The peer: Spark's own repartition, sort and writer, one file a leaf: `... TARGET FOLDER SHAPE`.

SHAPE: what `Shape.for_peers` says. A leaf's number is told by comparisons, the lowest first, and
mapped to an integer that Spark's partitioner sends to a partition of its own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from benchmarks.under_spark.spark_processes import CORES, SETTINGS, told


def main(target: str, folder: str, shape: str) -> None:
    plan = json.loads(shape)
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("peer")
    settings = SETTINGS | {
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.sql.adaptive.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    leaves = len(plan["split_points"]) + 1
    chosen: dict[int, int] = {}
    places = F.expr(f"pmod(hash(cast(id as int)), {leaves})")
    for row in spark.range(leaves * 40).select("id", places.alias("place")).collect():
        chosen.setdefault(row["place"], row["id"])
    with told() as begin:
        begin(spark)
        salt = F.array(*[F.lit(chosen[leaf]).cast("int") for leaf in range(leaves)])
        rows = spark.read.parquet(folder).withColumn("leaf", leaf_of(plan))
        rows = rows.repartition(leaves, salt[F.col("leaf")])
        rows = rows.sortWithinPartitions("leaf", *plan["keys"])
        rows.write.mode("overwrite").partitionBy("leaf").parquet(target)
    spark.stop()


def leaf_of(plan: dict[str, Any]) -> Column:
    """Return the number of a row's leaf."""
    key = F.col(plan["keys"][0])
    found = None
    for leaf, point in enumerate(plan["split_points"]):
        below = key < F.lit(point)
        found = F.when(below, F.lit(leaf)) if found is None else found.when(below, F.lit(leaf))
    last = F.lit(len(plan["split_points"]))
    return last if found is None else found.otherwise(last)


if __name__ == "__main__":
    main(*sys.argv[1:])
