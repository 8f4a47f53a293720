"""Row groups that several threads decode, a batch at a time, ahead of who takes them.

No thread waits for who takes the batches: where enough is decoded, a thread ends its turn, and the
next batch that is taken begins another. So a stream that is left half read holds up nothing, not
even the end of the process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from lakebed.observe.usage import carried
from lakebed.sorted_files.reading.own_memory import own_memory
from lakebed.sorted_files.reading.scanning.row_group_scan import RowGroupScan

ROWS_FIRST = 4_096
"""Rows of the first batch, and of what is decoded ahead at first; twice as many with each batch."""
ROWS_MAX = 1 << 17
"""Most rows of a batch: a row group has no more."""
_AHEAD_MAX = 1 << 40


class _Turn:
    """The work that one thread goes on with.

    batches: of the row group that it decodes; None: it needs one.
    rows, bytes: of the batch that it is about to decode, at most about.
    """

    def __init__(self) -> None:
        self.batches: Iterator[pa.RecordBatch] | None = None
        self.rows = ROWS_FIRST
        self.row_bytes = 0

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes


class BesideEachOther:
    """Gives the batches of a scan as they are ready. For one reader.

    threads: how many decode. bytes_max: of batches that are decoded and not yet taken, about.
    """

    def __init__(self, scan: RowGroupScan, *, threads: int, bytes_max: int) -> None:
        self._scan = scan
        self._bytes_max = bytes_max
        self._rows_ahead = ROWS_FIRST
        self._pool = ThreadPoolExecutor(threads, "lakebed-scan")
        self._idle = deque(_Turn() for _ in range(threads))
        self._running = 0
        self._next_row_group = threading.Lock()
        self._changed = threading.Condition()
        self._ready: deque[pa.RecordBatch] = deque()
        self._rows = self._bytes = 0  # ready, or being decoded
        self._problem: BaseException | None = None
        self._closed = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until there are no more.

        Raises:
            As `RowGroupScan`: the first error that a thread met.
        """
        while (batch := self._take()) is not None:
            yield own_memory(batch)

    def close(self) -> None:
        """Decode nothing more, and wait until no thread does."""
        with self._changed:
            self._closed = True
            self._ready.clear()
        self._scan.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _take(self) -> pa.RecordBatch | None:
        with self._changed:
            self._begin_turns()
            while not self._ready:
                if self._problem is not None:
                    raise self._problem
                if not self._running:
                    return None
                self._changed.wait()
                self._begin_turns()
            batch = self._ready.popleft()
            self._rows -= batch.num_rows
            self._bytes -= batch.nbytes
            self._want_more()
            self._begin_turns()
            return batch

    def _want_more(self) -> None:
        self._rows_ahead = min(2 * self._rows_ahead, _AHEAD_MAX)

    def _has_room(self) -> bool:
        """Return whether another batch may be decoded."""
        return (
            not self._closed
            and self._problem is None
            and self._rows < self._rows_ahead
            and self._bytes < self._bytes_max
        )

    def _begin_turns(self) -> None:
        while self._idle and self._has_room():
            turn = self._idle.popleft()
            self._count(turn, 1)
            self._running += 1
            going_on = self._pool.submit(carried(self._go_on), turn)
            going_on.add_done_callback(partial(self._ended, turn))

    def _count(self, turn: _Turn, sign: int) -> None:
        """Count the batch that a turn is about to decode as if it were ready, or no more."""
        self._rows += sign * turn.rows
        self._bytes += sign * turn.bytes

    def _go_on(self, turn: _Turn) -> bool:
        """Decode batch after batch, as long as there is room. Return whether more may be left."""
        goes_on = has_more = turn.batches is not None or self._find_row_group(turn)
        while goes_on:
            goes_on, has_more = self._decode(turn)
        return has_more

    def _ended(self, turn: _Turn, done: Future[bool]) -> None:
        """Note how a turn ended. What it met is raised where batches are taken."""
        with self._changed:
            self._running -= 1
            problem = None if done.cancelled() else done.exception()
            if problem is not None:
                self._problem = self._problem or problem
            elif not done.cancelled() and done.result():
                self._idle.append(turn)
            else:
                self._count(turn, -1)
            self._changed.notify()

    def _decode(self, turn: _Turn) -> tuple[bool, bool]:
        """Decode a batch. Return whether there is room for another, and whether one may be left."""
        assert turn.batches is not None, "a row group was found"
        batch = next(turn.batches, None)
        if batch is None:
            turn.batches = None
            found = self._find_row_group(turn)
            return found, found
        with self._changed:
            self._count(turn, -1)
            if batch.num_rows:
                self._ready.append(batch)
                self._rows += batch.num_rows
                self._bytes += batch.nbytes
                self._changed.notify()
            if batch.num_rows < turn.rows // 2:
                self._want_more()  # its reader waits, as few rows are wanted
            if not self._has_room():
                return False, True
            self._count(turn, 1)
            return True, True

    def _find_row_group(self, turn: _Turn) -> bool:
        """Let a turn go on with the next row group; False: there is none."""
        with self._next_row_group:
            found = None if self._closed else self._scan.next()
        if found is None:
            return False
        with self._changed:
            self._count(turn, -1)
            turn.rows = min(ROWS_MAX, self._rows_ahead)
            turn.row_bytes = found.read.row_bytes
            self._count(turn, 1)
        turn.batches = self._scan.batches(found, rows_max=turn.rows)
        return True
