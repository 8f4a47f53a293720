"""Records in quarantine, for people to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.landing.quarantine_source import KeptRange
from lakebed.landing.quarantine_table import QUARANTINE_SCHEMA
from lakebed.model.feeds.replays import origin_of
from lakebed.model.names import ConnectionId, Micros
from lakebed.model.ranges import Range
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable

AT_ONCE = 256
"""Records that are Python objects at once."""

_PAYLOAD = ("value", "key")


class QuarantinedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of which no row could be made.

    connection: that took it: its name, or its id, if it is not defined any more.
    verdict: what it is, such as `type-mismatch`.
    detail: what was wrong, without values.
    version: of the connection's definition.
    time: that the source gave it, microseconds since 1970.
    value, key: as they came; None: it has none, or they were not asked for.
    """

    connection: str
    source_split: str
    position: int
    verdict: str
    detail: str | None
    version: int
    time: Micros | None
    value: bytes | None = None
    key: bytes | None = None


def quarantined_records(
    query: RunQuery[pa.RecordBatch],
    table: OpenTable,
    connection: ConnectionId | None,
    kept: Mapping[tuple[str, str], KeptRange],
    *,
    limit: int,
    with_values: bool,
) -> Iterator[QuarantinedRecord]:
    """Yield the first records of a quarantine table, by connection, source split and position.

    connection: only of this one.
    kept: by connection and source split, which rows count; of others, all.
    with_values: with what they hold, which is read only then.

    Raises:
        VersionExpiredError: while reading: too slow, the version was collected; ask again.
    """
    names = [field.name for field in QUARANTINE_SCHEMA.fields if field.name != "headers"]
    columns = [name for name in names if with_values or name not in _PAYLOAD]
    only = None
    if connection is not None:
        only = {"connection": Range(connection, connection, max_inclusive=True)}
    condition = condition_of(table.schema, ranges=only, columns=columns)
    left = limit
    for batch in query.run(table, condition, limit=None if kept else limit):
        rows = _that_count(batch, kept)[:left]
        left -= rows.num_rows
        for begin in range(0, rows.num_rows, AT_ONCE):
            yield from _records(rows.slice(begin, AT_ONCE))
        if not left:
            return


def _that_count(batch: pa.RecordBatch, kept: Mapping[tuple[str, str], KeptRange]) -> pa.RecordBatch:
    """Return the records that no replay has taken since."""
    if not kept:
        return batch
    gone = pa.repeat(pa.scalar(value=False), batch.num_rows)
    for (connection, split), span in kept.items():
        is_of = pc.and_(
            pc.equal(batch["connection"], connection), pc.equal(batch["source_split"], split)
        )
        outside = pc.less(batch["position"], span.begin)
        if span.end is not None:
            outside = pc.or_(outside, pc.greater_equal(batch["position"], span.end))
        gone = pc.or_(gone, pc.and_(is_of, outside))
    return batch.filter(pc.invert(gone))


def _records(batch: pa.RecordBatch) -> Iterator[QuarantinedRecord]:
    index = batch.schema.get_field_index("time")
    counted = batch.set_column(index, "time", batch["time"].cast(pa.int64()))
    for row in counted.to_pylist():  # bounded: AT_ONCE
        row["source_split"] = origin_of(row["source_split"])
        yield QuarantinedRecord(**row)
