"""Iterators as users write them, right and wrong. Tests name them as entry points."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.processing.iterators import RowIterator

Batches = Iterator[pa.RecordBatch]


def top(columns: pa.Schema, config: Mapping[str, Any]) -> RowIterator:
    """Keep rows whose value is at least a limit."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pc.greater_equal(batch.column("value"), config["limit"]))

    return run


def one_a_key(columns: pa.Schema, config: Mapping[str, Any]) -> RowIterator:
    """Keep the greatest value of each key."""

    def run(batches: Batches) -> Batches:
        rows = pa.Table.from_batches(batches, columns)
        found = rows.group_by("id", use_threads=False).aggregate([("value", "max")])
        yield from found.rename_columns(columns.names).cast(columns).sort_by("id").to_batches()

    return run


def _changes(batch: pa.RecordBatch, how: str) -> Any:  # noqa: ANN401  wrong ones, too
    match how:
        case "other columns":
            return batch.select(["id"])
        case "null":
            return batch.set_column(0, batch.schema.field(0), pa.nulls(len(batch), pa.string()))
        case "unsorted":
            return batch.take(pa.array(range(len(batch) - 1, -1, -1)))
        case "no batch":
            return "rows"
        case "elsewhere":
            return batch.set_column(0, batch.schema.field(0), pa.array(["~"] * len(batch)))
        case "bytes":
            raw = pa.py_buffer(b"\xff" * len(batch))
            ends = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in range(len(batch) + 1)))
            text = pa.Array.from_buffers(pa.string(), len(batch), [None, ends, raw])
            return batch.set_column(0, batch.schema.field(0), text)
        case _:
            raise RuntimeError("it went wrong")


def wrong(columns: pa.Schema, config: Mapping[str, Any]) -> RowIterator:
    """Break the contract in some way."""

    def run(batches: Batches) -> Iterable[Any]:
        return (_changes(batch, config["how"]) for batch in batches)

    return run


def swallows(columns: pa.Schema, config: Mapping[str, Any]) -> RowIterator:
    """Hide what goes wrong with its input."""

    def run(batches: Batches) -> Batches:
        with suppress(Exception):
            yield from batches

    return run


def not_an_iterator(columns: pa.Schema, config: Mapping[str, Any]) -> int:
    """Return nothing that can be called."""
    return 5


def needs_an_option(columns: pa.Schema, config: Mapping[str, Any]) -> RowIterator:
    """Raise when it is configured."""
    return wrong(columns, {"how": config["option"]})
