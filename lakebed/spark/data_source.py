"""`format("lakebed")` of Spark 4: a Python data source that gives and takes Arrow batches.

Spark makes these objects in processes of the driver, and pickles them to tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lakebed.bootstrap.cluster.frame_imports import (
    BegunFrame,
    begin_frame,
    finish_frame,
    give_up_frame,
)
from lakebed.bootstrap.cluster.slice_scans import PlannedScan, plan_scan, table_columns
from lakebed.bootstrap.cluster.this_process import ThisProcess
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.predicates.language import Predicate
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection
from lakebed.spark.appending import RUNS_MAX
from lakebed.spark.filters import taken_over
from lakebed.spark.options import ReadOptions, append_options
from lakebed.spark.reading import check_columns
from lakebed.spark.spark_types import columns_for_spark, for_spark, spark_schema
from lakebed.tasks.user_jobs import Ingested


class LakebedSource(DataSource):  # type: ignore[misc]  # pyspark ships no types
    """A table of a lake."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return "lakebed"

    def schema(self) -> StructType:
        """Return the columns that are asked for, now. Raises: as `plan_scan`."""
        options = ReadOptions(dict(self.options))
        ask = partial(_asked, options, ())
        columns = table_columns(options.lake, options.table, ask, options.scan)
        return spark_schema(columns_for_spark(columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the table as it is now, or was. Raises: as `plan_scan`."""
        return LakebedReader(dict(self.options), schema)

    def writer(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's
    ) -> DataSourceArrowWriter:
        """Return what appends a frame. Raises: as `begin_frame`; InvalidError: to overwrite."""
        if overwrite:
            hint = 'clear the table, then say mode("append"): no commit does both'
            raise InvalidError('mode("overwrite") is not offered', hint=hint)
        columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        begun = begin_frame(*append_options(dict(self.options), columns))
        return NothingToDo() if isinstance(begun, Ingested) else LakebedWriter(begun)


class SlicePartition(InputPartition):  # type: ignore[misc]  # pyspark ships no types
    """A slice, as bytes."""

    value: bytes


class LakebedReader(DataSourceReader):  # type: ignore[misc]  # pyspark ships no types
    """Reads one version. It is planned when Spark pickles it, or asks for partitions: filters come
    before."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = ReadOptions(options)
        self._schema = schema
        self._pushed: tuple[Predicate, ...] = ()
        self._planned: PlannedScan | None = None

    def __getstate__(self) -> dict[str, Any]:
        planned = self._plan()
        return {"_tasks": planned.tasks, "_columns": columns_for_spark(planned.columns)}

    def partitions(self) -> list[SlicePartition]:
        """Return the slices."""
        return [SlicePartition(one) for one in self._plan().slices]

    def read(self, partition: SlicePartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice. partition: None: there are no slices."""
        if partition is None:
            return iter(())
        return for_spark(self._tasks.read(partition.value), self._columns)

    def _plan(self) -> PlannedScan:
        if self._planned is None:
            options = self._options
            ask = partial(_asked, options, self._pushed)
            planned = plan_scan(options.lake, options.table, ask, options.scan)
            if spark_schema(columns_for_spark(planned.columns)) != self._schema:
                hint = "leave schema() out; if the table was changed meanwhile, load it again"
                raise InvalidError("these are not the table's columns", hint=hint)
            self._planned = planned
        return self._planned


class PushedReader(LakebedReader):
    """A reader that Spark hands filters to. A class of its own: Spark refuses one that takes them
    where it is set not to give any."""

    def pushFilters(self, filters: Sequence[Any]) -> Iterator[Any]:  # noqa: N802 - Spark's
        """Yield those that Spark must apply itself."""
        options = self._options
        schemas: list[Schema] = []

        def ask(schema: Schema) -> Selection:
            schemas.append(schema)
            return _asked(options, (), schema)

        table_columns(options.lake, options.table, ask, options.scan)
        for one, predicate in taken_over(filters, schemas[0]):
            if predicate is None:
                yield one
            else:
                self._pushed += (predicate,)


class PushedSource(LakebedSource):
    """A table of a lake, which filters are pushed to."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the table as it is now, or was. Raises: as `plan_scan`."""
        return PushedReader(dict(self.options), schema)


class SortedPart(WriterCommitMessage):  # type: ignore[misc]  # pyspark ships no types
    """The answer of a task for its part of a frame."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


class LakebedWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark ships no types
    """Appends a frame: tasks sort its parts, the driver's process merges and commits."""

    def __init__(self, begun: BegunFrame) -> None:
        self._begun = begun

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SortedPart:
        """Sort rows of one partition. Raises: as `FrameTasks.sort`."""
        number = TaskContext.get().partitionId()
        if number >= RUNS_MAX:
            return SortedPart(self._begun.tasks.refuse(_too_many_partitions()))
        return SortedPart(self._begun.tasks.sort(number, iterator))

    def commit(self, messages: list[SortedPart | None]) -> None:
        """Merge and commit. Raises: as `finish_frame`."""
        finish_frame(self._begun, _answers(messages), cluster_for=ThisProcess)

    def abort(self, messages: list[SortedPart | None]) -> None:
        """Give the job up. Raises: as `give_up_frame`."""
        error = UnavailableError("Spark gave up on the job", hint="run it again")
        give_up_frame(self._begun, _answers(messages), error)


class NothingToDo(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark ships no types
    """Takes no rows: the job was done before."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Leave the rows of one partition alone."""
        return WriterCommitMessage()


def _asked(options: ReadOptions, pushed: Sequence[Predicate], schema: Schema) -> Selection:
    asked = options.condition(schema, pushed)
    check_columns(schema, asked)
    return asked


def _answers(messages: list[SortedPart | None]) -> list[bytes]:
    return [message.answer for message in messages if message is not None]


def _too_many_partitions() -> InvalidError:
    hint = f"write frame.coalesce({RUNS_MAX}), or use lakebed.spark.append, which does it"
    return InvalidError("the frame has too many partitions", partitions_max=RUNS_MAX, hint=hint)
