"""The peer: structured streaming, topics into Parquet: `... TARGET JARS SERVERS TABLE`.

All that the topics have, in one batch. JARS: Spark's classes for Kafka, with commas between.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from benchmarks.under_spark.spark_processes import CORES, SETTINGS, told

FIELDS = "id bigint, at timestamp, fare double, vehicle string, note string"


def main(target: str, jars: str, servers: str, table: str) -> None:
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("peer")
    settings = SETTINGS | {
        "spark.jars": jars,
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with told() as begin:
        begin(spark)
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribePattern", f"{table}-[0-9]+")
            .option("startingOffsets", "earliest")
            .load()
        )
        decoded = F.from_json(F.col("value").cast("string"), FIELDS)
        rows = records.select(decoded.alias("row")).select("row.*")
        stream = (
            rows.writeStream.format("parquet")
            .option("path", target)
            .option("checkpointLocation", f"{target}-checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        stream.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
