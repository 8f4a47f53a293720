"""Records of a source split that a table keeps, read again in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.decoding.raw_records import RAW_RECORDS
from lakebed.feed_errors import PositionGoneError
from lakebed.ports.record_source import Records


class KeptRecords:
    """Reads records of a source split that a table keeps, version after version of the table.

    rows: gives those from one position to another, in order.
    begin: position of the first one that is wanted.
    end: says behind which position the table has none yet, to who wants the one that is given.
    resume: gives what comes with them.
    is_lost: says of positions without a row, from one to another, whether the table had some there
        that were never read. Such a gap is told (protocol R15).
    """

    def __init__(
        self,
        rows: Callable[[int, int], Iterator[pa.RecordBatch]],
        begin: int,
        end: Callable[[int], int],
        *,
        resume: Callable[[], bytes] = bytes,
        is_lost: Callable[[int, int], bool] = lambda _begin, _end: False,
    ) -> None:
        self._rows = rows
        self._next = self._end = begin
        self._newest_end = end
        self._resume = resume
        self._is_lost = is_lost
        self._asked: dict[tuple[int, int], bool] = {}
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return the next records. It does not wait: looking again is as cheap.

        Raises:
            PositionGoneError: the table has no longer what comes next; or it has fewer records than
                were taken.
            VersionExpiredError: read again from the position behind the last records.
            CorruptError, UnavailableError: as queries do.
        """
        rows = self._rest if self._rest is not None else next(self._batches, None)
        if rows is None:
            self._pass_rest()
            self._asked.clear()
            self._end = max(self._next, self._newest_end(self._next))
            if self._end == self._next:
                return None
            found = self._rows(self._next, self._end)
            self._batches = (rows for rows in found if len(rows))
            rows = next(self._batches, None)
            if rows is None:
                self._pass_rest()
                return None
        self._rest = rows  # as long as a gap before it is told
        positions = self.positions(rows)
        self._refuse_gap(int(positions[0]))
        count = min(_fitting(self.size(rows), len(rows), bytes_max), self._whole(positions))
        self._rest = rows[count:] if count < len(rows) else None
        return self._records(rows[:count])

    def behind(self) -> int:
        """Return how many positions the table has beyond the last record that was read."""
        return max(0, self._end - self._next)

    def acknowledge(self, end: int) -> None:
        """Do nothing: the table keeps its records, and loses them by its own rules, read or not
        (protocol R22)."""

    def close(self) -> None:
        """Let go of the version that is read."""
        self._batches, self._rest = iter(()), None

    def _pass_rest(self) -> None:
        """Go to the end of what the table had: what it left out itself is passed over."""
        self._refuse_gap(self._end)
        self._next = max(self._next, self._end)

    def _refuse_gap(self, end: int) -> None:
        """Raise PositionGoneError if rows are lost between the next position and another."""
        if end > self._next and self._was_lost(self._next, end):
            raise PositionGoneError(
                "the landing table has no longer the records from here on",
                first=self._next,
                end=end,
            )

    def _whole(self, positions: npt.NDArray[np.int64]) -> int:
        """Return how many rows come before the first gap among some."""
        for index in np.flatnonzero(np.diff(positions) > 1).tolist():
            if self._was_lost(int(positions[index]) + 1, int(positions[index + 1])):
                return int(index) + 1
        return len(positions)

    def _was_lost(self, begin: int, end: int) -> bool:
        key = begin, end
        if key not in self._asked:
            self._asked[key] = self._is_lost(*key)
        return self._asked[key]

    @staticmethod
    def positions(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the positions of some rows."""
        found: npt.NDArray[np.int64] = rows["position"].to_numpy()
        return found

    @staticmethod
    def size(rows: pa.RecordBatch) -> int:
        """Return how many bytes some rows have."""
        return int(rows.nbytes)

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
            resume=self._resume(),
        )


def _fitting(size: int, count: int, bytes_max: int) -> int:
    """Return how many of some rows have about so many bytes; at least one."""
    share = bytes_max / max(1, size)
    return count if share >= 1 else max(1, int(count * share))
