"""The table of what work used, by table, hour and kind, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakebed.history.row_batches import row_batches
from lakebed.model.names import TableName
from lakebed.model.schema import schema_of
from lakebed.ports.paying.usage_ledger import LedgerEntry, time_of

USAGE_TABLE = TableName("lakebed-usage")
USAGE_SCHEMA = schema_of(
    row_keys={"table": "string", "at": "timestamp[us, UTC]"},
    sort_keys={"kind": "string"},
    values={"counts": {"map": ["string", "float64"]}, "table_id": "string"},
)
"""table: its name on the day after; of one that was dropped its id; "-": work that no table caused.
at: when the hour began. counts: by counter; releases may add counters."""

_COLUMNS = pa.schema(
    [
        ("table", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("counts", pa.map_(pa.string(), pa.float64())),
        ("table_id", pa.string()),
    ]
)


def usage_batches(entries: Iterable[tuple[str, LedgerEntry]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of entries of the ledger, with the names of their tables."""
    yield from row_batches((_row(*found) for found in entries), _COLUMNS)


def _row(name: str, entry: LedgerEntry) -> dict[str, object]:
    return {
        "table": name,
        "at": time_of(entry.hour),
        "kind": entry.kind,
        "counts": list(entry.counts.items()),
        "table_id": entry.table,
    }
