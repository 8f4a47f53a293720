"""Records of a landing table, for people to look at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.model.names import Micros
from lakebed.model.ranges import Range
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable

AT_ONCE = 256
"""Records that are Python objects at once."""

_PAYLOAD = ("value", "key", "headers")


class LandedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it was landed.

    time: that the source gave it, microseconds since 1970.
    value, key: as they came; None: it has none, or they were not asked for.
    headers: in their order; one may be there twice.
    """

    source_split: str
    position: int
    time: Micros | None
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def landed_records(
    query: RunQuery[pa.RecordBatch],
    table: OpenTable,
    source_split: str | None,
    positions: tuple[int, int | None],
    *,
    limit: int,
    with_values: bool,
) -> Iterator[LandedRecord]:
    """Yield the first records of a landing table, by source split and position.

    source_split: only of this one.
    positions: from the first up to the second, which lies outside; None: to the end.
    with_values: with what they hold, which is read only then.

    Raises:
        VersionExpiredError: while reading: too slow, the version was collected; ask again.
    """
    names = [field.name for field in LANDING_SCHEMA.fields]
    columns = [name for name in names if with_values or name not in _PAYLOAD]
    ranges = {"position": Range(*positions)}
    if source_split is not None:
        ranges["source_split"] = Range(source_split, source_split, max_inclusive=True)
    condition = condition_of(table.schema, ranges=ranges, columns=columns)
    for batch in query.run(table, condition, limit=limit):
        for begin in range(0, batch.num_rows, AT_ONCE):
            yield from records_of(batch.slice(begin, AT_ONCE))


def records_of(batch: pa.RecordBatch, source_split: str = "") -> Iterator[LandedRecord]:
    """Yield a few records as Python objects.

    batch: their columns, those that are wanted.
    source_split: of all of them, unless a column says it.
    """
    index = batch.schema.get_field_index("time")
    counted = batch.set_column(index, "time", batch["time"].cast(pa.int64()))
    for row in counted.to_pylist():  # bounded: AT_ONCE
        row["headers"] = tuple(map(tuple, row.get("headers") or ()))
        yield LandedRecord(**{"source_split": source_split, **row})
