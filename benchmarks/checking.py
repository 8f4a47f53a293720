"""Are all rows there, and in order? By means that the engine does not use itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow.parquet as pq

BATCH_ROWS = 250_000


class Contents(NamedTuple):
    """The same for the same rows in any order, cut into files in any way."""

    rows: int
    hashes: int


def contents(files: Iterable[Path]) -> Contents:
    """Return what is in some files: a count, and the sum of 64-bit hashes of rows."""
    rows = hashes = 0
    for file in files:
        for frame in _frames(file, None):
            rows += len(frame)
            hashes += int(frame.hash_rows(seed=7).to_numpy().sum(dtype="uint64"))
    return Contents(rows, hashes % (1 << 64))


def is_in_order(file: Path, keys: tuple[str, str]) -> bool:
    """Whether the rows of a file ascend by two key columns."""
    first, second = (pl.col(key) for key in keys)
    before_first, before_second = first.shift(1), second.shift(1)
    rises = (before_first < first) | ((before_first == first) & (before_second <= second))
    last = None
    for frame in _frames(file, list(keys)):
        if not frame.select(rises.slice(1).all()).item():
            return False
        if last is not None and frame.row(0) < last:
            return False
        last = frame.row(-1)
    return True


def _frames(file: Path, columns: list[str] | None) -> Iterator[pl.DataFrame]:
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame), "a batch is a frame"
            yield frame
