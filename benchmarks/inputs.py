"""Files of made-up rows, kept in `.cache/benchmarks` until the cache is cleaned.

Several processes may make the same at once: each makes its own, the first to finish is kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.shapes import SLEEPER, Shape
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.model.files import FilePart
from lakebed.model.names import FileName, JobId, TableId, TransactionNumber, file_name
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING
from lakebed.sorted_files.format.file_notes import FILE_FORMAT
from lakebed.sorted_files.parquet_files import ParquetFiles

CACHE = Path(__file__).parent.parent / ".cache" / "benchmarks"
TABLE = TableId("bench")
_ROW_GROUP = 100_000


def unsorted_files(shape: Shape, files: int, rows: int) -> Path:
    """Return a folder of Parquet files as a user would bring them, `rows` each."""

    def fill(folder: Path) -> None:
        for seed in range(files):
            pq.write_table(
                shape.rows(seed, rows),
                folder / f"{seed:03}.parquet",
                compression="zstd",
                compression_level=1,
                use_dictionary=list(shape.dictionaries),
                row_group_size=_ROW_GROUP,
            )

    return kept(f"{shape.name}-{files}x{rows}-unsorted", fill)


def sorted_files(shape: Shape, files: int, rows: int) -> Path:
    """Return the root of an object store with sorted files, `rows` each, all over the keys, as one
    job writes them that ingests all."""

    def fill(root: Path) -> None:
        tables = (shape.rows(seed, rows) for seed in range(files))
        _write(root, shape, tables, job_rows=files * rows)

    return kept(f"{shape.name}-{files}x{rows}-stored-{FILE_FORMAT}", fill)


def files_apart(files: int, rows: int) -> Path:
    """Return the root of an object store with files of the shape `sleeper`, no two of which share
    a range of keys: their keys begin with the alphabet's first letters."""

    def fill(root: Path) -> None:
        tables = (_beginning(seed, rows) for seed in range(files))
        _write(root, SLEEPER, tables, job_rows=files * rows)

    return kept(f"sleeper-{files}x{rows}-stored-apart-{FILE_FORMAT}", fill)


def parts_in(root: Path) -> list[FilePart]:
    """Return the sorted files of a store."""
    return msgspec.msgpack.decode((root / "parts").read_bytes(), type=list[FilePart])


def files_in(root: Path) -> list[Path]:
    """Return the places of the sorted files of a store."""
    return [root / "objects" / part.path for part in parts_in(root)]


def bench_file(sequence: int) -> FileName:
    """Return the name of one of the benchmarks' files."""
    return file_name(base=TransactionNumber(1), job=JobId("bench"), run=0, sequence=sequence)


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A store with the same files, without a copy, in which outputs are thrown away."""
    with TemporaryDirectory(prefix="scratch-", dir=CACHE) as made:
        for file in root.rglob("*"):
            if file.is_file():
                place = Path(made) / file.relative_to(root)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.link(file, place)
        yield Path(made)


def _write(root: Path, shape: Shape, tables: Iterator[pa.Table], *, job_rows: int) -> None:
    files = ParquetFiles(LocalObjectStore(root, SystemClock()), spill_directory=root / "spill")
    order = [(key, "ascending") for key in shape.keys]
    parts = []
    for sequence, rows in enumerate(tables):
        name = bench_file(sequence)
        path = file_path(TABLE, name)
        batches = rows.sort_by(order).to_batches()
        written = files.write(
            shape.schema,
            batches,
            name=name,
            path=path,
            key_ranges=[EVERYTHING],
            job_rows=job_rows,
        )
        assert written is not None, "there are rows"
        parts.append(FilePart(written.file, path, EVERYTHING, len(rows)))
    (root / "parts").write_bytes(msgspec.msgpack.encode(parts))


def _beginning(seed: int, rows: int) -> pa.Table:
    """Return rows whose keys have one first letter."""
    made = SLEEPER.rows(seed, rows)
    rest = pc.utf8_slice_codeunits(made.column("key"), 1)
    keys = pc.binary_join_element_wise(chr(ord("a") + seed), rest, "")
    return made.set_column(0, made.schema.field(0), keys)


def kept(name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache. What was interrupted is never taken for whole."""
    folder = CACHE / name
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = Path(mkdtemp(prefix=f"{name}-making-", dir=CACHE))
        fill(fresh)
        try:
            fresh.rename(folder)
        except OSError:  # another process was faster; a folder that is full is not replaced
            assert folder.exists()
            shutil.rmtree(fresh)
    return folder
