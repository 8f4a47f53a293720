"""The same lookups by a predicate on the key as by `keys`, in turn, from files on this machine.

No server stands between: its latency would hide what a predicate costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow.compute as pc

import lakebed
from benchmarks.figures import Figure, medians, quick
from benchmarks.lookup import ROWS
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import made, objects_of
from benchmarks.shapes import SHAPES
from lakebed.table import Table

LOOKUPS = 500
RATIO_MAX = 1.5


def run(
    rows: int | None = None, rounds: int = 1, shapes: Sequence[str] = (), *, lookups: int = LOOKUPS
) -> list[Figure]:
    """Measure. rows: of the table. rounds: of all lookups. Takes a minute, and the table's time."""
    figures = []
    for name in shapes or ("sys",):
        shape = SHAPES[name]
        folder = made(shape, rows or ROWS[name])
        keys = msgspec.msgpack.decode((folder / "keys").read_bytes(), type=list[str])
        objects = ServedObjects(objects_of(folder), None)
        with lakebed.connect(folder / "directory", objects=objects) as lake:
            table, field = lake.table("bench"), shape.schema.row_keys[0].name
            ways: list[Callable[[str], dict[str, Any]]] = [
                lambda key: {"keys": [key]},
                lambda key, field=field: {"where": f"{field} = '{key}'"},
                lambda key, field=field: {"where": pc.field(field) == key},
            ]
            taken = [
                [_seconds(partial(_found, table, way(key))) for way in ways]
                for number in range(lookups * rounds)
                for key in [keys[number % len(keys)]]
            ]
        by_key, by_text, by_expression = medians(taken)
        prefix = "where.key" if name == "sys" else f"where.{name}.key"
        figures += [
            Figure(f"{prefix}.ratio_to_keys", by_text / by_key, "", RATIO_MAX),
            Figure(f"{prefix}.expression_ratio_to_keys", by_expression / by_key, "", RATIO_MAX),
            Figure(f"{prefix}.p50_ms", 1000 * by_text, "ms"),
        ]
    return figures


def _found(table: Table, asked: dict[str, Any]) -> None:
    assert table.query(**asked).read_all().num_rows, f"nothing was found: {asked}"


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    quick(__doc__, run)
