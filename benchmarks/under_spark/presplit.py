"""A first import of skewed keys: how even the leaves are that it makes, and what that costs beside
an import into a table that was split just as well before."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import lakebed
from benchmarks import inputs
from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import unsorted_files
from benchmarks.shapes import FILES, LEAVES, SLEEPER
from benchmarks.under_spark.spark_processes import cpu_seconds, spark_home

ROUNDS = 3
SAMPLE_ROWS = 200_000
RATIO_MIN, LEAVES_RATIO_MAX = 0.95, 2.0
PROGRAM = "benchmarks.under_spark.first_import"
WAYS = ("one-leaf", "split")
_LETTERS = 10


def _columns(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    """Return columns of `sleeper` with other keys: each letter is half as frequent as the one
    before it, so that half of the keys begin with `a`."""
    letters = np.minimum(rng.geometric(0.5, (rows, _LETTERS)) - 1, 25).astype(np.uint8) + ord("a")
    keys = letters.view(f"S{_LETTERS}").ravel().astype(str)
    return [pa.array(keys), *SLEEPER.columns(rng, rows)[1:]]


SKEWED = dataclasses.replace(SLEEPER, name="skewed", columns=_columns, split_points=())


def even_points() -> tuple[str, ...]:
    """Return the keys that cut rows of the shape into sixteen alike parts."""
    keys = np.sort(SKEWED.rows(FILES, SAMPLE_ROWS).column("key").to_numpy(zero_copy_only=False))
    return tuple(str(keys[leaf * SAMPLE_ROWS // LEAVES]) for leaf in range(1, LEAVES))


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each of ten files. Takes five minutes, and nothing where Spark is not
    installed."""
    del shapes  # there is one
    if spark_home() is None:
        print("no Spark here: first imports are not measured", file=sys.stderr)
        return []
    given = file_rows or SKEWED.file_rows
    folder = unsorted_files(SKEWED, FILES, given)
    rows = FILES * given
    leaf_rows_max = -(-2 * rows // (LEAVES + 1))  # a leaf of all rows becomes sixteen
    taken: list[list[float]] = []
    for _ in range(rounds):
        taken.append([])
        for way in WAYS:
            with TemporaryDirectory(prefix="scratch-", dir=inputs.CACHE) as target:
                lake = str(Path(target, "lake"))
                used = cpu_seconds(PROGRAM, lake, str(folder), way, str(leaf_rows_max))
                taken[-1] += [rows / used, _leaves_ratio(lake, rows)]
    ours, evenness, before, before_evenness = medians(taken)
    return [
        Figure("presplit.first_import.leaves_ratio", evenness, "", LEAVES_RATIO_MAX),
        Figure("presplit.first_import.leaves_ratio_of_even_points", before_evenness, ""),
        Figure(
            "bulk_import.presplit.ratio_to_split_table",
            ours / before,
            "",
            RATIO_MIN,
            better="higher",
        ),
        Figure("bulk_import.presplit.rows_per_core_second", ours, "rows/s/core"),
    ]


def _leaves_ratio(path: str, rows: int) -> float:
    """Return how many times the mean of all leaves the largest one has."""
    with lakebed.connect(path) as lake:
        (table,) = lake.status("bench")
        leaves = [node.rows for node in table.nodes if node.left is None]
    assert sum(leaves) == rows, "no row is lost on the way"
    assert len(leaves) > 1, "the import made leaves"
    return max(leaves) * len(leaves) / rows


if __name__ == "__main__":
    quick(__doc__, run)
