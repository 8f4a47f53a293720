"""A landing table as a source: what one feed landed is read again, in order, by any number of
connections. None of them can hold up what lands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from lakebed.decoding.raw_records import RAW_RECORDS
from lakebed.model.names import ConnectionId
from lakebed.model.ranges import Range
from lakebed.ports.record_source import Records, SourceSplit
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import positions_of


class LandingSource:
    """The records of a landing table, by the source splits and positions of what landed them.

    landed_by: the connection that fills the table.
    """

    def __init__(
        self, table: OpenTable, landed_by: ConnectionId, query: RunQuery[pa.RecordBatch]
    ) -> None:
        self._table = table
        self._landed_by = landed_by
        self._query = query

    def splits(self) -> list[SourceSplit]:
        """Return the source splits of which something was landed."""
        return [SourceSplit(name, f"{self._table.name}: {name}") for name in self._landed()]

    def start(self, split: SourceSplit) -> int:
        """Begin with the first record that is there."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> KeptRecords:
        """Return a reader of a source split."""
        return KeptRecords(
            partial(self._rows, split.name), begin, lambda: self._landed().get(split.name, 0)
        )

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self, split: str, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        ranges = {
            "source_split": Range(split, split, max_inclusive=True),
            "position": Range(begin, end),
        }
        return self._query.run(self._table, condition_of(self._table.schema, ranges=ranges))

    def _landed(self) -> dict[str, int]:
        """Return how far each source split was landed."""
        self._table.head.follow()
        with self._table.head.reading() as state:
            return {
                name: position.next
                for name, position, _ in positions_of(state, self._landed_by)
                if isinstance(position.next, int)
            }


class KeptRecords:
    """Reads records of a source split that a table keeps, version after version of the table.

    rows: gives those from one position to another, in order.
    begin: position of the first one that is wanted.
    end: says behind which position the table has none yet.
    resume: what comes with all of them.
    """

    def __init__(
        self,
        rows: Callable[[int, int], Iterator[pa.RecordBatch]],
        begin: int,
        end: Callable[[], int],
        *,
        resume: bytes = b"",
    ) -> None:
        self._rows = rows
        self._next = self._end = begin
        self._newest_end = end
        self._resume = resume
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the next records. It does not wait: looking again is as cheap.

        Raises:
            VersionExpiredError: read again from the position behind the last records.
            CorruptError, UnavailableError: as queries do.
        """
        rows = self._rest if self._rest is not None else next(self._batches, None)
        if rows is None:
            self._next = max(self._next, self._end)  # what is left out was left out by the table
            self._end = max(self._next, self._newest_end())
            if self._end == self._next:
                return None
            found = self._rows(self._next, self._end)
            self._batches = (rows for rows in found if rows.num_rows)
            rows = next(self._batches, None)
            if rows is None:
                return None
        count = _fitting(rows, bytes_max)
        self._rest = rows[count:] if count < rows.num_rows else None
        return self._records(rows[:count])

    def behind(self) -> int:
        """Return how many positions the table has beyond the last record that was read."""
        return max(0, self._end - self._next)

    def acknowledge(self, end: int) -> None:
        """Do nothing: the table keeps its records."""

    def close(self) -> None:
        """Let go of the version that is read."""
        self._batches, self._rest = iter(()), None

    def _records(self, rows: pa.RecordBatch) -> Records[pa.RecordBatch]:
        columns = [rows[field.name].cast(field.type) for field in RAW_RECORDS]
        batch = pa.RecordBatch.from_arrays(columns, schema=RAW_RECORDS)
        begin, self._next = self._next, int(batch["position"][-1].as_py()) + 1  # bounded: one
        return Records(
            begin=begin,
            end=self._next,
            count=batch.num_rows,
            size=batch.nbytes,
            batch=batch,
            resume=self._resume,
        )


def _fitting(rows: pa.RecordBatch, bytes_max: int) -> int:
    """Return how many of some rows have about so many bytes; at least one."""
    share = bytes_max / max(1, rows.nbytes)
    return rows.num_rows if share >= 1 else max(1, int(rows.num_rows * share))
