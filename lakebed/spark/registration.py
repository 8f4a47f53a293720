"""The name `lakebed` for Spark's `format`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHES = "spark.sql.python.filterPushdown.enabled"
"""Option of Spark 4.1 and later, which is looked at when the name is registered."""


def register(spark: SparkSession) -> None:
    """Let a session know `format("lakebed")`, for reading and appending. Needs Spark 4.

    options: `lake`, as `lakebed.connect` takes it; `table`; to read `keys`, `ranges` (JSON),
        `columns`, `where` (text), `as_of`, `pin_seconds`, `slice_bytes`; to append `job`,
        `extra_columns`.

    Raises:
        InvalidError: this Spark has no data sources in Python.
    """
    if not hasattr(spark, "dataSource"):
        hint = "use lakebed.spark.read and lakebed.spark.append, or Spark 4"
        raise InvalidError("format() takes no Python", spark=spark.version, hint=hint)
    from lakebed.spark.data_source import LakebedSource, PushedSource

    pushes = spark.conf.get(PUSHES, "false") == "true"
    spark.dataSource.register(PushedSource if pushes else LakebedSource)
