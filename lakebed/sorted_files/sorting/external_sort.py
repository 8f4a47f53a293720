"""An external sort: sorted runs in memory or on disk, merged when rows are asked for."""

from __future__ import annotations

import errno
import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import msgspec
import pyarrow as pa

from lakebed.errors import StorageFullError
from lakebed.model.disk_errors import meaning_of
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import (
    check_keys,
    encode_row,
    search_many,
    slice_key_range,
)
from lakebed.sorted_files.format.row_groups import cut
from lakebed.sorted_files.sorting.engines import Engine, engine_for
from lakebed.sorted_files.sorting.held_rows import HeldRows
from lakebed.sorted_files.sorting.iterating import iterated
from lakebed.sorted_files.sorting.window_merge import Source

RUNS_MAX = 128
LARGE_RUNS_MAX = 16
"""Runs of one level that are merged to a run of the next, so that few files are open at once."""

RUN_BYTES_MAX = 12 * 1024 * 1024
"""Most bytes of a run that the plain engine sorts: a quarter of a million rows sort and gather
inside the caches, 2.5 times as fast per row as three quarters of a million: more than merging more
runs costs."""

BATCH_BYTES_MAX = 512 * 1024
LARGE_BATCH_BYTES_MAX = 4 * 1024 * 1024
"""Most bytes of a run's batches: a window of a merge has at least one of each run, so smaller ones
cost more steps, and larger ones of many runs do not fit the memory."""
COPIES = 3
"""Copies of a run's rows in memory while it is sorted: as they came, joined, and in order."""
RUN_BATCHES_MAX = 65_000
"""Most batches that are sorted together: kernels number them with 16 bits."""
ORDER_BYTES = 32
"""Bytes of memory for each row while it is sorted, besides what is in it."""
SMALL_BATCHES_MAX = 1024
"""Most batches of few bytes that wait to become one: many cost more than their rows."""


class SortedRun(msgspec.Struct, frozen=True):
    """Sorted batches.

    firsts: encoded row key of each one's first row.
    starts: rows before each.
    size: bytes in memory.
    level: how often its rows were merged.
    path: None while it is in memory.
    """

    read: Callable[[int], pa.RecordBatch]
    firsts: tuple[bytes, ...]
    starts: tuple[int, ...]
    rows: int
    size: int
    level: int = 0
    path: Path | None = None


