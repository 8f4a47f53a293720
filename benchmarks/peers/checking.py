"""Are all rows there, and in order? By means that the engine does not use itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow.parquet as pq

BATCH_ROWS = 250_000


class Contents(NamedTuple):
    """The same for the same rows in any order, cut into files in any way."""

    rows: int
    hashes: int


class Check:
    """Holds outputs to the rows that must be in them. A file that was seen before is not read
    again: only its digest is taken."""

    def __init__(self, wanted: Contents, keys: Sequence[str]) -> None:
        self._wanted = wanted
        self._keys = keys
        self._seen: set[tuple[bytes, ...]] = set()

    def __call__(self, files: Sequence[Path], engine: str, *, sorts: bool = True) -> None:
        """Raises: AssertionError: rows are lost, made up or, of an engine that sorts, out of
        order."""
        digests = tuple(_digest(file) for file in files)
        if digests in self._seen:
            return
        assert contents(files) == self._wanted, f"{engine} lost rows, or made some"
        for file in files if sorts else ():
            assert is_in_order(file, self._keys), f"{engine} wrote rows out of order"
        self._seen.add(digests)


def contents(files: Iterable[Path]) -> Contents:
    """Return what is in some files: a count, and the sum of 64-bit hashes of rows."""
    return contents_of(frame for file in files for frame in _frames(file, None))


def contents_of(frames: Iterable[pl.DataFrame]) -> Contents:
    """Return what is in some frames."""
    rows = hashes = 0
    for frame in frames:
        rows += len(frame)
        hashes += int(frame.hash_rows(seed=7).to_numpy().sum(dtype="uint64"))
    return Contents(rows, hashes % (1 << 64))


def is_in_order(file: Path, keys: Sequence[str]) -> bool:
    """Whether the rows of a file ascend by some key columns."""
    columns = [pl.col(key) for key in keys]
    rises = []
    for place, column in enumerate(columns):
        same = [before.shift(1) == before for before in columns[:place]]
        rises.append(pl.all_horizontal(*same, column.shift(1) < column))
    same = [column.shift(1) == column for column in columns]
    in_order = reduce(or_, rises, pl.all_horizontal(*same))
    last = None
    for frame in _frames(file, list(keys)):
        if not frame.select(in_order.slice(1).all()).item():
            return False
        if last is not None and frame.row(0) < last:
            return False
        last = frame.row(-1)
    return True


def _digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "blake2b").digest()


def _frames(file: Path, columns: list[str] | None) -> Iterator[pl.DataFrame]:
    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame), "a batch is a frame"
            yield frame
