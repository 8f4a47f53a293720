"""The columns of each report, and rows of them from what is known of tables, jobs and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lakebed.config.settings import TableSettings
from lakebed.inspection.dead_letters import Letter
from lakebed.inspection.report import ReportColumn, Value
from lakebed.inspection.status import NodeStatus, TableStatus
from lakebed.model.keys import key_value_text, prefix_values
from lakebed.model.names import PartitionId, TableName
from lakebed.model.schema import Schema
from lakebed.ports.job_tracker import JobReport, TaskReport

Row = tuple[Value, ...]

STATUS = (
    ReportColumn("table", "text", "table"),
    ReportColumn("online", "flag", "online"),
    ReportColumn("rows", "count", "rows"),
    ReportColumn("rows_exact", "flag"),
    ReportColumn("files", "count", "files"),
    ReportColumn("bytes", "count", "bytes"),
    ReportColumn("leaves", "count", "leaves"),
    ReportColumn("leaf_files", "count", "most files a leaf"),
    ReportColumn("jobs", "count", "jobs"),
    ReportColumn("garbage_files", "count", "garbage"),
    ReportColumn("garbage_bytes", "count"),
    ReportColumn("number", "count", "entry"),
    ReportColumn("snapshot", "count", "snapshot"),
    ReportColumn("pins", "count", "pins"),
)
PARTITIONS = (
    ReportColumn("table", "text", "table"),
    ReportColumn("partition", "count", "partition"),
    ReportColumn("field", "text", "of"),
    ReportColumn("min", "text", "from"),
    ReportColumn("max", "text", "below"),
    ReportColumn("rows", "count", "rows"),
    ReportColumn("rows_exact", "flag"),
    ReportColumn("files", "count", "files"),
    ReportColumn("claimed", "count", "claimed"),
    ReportColumn("bytes", "count", "bytes"),
    ReportColumn("splittable", "flag"),
    ReportColumn("will_split", "flag", "will split"),
    ReportColumn("split_key", "text", "by"),
    ReportColumn("split_at", "text", "at"),
    ReportColumn("rows_until_split", "count", "rows until then"),
)
FILES = (
    ReportColumn("table", "text", "table"),
    ReportColumn("path", "text", "path"),
    ReportColumn("min", "text", "from"),
    ReportColumn("max", "text", "below"),
    ReportColumn("rows", "count", "rows"),
    ReportColumn("rows_exact", "flag"),
    ReportColumn("bytes", "count", "bytes"),
    ReportColumn("whole", "flag", "whole"),
)
JOBS = (
    ReportColumn("at", "time", "when"),
    ReportColumn("table", "text", "table"),
    ReportColumn("kind", "text", "kind"),
    ReportColumn("event", "text", "what"),
    ReportColumn("rows", "count", "rows"),
    ReportColumn("filtered", "count", "left out"),
    ReportColumn("seconds", "real", "seconds"),
    ReportColumn("number", "count", "entry"),
    ReportColumn("run", "text"),
    ReportColumn("task", "text"),
    ReportColumn("job", "text", "job"),
    ReportColumn("reason", "text", "reason"),
)
TASKS = (
    ReportColumn("started", "time", "started"),
    ReportColumn("at", "time", "last heard of"),
    ReportColumn("kind", "text", "kind"),
    ReportColumn("jobs", "count", "jobs"),
    ReportColumn("ended", "flag", "ended"),
    ReportColumn("task", "text", "task"),
)
DEAD_LETTERS = (
    ReportColumn("queue", "text", "queue"),
    ReportColumn("table", "text", "table"),
    ReportColumn("job", "text", "job"),
    ReportColumn("age_seconds", "count", "age"),
    ReportColumn("receives", "count", "receives"),
    ReportColumn("reason", "text", "reason"),
    ReportColumn("body", "text"),
)


def status_row(status: TableStatus) -> Row:
    """Return the row of a table."""
    return (
        status.name,
        status.online,
        status.rows,
        status.rows_exact,
        status.files,
        status.bytes,
        status.leaves,
        max((node.files for node in status.nodes), default=0),
        len(status.jobs),
        status.garbage_files,
        status.garbage_bytes,
        status.number,
        max(status.snapshots, default=None),
        status.pins,
    )


def partition_rows(
    status: TableStatus,
    schema: Schema,
    settings: TableSettings,
    points: Mapping[PartitionId, tuple[bytes, ...]],
) -> Iterator[Row]:
    """Yield a row for each leaf, in key order. points: where leaves would be split now; a leaf
    that is due and has none of them has no point, or its samples show that it is not too large."""
    for node in status.nodes:
        if node.left is not None:
            continue
        at = points.get(PartitionId(node.id), ())
        yield (
            status.name,
            node.id,
            node.field,
            node.min,
            node.max,
            node.rows,
            node.rows_exact,
            node.files,
            node.claimed,
            node.bytes,
            not node.unsplittable,
            bool(at),
            _split_key(schema, at),
            "; ".join(_key_text(schema, point) for point in at) or None,
            0 if at else rows_until_split(node, settings),
        )


def rows_until_split(node: NodeStatus, settings: TableSettings) -> int:
    """Return how many more rows like its own a leaf takes before it is too large. One without a
    split point is asked again when it has twice as many rows."""
    rows_max = settings.leaf_rows_max
    if node.rows and node.bytes:
        rows_max = min(rows_max, settings.leaf_bytes_max * node.rows // node.bytes)
    if node.unsplittable:
        rows_max = max(rows_max, 2 * node.rows)
    return max(0, rows_max - node.rows) + 1


def _split_key(schema: Schema, points: tuple[bytes, ...]) -> str | None:
    """Return the fields that all points are of."""
    depth = max((len(prefix_values(schema.row_keys, point)) for point in points), default=0)
    return ",".join(field.name for field in schema.row_keys[:depth]) or None


def _key_text(schema: Schema, point: bytes) -> str:
    values = prefix_values(schema.row_keys, point)
    return ",".join(map(key_value_text, schema.row_keys, values))


def job_rows(reports: Iterable[tuple[TableName, JobReport]]) -> Iterator[Row]:
    """Yield a row for each job of a table."""
    for table, one in reports:
        yield (
            one.at,
            table,
            one.kind,
            one.event,
            one.rows,
            one.filtered,
            one.seconds,
            one.number or None,
            one.run,
            one.task,
            one.job,
            one.reason,
        )


def task_rows(reports: Iterable[TaskReport]) -> Iterator[Row]:
    """Yield a row for each task."""
    for one in reports:
        yield one.started, one.at, one.kind, one.jobs, one.ended, one.task


def letter_rows(letters: Iterable[Letter]) -> Iterator[Row]:
    """Yield a row for each dead letter."""
    for one in letters:
        yield (
            one.queue,
            one.table,
            one.job,
            one.age_seconds,
            one.receives,
            one.reason,
            one.body,
        )
