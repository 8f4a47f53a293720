"""Rows for stories about whole lakes, and whether a table holds what it was given."""

import pyarrow as pa

import lakebed
from lakebed.model.schema import Schema
from lakebed.table import Table

SCHEMA: Schema = lakebed.schema_of(
    row_keys={"id": "string"}, sort_keys={"at": "int64"}, values={"text": "string?"}
)
SMALL_LEAVES = {"leaf_rows_max": 100}
KEY_ORDER = [("id", "ascending"), ("at", "ascending")]


def rows(count: int, *, seed: int = 0) -> pa.Table:
    """Return rows in no order; other seeds give other rows."""
    numbers = [(number * 7_919 + seed * 13) % 100_003 for number in range(count)]
    return pa.table(
        {
            "id": pa.array([f"k{number:06}" for number in numbers]),
            "at": pa.array([seed] * count, pa.int64()),
            "text": pa.array([f"row {number} of {seed}" for number in numbers]),
        }
    )


def same_rows(table: Table, *ingested: pa.Table) -> bool:
    """Return whether a table holds what was ingested, each row as often as it came."""
    wanted = pa.concat_tables(ingested).sort_by(KEY_ORDER)
    found = pa.Table.from_batches(list(table.query())).sort_by(KEY_ORDER)
    return bool(found.select(wanted.column_names).cast(wanted.schema).equals(wanted))
