"""Rows to measure with: made from a seed, kept in `.cache/benchmarks` until the cache is cleaned.

The shape `sleeper` is that of Sleeper's system test: a random key of ten letters, a time, a value
of ten letters and one that is null in a fifth of the rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.model.files import FilePart
from lakebed.model.names import FileName, JobId, TableId, TransactionNumber, file_name
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING
from lakebed.model.schema import schema_of
from lakebed.sorted_files.arrow_schema import arrow_schema
from lakebed.sorted_files.file_notes import FILE_FORMAT
from lakebed.sorted_files.parquet_files import ParquetFiles

CACHE = Path(__file__).parent.parent / ".cache" / "benchmarks"
FILES = 10
FILE_ROWS = 1_000_000
SLEEPER = schema_of(
    row_keys={"key": "string"},
    sort_keys={"timestamp": "int64"},
    values={"value": "string", "nullable_value": "string?"},
)
SPLIT_POINTS = ("g", "m", "s")
"""Four leaves of about as many rows each."""

TABLE = TableId("sleeper")
_LETTERS = 10
_ROW_GROUP = 100_000


def sleeper_rows(seed: int, rows: int) -> pa.Table:
    """Return rows in no order. The same seed and count give the same rows."""
    chance = np.random.default_rng([seed, rows])
    absent = pa.array(chance.random(rows) < 0.2)
    nullable = pc.if_else(absent, pa.scalar(None, pa.string()), _words(chance, rows))
    times = pa.array(chance.integers(0, 10**10, rows))
    columns = [_words(chance, rows), times, _words(chance, rows), nullable]
    return pa.Table.from_arrays(columns, schema=arrow_schema(SLEEPER))


def unsorted_files(rows: int) -> Path:
    """Return a folder of Parquet files as a user would bring them, `rows` each."""
    folder = CACHE / f"sleeper-{FILES}x{rows}-unsorted"
    if not folder.exists():
        fresh = _fresh(folder)
        for seed in range(FILES):
            pq.write_table(
                sleeper_rows(seed, rows),
                fresh / f"{seed:03}.parquet",
                compression="zstd",
                compression_level=1,
                use_dictionary=False,
                row_group_size=_ROW_GROUP,
            )
        fresh.rename(folder)
    return folder


def sorted_files(rows: int) -> tuple[Path, list[FilePart]]:
    """Return the root of an object store with sorted files, `rows` each, and what is in it."""
    folder = CACHE / f"sleeper-{FILES}x{rows}-sorted-{FILE_FORMAT}"
    if not folder.exists():
        fresh = _fresh(folder)
        parts = list(_sorted(fresh, rows))
        (fresh / "parts").write_bytes(msgspec.msgpack.encode(parts))
        fresh.rename(folder)
    return folder, parts_in(folder)


def parts_in(root: Path) -> list[FilePart]:
    """Return the files of a store that `sorted_files` made."""
    return msgspec.msgpack.decode((root / "parts").read_bytes(), type=list[FilePart])


def bench_file(sequence: int) -> FileName:
    """Return the name of one of the benchmarks' files."""
    return file_name(base=TransactionNumber(1), job=JobId("bench"), run=0, sequence=sequence)


def _sorted(root: Path, rows: int) -> Iterator[FilePart]:
    files = ParquetFiles(LocalObjectStore(root, SystemClock()), spill_directory=root / "spill")
    keys = [(field.name, "ascending") for field in SLEEPER.key_fields]
    for seed in range(FILES):
        name = bench_file(seed)
        path = file_path(TABLE, name)
        batches = sleeper_rows(seed, rows).sort_by(keys).to_batches()
        written = files.write(SLEEPER, batches, name=name, path=path, regions=[EVERYTHING])
        assert written is not None, "there are rows"
        yield FilePart(written.file, path, EVERYTHING, rows)


def _words(chance: np.random.Generator, rows: int) -> pa.Array:
    letters = chance.integers(ord("a"), ord("z") + 1, rows * _LETTERS, dtype=np.uint8)
    starts = np.arange(0, rows * _LETTERS + 1, _LETTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(starts), pa.py_buffer(letters))


def _fresh(folder: Path) -> Path:
    """Return an empty folder to fill: what was interrupted is never taken for whole."""
    fresh = folder.with_name(folder.name + ".making")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    return fresh
