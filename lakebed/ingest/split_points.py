"""Split points for a new table, from rows like those that it will hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.ingest.sources import source_of
from lakebed.model.keys import KeyValue
from lakebed.model.partitions import SPLIT_POINTS_MAX
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.key_encoding import value_at


def split_points_from(rows: object, schema: Schema, *, leaves: int) -> list[KeyValue]:
    """Return values of the first row key that give each of `leaves` leaves about as many rows. No
    leaf gets less than half of the mean share; fewer points where too few values are different, or
    one of them has most of the rows.

    rows: a sample: what `Table.ingest` takes; only its column of the first row key is used and held
        in memory.

    Raises:
        InvalidError: no rows, no column of that name or type, a number of leaves that cannot be.
    """
    if not 1 <= leaves <= SPLIT_POINTS_MAX + 1:
        hint = f"give 1 to {SPLIT_POINTS_MAX + 1}"
        raise InvalidError("not a number of leaves", leaves=leaves, hint=hint)
    first = schema.row_keys[0]
    key_only = Schema(row_keys=(first,))
    batches = source_of(rows, key_only, extra_columns="drop").batches()
    chunks = [batch.column(first.name) for batch in batches]
    if not sum(map(len, chunks)):
        raise InvalidError("no rows to find split points in", hint="give a sample with rows")
    column = pa.concat_arrays(chunks)
    runs = pc.run_end_encode(column.take(pc.array_sort_indices(column)), run_end_type=pa.int64())
    ends = runs.run_ends.to_numpy()
    indices = _cuts(np.concatenate([[0], ends[:-1]]), int(ends[-1]), leaves)
    return [value_at(runs.values, index) for index in indices]


def _cuts(starts: npt.NDArray[np.int64], rows: int, leaves: int) -> list[int]:
    """Return indices of the values at which leaves begin. starts: rows before each value."""
    least = rows / leaves / 2
    cuts: list[int] = []
    before = 0
    for leaf in range(1, leaves):
        wanted = leaf * rows / leaves
        above = int(np.searchsorted(starts, wanted))
        near = [index for index in (above - 1, above) if 0 < index < len(starts)]
        fit = [p for p in near if starts[p] - before >= least and rows - starts[p] >= least]
        if fit:
            cuts.append(min(fit, key=lambda index: abs(starts[index] - wanted)))
            before = int(starts[cuts[-1]])
    return cuts