class ExternalSorter:
    """Sorts rows as `ports.sorted_files.RowSorter` promises. directory: for spilled runs. job_rows:
    of the whole job, about, where it has several sorters."""

    def __init__(
        self,
        schema: Schema,
        *,
        directory: Path,
        memory_bytes: int,
        processing: ProcessingPass | None = None,
        job_rows: int = 0,
    ) -> None:
        self._schema = schema
        self._work = None if processing is None else RowWork(schema, processing)
        self._columns = arrow_schema(schema)
        self._row_keys = schema.row_keys
        self._keys = schema.key_fields
        self._run_bytes = max(1, min(RUN_BYTES_MAX, memory_bytes // (2 * COPIES)))
        self._memory_bytes = memory_bytes - COPIES * self._run_bytes
        self._merge_bytes = memory_bytes // COPIES
        self._directory = directory
        self._spill: Path | None = None
        self._held: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._held_rows: HeldRows | None = None
        self._held_bytes = 0
        self._rows = 0
        self._job_rows = job_rows
        self._bytes = 0
        self._made_runs: list[SortedRun] = []
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, batch: pa.RecordBatch) -> int:
        """Take rows in any order, already of the table's schema. Returns how many are kept."""
        if not batch.schema.equals(self._columns):
            raise AssertionError(f"not the table's columns: {batch.schema}")
        check_keys(batch, self._keys)
        if self._work is not None:
            batch = self._work.selected(batch)
        self._rows += len(batch)
        for part in cut(batch, len(batch) or 1, self._run_bytes):
            size = part.nbytes + ORDER_BYTES * len(part)
            if self._held_bytes and self._held_bytes + size > self._room:
                self._sort_held(spill=True)
                if self._held_rows is not None:
                    self._held_rows.clear()
            self._held_bytes += size
            self._bytes += part.nbytes
            if size * SMALL_BATCHES_MAX > self._run_bytes:
                self._hold(part)
                continue
            self._small.append(part)
            if len(self._small) == SMALL_BATCHES_MAX:
                self._join_small()
        return len(batch)

    def _join_small(self) -> None:
        if self._small:
            joined = pa.Table.from_batches(self._small).combine_chunks()
            self._small.clear()
            for part in joined.to_batches():
                self._hold(part)

    def _hold(self, part: pa.RecordBatch) -> None:
        if self._held_rows is None:
            self._held_rows = HeldRows(self._columns, self._memory_bytes)
        self._held.append(self._held_rows.held(part))

    def rows_in(self, key_ranges: Sequence[KeyRange]) -> list[int]:
        """Return how many rows were added in each key range, and not left out."""
        points = sorted(
            {r.min for r in key_ranges} | {r.max for r in key_ranges if r.max is not None}
        )
        below = dict.fromkeys(points, 0)
        total = 0
        for sorted_run in self._sorted_runs():
            total += sorted_run.rows
            for point, rows in zip(points, self._rows_below(sorted_run, points), strict=True):
                below[point] += rows
        return [
            max(0, (total if r.max is None else below[r.max]) - below[r.min]) for r in key_ranges
        ]

    def sorted_batches(self, key_range: KeyRange) -> Iterator[pa.RecordBatch]:
        """Yield what processing makes of the rows of a key range, in key order."""
        rows = self._merged(self._sorted_runs(), key_range)
        self._held_rows = None  # not written over while these rows are used
        if self._work is None:
            return rows
        rows = self._work.merged(rows)
        use = self._work.iterator
        return rows if use is None else iterated(self._schema, rows, use, key_range)

    def close(self) -> None:
        """Remove what was spilled."""
        self._held.clear()
        self._small.clear()
        self._made_runs.clear()
        self._held_rows = None
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)
            self._spill = None

    def _sorted_runs(self) -> list[SortedRun]:
        """Turn rows that are held into runs, in memory where these fit, and return all runs."""
        if self._held_bytes:
            copies = not self._engine.sorts_at_once(self._columns)
            self._sort_held(spill=copies and 2 * self._held_bytes > self._room)
            if copies:
                self._held_rows = None
        return self._made_runs

    @property
    def _engine(self) -> Engine:
        return engine_for(max(self._rows, self._job_rows), self._bytes)

    @property
    def _runs_max(self) -> int:
        return LARGE_RUNS_MAX if self._engine.sorts_at_once(self._columns) else RUNS_MAX

    @property
    def _batch_bytes(self) -> int:
        most = self._merge_bytes // self._runs_max
        at_once = self._engine.sorts_at_once(self._columns)
        return min(LARGE_BATCH_BYTES_MAX if at_once else BATCH_BYTES_MAX, max(64 * 1024, most))

    @property
    def _room(self) -> int:
        """Return how many bytes may be held besides the runs in memory."""
        return self._memory_bytes - sum(
            sorted_run.size for sorted_run in self._made_runs if sorted_run.path is None
        )

    def _sort_held(self, *, spill: bool) -> None:
        """Make runs of the rows that are held. spill: each at once, for what it was copied from is
        held until all are sorted."""
        self._join_small()
        held, self._held, self._held_bytes = self._held[::-1], [], 0
        at_once = self._engine.sorts_at_once(self._columns)
        while held:
            rows = [held.pop()]
            size = rows[0].nbytes
            while (
                held
                and len(rows) < RUN_BATCHES_MAX
                and (at_once or size + held[-1].nbytes <= self._run_bytes)
            ):
                size += held[-1].nbytes
                rows.append(held.pop())
            count = sum(map(len, rows))
            found = self._engine.sort(rows, self._keys, self._batch_bytes)
            starts = tuple(found.starts[:-1])
            firsts = tuple(
                encode_row(found.first(index), self._row_keys, 0) for index in range(len(starts))
            )
            size += ORDER_BYTES * count
            self._made_runs.append(SortedRun(found.batch, firsts, starts, count, size))
            if spill:
                self._spill_runs()

    def _cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cut(batch, len(batch) or 1, self._batch_bytes)

    def _merged(
        self, sorted_runs: Sequence[SortedRun], key_range: KeyRange
    ) -> Iterator[pa.RecordBatch]:
        sources = []
        for sorted_run in sorted_runs:
            lowest = max(key_range.min, sorted_run.firsts[0])
            if key_range.max is None or lowest < key_range.max:
                sources.append(Source(lowest, partial(self._read, sorted_run, key_range)))
        return self._engine.merge(sources, self._keys)

    def _read(self, sorted_run: SortedRun, key_range: KeyRange) -> Iterator[pa.RecordBatch]:
        begin = max(0, bisect_left(sorted_run.firsts, key_range.min) - 1)
        end = (
            len(sorted_run.firsts)
            if key_range.max is None
            else bisect_left(sorted_run.firsts, key_range.max)
        )
        for index in range(begin, end):
            batch = sorted_run.read(index)
            if key_range != EVERYTHING and index in (begin, end - 1):
                batch = slice_key_range(batch, self._row_keys, key_range)
            yield batch

    def _rows_below(self, sorted_run: SortedRun, points: Sequence[bytes]) -> list[int]:
        """Return how many rows of a run lie below each of the ascending points."""
        indices = [bisect_left(sorted_run.firsts, point) - 1 for point in points]
        found: list[int] = []
        at = 0
        while at < len(points):
            index = indices[at]
            end = bisect_right(indices, index)
            if index < 0:
                found += [0] * (end - at)
            else:
                batch, start = sorted_run.read(index), sorted_run.starts[index]
                inside = search_many(batch, self._row_keys, points[at:end])
                found += [start + rows for rows in inside]
            at = end
        return found

    def _spill_runs(self) -> None:
        for index, sorted_run in enumerate(self._made_runs):
            if sorted_run.path is None:
                batches = map(sorted_run.read, range(len(sorted_run.firsts)))
                self._made_runs[index] = self._write(batches, level=0, size=sorted_run.size)
        level = 0
        while len(same := [r for r in self._made_runs if r.level == level]) >= self._runs_max:
            merged = self._cut(self._merged(same, EVERYTHING))
            sorted_run = self._write(merged, level=level + 1, size=sum(r.size for r in same))
            self._made_runs = [r for r in self._made_runs if r.level != level] + [sorted_run]
            for old in same:
                if old.path is not None:
                    old.path.unlink()
            level += 1

    def _write(self, batches: Iterable[pa.RecordBatch], *, level: int, size: int) -> SortedRun:
        firsts: list[bytes] = []
        starts: list[int] = []
        rows = 0
        try:
            path = self._next_path()
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, self._columns) as writer:
                for batch in batches:
                    firsts.append(encode_row(batch, self._row_keys, 0))
                    starts.append(rows)
                    rows += len(batch)
                    writer.write_batch(batch)
            # Read, not mapped: pages of a mapped file stay in the process's memory.
            reader = pa.ipc.open_file(pa.OSFile(str(path)))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFullError(
                    "no room to spill",
                    directory=self._directory,
                    hint="free space, or choose another spill directory",
                ) from error
            raise meaning_of(error, "spilling rows") from error
        return SortedRun(reader.get_batch, tuple(firsts), tuple(starts), rows, size, level, path)

    def _next_path(self) -> Path:
        if self._spill is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._spill = Path(tempfile.mkdtemp(prefix="lakebed-sort-", dir=self._directory))
        self._files += 1
        return self._spill / f"run-{self._files}.arrow"
