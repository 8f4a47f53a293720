"""Rows as text that no release changes."""

from __future__ import annotations

import json

import pyarrow as pa


def rows_text(table: pa.Table) -> list[str]:
    """Return each row as JSON, in order; what JSON has no form for as its Python text."""
    return [json.dumps(row, sort_keys=True, default=str) for row in table.to_pylist()]
