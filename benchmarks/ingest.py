"""Ingest: a folder of unsorted Parquet files goes into a new table with four leaves."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from benchmarks import ingest_ours
from benchmarks.checking import contents, is_in_order
from benchmarks.figures import Figure, medians, table
from benchmarks.processes import measured
from benchmarks.shapes import CACHE, FILE_ROWS, FILES, SLEEPER, SPLIT_POINTS, unsorted_files

ROUNDS = 5


def run(file_rows: int = FILE_ROWS, rounds: int = ROUNDS) -> list[Figure]:
    """Measure; every output is checked. Takes two minutes."""
    folder = unsorted_files(file_rows)
    rows = FILES * file_rows
    wanted = contents(sorted(folder.iterdir()))
    keys = SLEEPER.key_fields[0].name, SLEEPER.key_fields[1].name
    taken = []
    for _ in range(rounds):
        with TemporaryDirectory(prefix="ingest-", dir=CACHE) as scratch:
            used = measured(ingest_ours.__name__, scratch, str(folder))
            files = list(Path(scratch).rglob("*.parquet"))
            assert contents(files) == wanted, "ingest lost rows, or made some"
            assert all(is_in_order(file, keys) for file in files), "rows are out of order"
            assert len({_leaf(file) for file in files}) == len(SPLIT_POINTS) + 1
        taken.append([rows / used.cpu_seconds, used.peak_mib])
    rate, peak = medians(taken)
    return [
        Figure("ingest.sleeper.rows_per_core_second", rate, "rows/s/core"),
        Figure("ingest.sleeper.peak_mib", peak, "MiB"),
    ]


def _leaf(file: Path) -> int:
    """Return which leaf a file's rows are in. They are all in one."""
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(g).column(0).statistics for g in range(metadata.num_row_groups)]
    (leaf,) = {sum(end >= p for p in SPLIT_POINTS) for g in groups for end in (g.min, g.max)}
    return leaf


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=FILE_ROWS, help="of each of the files")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    print(table(run(given.rows, given.rounds)))
