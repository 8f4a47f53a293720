"""Tables to look keys up in: made once in a directory, then read through a slow server of S3."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

import lakebed
from benchmarks.inputs import kept
from benchmarks.servers.served_objects import BUCKET, ServedObjects
from benchmarks.servers.slow_s3 import SlowS3, serving
from benchmarks.shapes import Shape
from lakebed.table import Table

KEYS = 1_100
"""Of rows that exist: a thousand to look up, the rest to warm up and to explain."""

FILES = 50
BATCH_ROWS = 100_000
_WRITERS = (
    "format/file_notes",
    "format/row_groups",
    "writing/file_writing",
    "writing/page_checksums",
    "writing/writer_options",
)


class Served(NamedTuple):
    """A table behind a server. folder: of the lake; paths: of its objects, in the bucket."""

    folder: Path
    server: SlowS3
    table: Table
    keys: list[str]
    paths: list[str]
    bytes: int


def objects_of(folder: Path) -> Path:
    """Return where a lake's objects lie: a prefix of the bucket."""
    return folder / BUCKET / "lake"


def made(shape: Shape, rows: int, *, files: int = FILES) -> Path:
    """Return a folder with a lake whose table has so many rows and files; 1: in one leaf."""

    def fill(folder: Path) -> None:
        objects_of(folder).mkdir(parents=True)
        objects = ServedObjects(objects_of(folder), None)
        rng = random.Random(rows)
        keys: list[str] = []
        points = shape.split_points if files > 1 else ()
        with lakebed.connect(folder / "directory", objects=objects) as lake:
            table = lake.create_table(
                "bench", shape.schema, split_points=points, settings={"shared_file_rows_max": 0}
            )
            leaves = len(points) + 1
            share = rows * leaves // files
            for seed in range(-(-files // leaves)):
                reached = min(leaves, files - seed * leaves)
                below = points[reached - 1] if reached < leaves else None
                table.ingest(_reader(shape, seed, share, below, keys=keys, rng=rng))
            (status,) = lake.status("bench")
            assert status.files == files, f"{status.files} files instead of {files}"
        rng.shuffle(keys)
        (folder / "keys").write_bytes(msgspec.msgpack.encode(keys[:KEYS]))

    return kept(f"{shape.name}-table-{files}x{rows}-{_writers_digest()}", fill)


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Open a table that was made, through a server."""
    root = objects_of(folder)
    files = sorted(root.rglob("*.parquet"))
    keys = msgspec.msgpack.decode((folder / "keys").read_bytes(), type=list[str])
    with serving(folder) as server:
        objects = ServedObjects(root, server)
        with lakebed.connect(folder / "directory", objects=objects) as lake:
            paths = [file.relative_to(folder / BUCKET).as_posix() for file in files]
            size = sum(file.stat().st_size for file in files)
            yield Served(folder, server, lake.table("bench"), keys, paths, size)


def _reader(
    shape: Shape, seed: int, rows: int, below: object, *, keys: list[str], rng: random.Random
) -> pa.RecordBatchReader:
    """Return made-up rows, and remember keys of some. below: keys are less; None: any."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number, start in enumerate(range(0, rows, BATCH_ROWS)):
            some = shape.rows(1000 * seed + number, min(BATCH_ROWS, rows - start))
            if below is not None:
                some = some.filter(pc.less(some.column(0), below))
            places = [rng.randrange(len(some)) for _ in range(KEYS // 8)] if len(some) else []
            keys.extend(some.column(0).take(pa.array(places, pa.int64())).to_pylist())
            yield from some.combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(shape.rows(0, 1).schema, batches())


def _writers_digest() -> str:
    """Return what changes when the files' layout may: tables are made anew then."""
    folder = Path(lakebed.__file__).parent / "sorted_files"
    sources = [(folder / f"{name}.py").read_bytes() for name in _WRITERS]
    return sha256(b"".join(sources)).hexdigest()[:8]
