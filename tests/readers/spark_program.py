"""Reads Parquet files with Spark and writes their rows as Spark understands them. Run by a test,
with Spark on the path: `python spark_program.py ASKED.json`.

ASKED holds a list of [file to read, directory to write, names of the columns to sort by].
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
try:
    for source, target, keys in asked:
        spark.read.parquet(source).orderBy(*keys).coalesce(1).write.parquet(target)
finally:
    spark.stop()
