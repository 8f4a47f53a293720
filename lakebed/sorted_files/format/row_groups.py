"""Cutting a stream of rows into row groups, and wide rows into batches, by rows and by bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

ROW_GROUP_ROWS_MAX = 100_000
ROW_GROUP_BYTES_MAX = 32 * 1024 * 1024
"""Most bytes of a row group in memory, unless one row alone is larger."""

STRETCH_ROWS = 4096


def row_group_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables that become row groups: full ones, then the rest."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for part in cut(batch, ROW_GROUP_ROWS_MAX, ROW_GROUP_BYTES_MAX // 8):
            rest = part
            while rows + len(rest) > ROW_GROUP_ROWS_MAX or (
                held and size + rest.nbytes > ROW_GROUP_BYTES_MAX
            ):
                room = 0 if size + rest.nbytes > ROW_GROUP_BYTES_MAX else ROW_GROUP_ROWS_MAX - rows
                yield pa.Table.from_batches([*held, *([rest.slice(0, room)] if room else [])])
                held, rows, size = [], 0, 0
                rest = rest.slice(room)
            if len(rest):
                held.append(rest)
                rows += len(rest)
                size += rest.nbytes
            if rows == ROW_GROUP_ROWS_MAX:
                yield pa.Table.from_batches(held)
                held, rows, size = [], 0, 0
            del part, rest
        del batch  # not held while the next ones are made
    if held:
        yield pa.Table.from_batches(held)


def cut(batch: pa.RecordBatch, rows_max: int, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch, in order, of at most so many rows and bytes, at least one row."""
    todo = [batch] if len(batch) else []
    while todo:
        part = todo.pop()
        pieces = max(-(-len(part) // rows_max), -(-part.nbytes // bytes_max))
        if pieces <= 1 or len(part) == 1:
            yield part
            continue
        rows = max(1, len(part) // min(pieces, len(part)))
        todo += [part.slice(at, rows) for at in range(0, len(part), rows)][::-1]


def rows_of_row_group(row_bytes: int) -> int:
    """Return how many rows of so many bytes a row group has."""
    return max(1, min(ROW_GROUP_ROWS_MAX, ROW_GROUP_BYTES_MAX // max(1, row_bytes)))


def densest(table: pa.Table) -> int:
    """Return the bytes in memory of a row, on average over the widest stretch of 4,096 rows."""
    starts = range(0, len(table), STRETCH_ROWS)
    parts = (table.slice(start, STRETCH_ROWS) for start in starts)
    return max((-(-part.nbytes // len(part)) for part in parts), default=1)
