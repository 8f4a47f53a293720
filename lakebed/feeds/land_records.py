"""Records as they came become rows of a landing table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.feeds.made_rows import KnownBefore, MadeRows
from lakebed.landing.landing_table import LANDING_SCHEMA, landed_rows
from lakebed.model.feeds.windows import WindowRules
from lakebed.model.schema import Schema
from lakebed.ports.record_source import Records

Mask = npt.NDArray[np.bool_]


class LandRecords:
    """Makes rows of a landing table: each record becomes one."""

    @property
    def schema(self) -> Schema:
        """That of landing tables."""
        return LANDING_SCHEMA

    @property
    def windows(self) -> WindowRules | None:
        """None: it is the arrival of a record that counts."""
        return None

    def concat(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the records of several batches as one."""
        return pa.concat_batches(batches)

    def first(self, batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, int, int]:
        """Return the first records of a batch of more, the position behind them, and their size."""
        return first_records(batch, count)

    def row(self, rows: pa.RecordBatch, index: int) -> pa.RecordBatch:
        """Return one of some rows."""
        return rows.slice(index, 1)

    def __call__(
        self,
        split: str,
        records: Records[pa.RecordBatch],
        known: KnownBefore[pa.RecordBatch],
    ) -> MadeRows[pa.RecordBatch]:
        """Return a row for each record."""
        batch, there = records.batch, records_in_table(records.count, known)
        if there.any():
            batch = batch.filter(pa.array(~there))
        rows = landed_rows(split, batch)
        return MadeRows(
            rows=rows if rows.num_rows else None,
            rows_count=rows.num_rows,
            read=records.count,
            size=records.size,
            deduplicated=int(there.sum()),
        )


def first_records(batch: pa.RecordBatch, count: int) -> tuple[pa.RecordBatch, int, int]:
    """Return the first records of a batch of more, the position of the next one, and their size in
    bytes."""
    some = batch[:count]
    return some, int(batch["position"].to_numpy()[count]), some.nbytes


def records_in_table(count: int, known: KnownBefore[pa.RecordBatch]) -> Mask:
    """Return which records are in the table already."""
    there = np.zeros(count, np.bool_)
    for first, end in known.in_table:
        there[first:end] = True
    return there
