"""A DataFrame's rows into a table, by any Spark: a bulk import whose input is the frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from lakebed.bootstrap.cluster.frame_imports import (
    Asked,
    FrameTasks,
    begin_frame,
    finish_frame,
    give_up_frame,
)
from lakebed.errors import UnavailableError
from lakebed.spark.needed_packages import refuse_without_pandas
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.input_files import ExtraColumns, extra_columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RUNS_MAX = 500
"""Rough upper bound of the number of runs: a merge holds some rows of each."""


def append(
    frame: DataFrame,
    lake: str | os.PathLike[str],
    table: str,
    *,
    job: str | None = None,
    extra_columns: ExtraColumns = "refuse",
    on_progress: Callable[[str], None] = lambda _: None,
) -> Ingested:
    """Take all rows of a DataFrame into a table, all or none, durably. Spark sorts and merges them.

    lake: as `lakebed.connect` takes it; it is there.
    job: a name for these rows; the same job is done once, for `job_id_seconds_min`: the second time
        the frame is not computed. A frame of other columns is refused under the same name; other
        rows are not noticed.
    extra_columns: "drop" ignores columns that the table does not have; "refuse" does not.
    on_progress: called with what is being done.

    Raises:
        InvalidError: the rows do not fit, no pandas. JobIdReusedError: the id stands for another
            request. TableMissingError, with the nearest known name. The table is as before.
        TableBusyError: compaction must catch up first.
        FencedError, ConflictError, UnavailableError: nothing became visible; call again.
        UnknownOutcomeError: call again with the job in its facts; it is done once.
    """
    from spark_jobs.bulk_import import SparkCluster, answers_in_frame

    refuse_without_pandas()
    extra_columns_of(extra_columns)
    begun = begin_frame(lake, Asked(table, frame.dtypes, job, extra_columns))
    if isinstance(begun, Ingested):
        return begun
    on_progress("sorting the frame")
    sorting = frame.coalesce(RUNS_MAX).mapInArrow(_sorter(begun.tasks), "answer binary")
    try:
        answers = answers_in_frame(sorting)
    except UnavailableError as error:
        give_up_frame(begun, (), error)
        raise
    cluster_for = partial(SparkCluster, session=frame.sparkSession)
    return finish_frame(begun, answers, cluster_for=cluster_for, on_progress=on_progress)


def _sorter(
    tasks: FrameTasks,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does: it is given rows, and gives one answer."""

    def sorted_run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer = tasks.sort(TaskContext.get().partitionId(), batches)
        yield pa.record_batch([pa.array([answer], pa.binary())], names=["answer"])

    return sorted_run
