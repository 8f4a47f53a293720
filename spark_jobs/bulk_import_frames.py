"""Bulk import as Spark sees it: a DataFrame of tasks in, a DataFrame of answers out.

The rows of tables never pass through Spark: tasks read, sort and write them by the code of ingest
and compaction, more cheaply than by Spark's own (docs/design/bulk_import.md).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.types import BinaryType


def tasks_frame(spark: SparkSession, tasks: int) -> DataFrame:
    """Return so many tasks by number, one in each partition. column: number int.

    What each is told travels beside it, as a broadcast: rows that Python gives to Spark would begin
    processes of their own.
    """
    return spark.range(0, tasks, 1, tasks).select(F.col("id").cast("int").alias("number"))


def answers_frame(tasks: DataFrame, do_task: Callable[[int], bytes]) -> DataFrame:
    """Return what each task answers. columns: number int, answer binary.

    tasks: as `tasks_frame` gives them.
    """
    # Not deterministic: it writes under names that are used once, so it is never done twice over
    # for one answer, and no optimizer may move it.
    answer = F.udf(do_task, BinaryType()).asNondeterministic()
    return tasks.select(F.col("number"), answer(F.col("number")).alias("answer"))
