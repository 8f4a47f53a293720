"""The table of jobs that have ended, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakebed.history.row_batches import row_batches
from lakebed.model.names import TableName
from lakebed.model.processing import AgeOff, Processing
from lakebed.model.schema import schema_of
from lakebed.ports.job_tracker import JobEvent, JobReport

JOBS_TABLE = TableName("lakebed-jobs")
JOBS_SCHEMA = schema_of(
    row_keys={"table": "string", "at": "timestamp[us, UTC]"},
    sort_keys={"job": "string"},
    values={
        "kind": "string",
        "event": "string",
        "rows": "int64",
        "filtered": "int64",
        "seconds": "float64",
        "number": "int64",
        "run": "string",
        "task": "string",
        "reason": "string",
        "table_id": "string",
    },
)
"""table: its name on the day after; "": jobs that name none. number: of the log entry; 0: none."""
ENDED: tuple[JobEvent, ...] = ("committed", "rejected", "failed", "given up", "lost")
DAY_SECONDS = 86_400

_COLUMNS = pa.schema(
    [
        ("table", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("job", pa.string()),
        ("kind", pa.string()),
        ("event", pa.string()),
        ("rows", pa.int64()),
        ("filtered", pa.int64()),
        ("seconds", pa.float64()),
        ("number", pa.int64()),
        ("run", pa.string()),
        ("task", pa.string()),
        ("reason", pa.string()),
        ("table_id", pa.string()),
    ]
)


def kept_for(days: int) -> Processing:
    """Return what leaves out jobs that ended so many days ago."""
    return Processing(age_off=AgeOff("at", days * DAY_SECONDS))


def job_batches(
    reports: Iterable[tuple[TableName | str, JobReport]],
) -> Iterator[pa.RecordBatch]:
    """Yield rows of jobs, with the names of their tables."""
    yield from row_batches((_row(*found) for found in reports), _COLUMNS)


def _row(table: str, one: JobReport) -> dict[str, object]:
    return {
        "table": table,
        "at": one.at,
        "job": one.job,
        "kind": one.kind,
        "event": one.event,
        "rows": one.rows,
        "filtered": one.filtered,
        "seconds": one.seconds,
        "number": one.number,
        "run": one.run,
        "task": one.task,
        "reason": one.reason,
        "table_id": one.table,
    }
