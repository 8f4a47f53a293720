"""An external sort: sorted runs in memory or on disk, merged when rows are asked for."""

from __future__ import annotations

import errno
import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Self

import msgspec
import pyarrow as pa

from lakebed.errors import StorageFullError
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.arrow_schema import arrow_schema
from lakebed.sorted_files.engines import engine_for
from lakebed.sorted_files.iterating import iterated
from lakebed.sorted_files.key_encoding import (
    check_keys,
    encode_row,
    search_many,
    slice_region,
)
from lakebed.sorted_files.merging import Source
from lakebed.sorted_files.row_groups import cut

RUNS_MAX = 128
"""Runs of one level that are merged to a run of the next, so that few files are open at once."""

RUN_BYTES_MAX = 12 * 1024 * 1024
"""Of a run when it is sorted. A quarter of a million rows sort and gather inside the caches, 2.5
times as fast per row as three quarters of a million: more than merging more runs costs."""

BATCH_ROWS = 16_384
BATCH_BYTES_MAX = 512 * 1024
"""Of a run's batches: a window of a merge has at least one of each run, so smaller ones cost more
steps, and larger ones of many runs do not fit the caches."""
COPIES = 3
"""Of the rows in memory while a run is sorted: as they came, joined, and in order."""


class Run(msgspec.Struct, frozen=True):
    """Sorted batches. firsts: encoded row key of each one's first row; starts: rows before each.

    size: bytes in memory. level: how often its rows were merged. path: None while it is in memory.
    """

    read: Callable[[int], pa.RecordBatch]
    firsts: tuple[bytes, ...]
    starts: tuple[int, ...]
    rows: int
    size: int
    level: int = 0
    path: Path | None = None


class ExternalSorter:
    """Sorts rows as `ports.sorted_files.RowSorter` promises. directory: for spilled runs."""

    def __init__(
        self,
        schema: Schema,
        *,
        directory: Path,
        memory_bytes: int,
        processing: ProcessingPass | None = None,
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
        self._held_bytes = 0
        self._rows = 0
        self._runs: list[Run] = []
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in any order, already of the table's schema."""
        assert batch.schema.equals(self._columns), f"not the table's columns: {batch.schema}"
        check_keys(batch, self._keys)
        if self._work is not None:
            batch = self._work.selected(batch)
        self._rows += len(batch)
        for part in cut(batch, len(batch) or 1, self._run_bytes):
            if self._held and self._held_bytes + part.nbytes > self._run_bytes:
                self._sort_held()
            self._held.append(part)
            self._held_bytes += part.nbytes
            if len(self._held) % 1024 == 0:  # many small batches cost more than their rows
                self._held = pa.Table.from_batches(self._held).combine_chunks().to_batches()

    def rows_in(self, regions: Sequence[KeyRange]) -> list[int]:
        """Return how many rows were added in each region, and not left out."""
        points = sorted({r.min for r in regions} | {r.max for r in regions if r.max is not None})
        below = dict.fromkeys(points, 0)
        total = 0
        for run in self._sorted_runs():
            total += run.rows
            for point, rows in zip(points, self._rows_below(run, points), strict=True):
                below[point] += rows
        return [max(0, (total if r.max is None else below[r.max]) - below[r.min]) for r in regions]

    def sorted_batches(self, region: KeyRange) -> Iterator[pa.RecordBatch]:
        """Yield what processing makes of the rows of a region, in key order."""
        rows = self._merged(self._sorted_runs(), region)
        if self._work is None:
            return rows
        rows = self._work.merged(rows)
        use = self._work.iterator
        return rows if use is None else iterated(self._schema, rows, use, region)

    def close(self) -> None:
        """Remove what was spilled."""
        self._held.clear()
        self._runs.clear()
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)
            self._spill = None

    def _sorted_runs(self) -> list[Run]:
        """Turn rows that are held into a run in memory, and return all runs."""
        if self._held:
            self._sort_held()
        return self._runs

    @property
    def _batch_bytes(self) -> int:
        return min(BATCH_BYTES_MAX, max(64 * 1024, self._merge_bytes // RUNS_MAX))

    def _sort_held(self) -> None:
        """Make a run of the rows that are held; spill runs when they fill the memory."""
        held, size, self._held, self._held_bytes = self._held, self._held_bytes, [], 0
        batches = list(self._cut(engine_for(self._rows).sort(held, self._keys)))
        firsts = tuple(encode_row(b, self._row_keys, 0) for b in batches)
        starts = tuple(accumulate((len(b) for b in batches), initial=0))
        read = batches.__getitem__
        self._runs.append(Run(read, firsts, starts[:-1], starts[-1], size))
        if sum(run.size for run in self._runs if run.path is None) > self._memory_bytes:
            self._spill_runs()

    def _cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cut(batch, BATCH_ROWS, self._batch_bytes)

    def _merged(self, runs: Sequence[Run], region: KeyRange) -> Iterator[pa.RecordBatch]:
        sources = []
        for run in runs:
            lowest = max(region.min, run.firsts[0])
            if region.max is None or lowest < region.max:
                sources.append(Source(lowest, partial(self._read, run, region)))
        return engine_for(self._rows).merge(sources, self._keys)

    def _read(self, run: Run, region: KeyRange) -> Iterator[pa.RecordBatch]:
        begin = max(0, bisect_left(run.firsts, region.min) - 1)
        end = len(run.firsts) if region.max is None else bisect_left(run.firsts, region.max)
        for place in range(begin, end):
            batch = run.read(place)
            if region != EVERYTHING and place in (begin, end - 1):
                batch = slice_region(batch, self._row_keys, region)
            yield batch

    def _rows_below(self, run: Run, points: Sequence[bytes]) -> list[int]:
        """Return how many rows of a run lie below each of the ascending points."""
        places = [bisect_left(run.firsts, point) - 1 for point in points]
        found: list[int] = []
        at = 0
        while at < len(points):
            place = places[at]
            end = bisect_right(places, place)
            if place < 0:
                found += [0] * (end - at)
            else:
                batch, start = run.read(place), run.starts[place]
                inside = search_many(batch, self._row_keys, points[at:end])
                found += [start + rows for rows in inside]
            at = end
        return found

    def _spill_runs(self) -> None:
        for place, run in enumerate(self._runs):
            if run.path is None:
                batches = map(run.read, range(len(run.firsts)))
                self._runs[place] = self._write(batches, level=0, size=run.size)
        level = 0
        while len(same := [r for r in self._runs if r.level == level]) >= RUNS_MAX:
            merged = self._cut(self._merged(same, EVERYTHING))
            run = self._write(merged, level=level + 1, size=sum(r.size for r in same))
            self._runs = [r for r in self._runs if r.level != level] + [run]
            for old in same:
                if old.path is not None:
                    old.path.unlink()
            level += 1

    def _write(self, batches: Iterable[pa.RecordBatch], *, level: int, size: int) -> Run:
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
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFullError(
                    "no room to spill",
                    directory=self._directory,
                    hint="free space, or choose another spill directory",
                ) from error
            raise
        # Read, not mapped: pages of a mapped file stay in the process's memory.
        reader = pa.ipc.open_file(pa.OSFile(str(path)))
        return Run(reader.get_batch, tuple(firsts), tuple(starts), rows, size, level, path)

    def _next_path(self) -> Path:
        if self._spill is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._spill = Path(tempfile.mkdtemp(prefix="lakebed-sort-", dir=self._directory))
        self._files += 1
        return self._spill / f"run-{self._files}.arrow"
