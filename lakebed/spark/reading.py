"""A table as a DataFrame of any Spark: one version for good."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import pyarrow as pa

from lakebed.bootstrap.cluster.slice_scans import PlannedScan, ScanOptions, plan_scan
from lakebed.model.predicates.language import Predicate
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.spark.needed_packages import refuse_without_pandas
from lakebed.spark.spark_types import columns_for_spark, for_spark, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class HowToScan(TypedDict, total=False):
    """The options of a scan of a table. Each may be left out.

    pin_seconds: how long the version's files stay at least, so that the frame can be used; left
        out: an hour. 0: nothing is committed; the newest version stays for the table's
        `garbage_seconds_min`. With `as_of` nothing is sure then: the files of an older version may
        go at any time, unless it has a tag or another pin.
    slice_bytes: of stored files that one partition reads, about; left out: 32 MiB.
    as_of: the version, as `Table.query` takes it; left out: the newest.
    """

    pin_seconds: int
    slice_bytes: int
    as_of: AsOf | None


def read(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    table: str,
    *,
    keys: Sequence[object] | None = None,
    ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    **how: Unpack[HowToScan],
) -> DataFrame:
    """Return the rows of one version as a DataFrame, each partition in key order. However often it
    is used, its rows are of that version.

    lake: as `lakebed.connect` takes it; it is there.
    keys, ranges, columns, where: as `Table.query` takes them. What Spark is told to filter or to
        select afterwards, is read first.
    how: which version, how long it stays, and how much a partition reads.

    Raises:
        InvalidError: what `Table.query` refuses, a field that Spark has no type for, an expression
            of Arrow, no pandas; nothing was pinned. TableMissingError, with the nearest known name.
            VersionExpiredError: an older version is not kept any more. FormatGateError: an older
            version is to be pinned, and older releases may still work on the lake: finish the
            upgrade, or give `pin_seconds=0`. UnavailableError, DeniedError: the pin cannot be
            committed.
    """
    refuse_without_pandas()

    def ask(schema: Schema) -> Selection:
        asked = condition_of(schema, keys=keys, ranges=ranges, columns=columns, where=where)
        check_columns(schema, asked)
        return asked

    planned = plan_scan(lake, table, ask, ScanOptions(**how))
    columns_given = columns_for_spark(planned.columns)
    partitions = len(planned.slices)
    numbers = spark.range(0, partitions, 1, max(1, partitions))
    return numbers.mapInArrow(_reader(planned, columns_given), spark_schema(columns_given))


def check_columns(schema: Schema, asked: Selection) -> None:
    """Raise InvalidError for a field that is read and that Spark has no type for."""
    whole = arrow_schema(schema)
    columns_for_spark(
        whole if asked.columns is None else pa.schema([whole.field(name) for name in asked.columns])
    )


def _reader(
    planned: PlannedScan, columns: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does: it is given numbers of slices, and gives their rows."""
    tasks, slices = planned.tasks, planned.slices

    def rows(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():  # bounded: one number a partition
                yield from for_spark(tasks.read(slices[number]), columns)

    return rows
