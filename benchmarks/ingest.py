"""Ingest beside the peer: a folder of unsorted Parquet files becomes sorted ones in 16 leaves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from benchmarks import inputs
from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import unsorted_files
from benchmarks.peers import ingest_polars
from benchmarks.peers.checking import Check, contents
from benchmarks.processes import measured
from benchmarks.programs import ingest_ours
from benchmarks.shapes import FILES, LEAVES, Shape, shapes_named

ROUNDS = 3
RATIO_MIN = {"sleeper": 1.5, "sys": 1.5, "narrow": 1.8, "wide": 1.0}
PEAK_MIB_MAX = 500
RATE = "rows/s/core"


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes four minutes."""
    figures = []
    for shape in shapes_named(shapes or list(RATIO_MIN)):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    folder = unsorted_files(shape, FILES, file_rows)
    wanted = contents(sorted(folder.iterdir()))
    check = Check(wanted, shape.keys)
    engines = [(ingest_ours.__name__, shape.name), (ingest_polars.__name__, shape.for_peers())]
    taken: list[list[float]] = []
    for _ in range(rounds):
        taken.append([])
        for module, given in engines:
            with TemporaryDirectory(prefix="scratch-", dir=inputs.CACHE) as target:
                used = measured(module, target, str(folder), given)
                files = sorted(Path(target).rglob("*.parquet"))
                check(files, module)
                assert {_leaf(file, shape) for file in files} == set(range(LEAVES))
            taken[-1] += [wanted.rows / used.cpu_seconds, used.peak_mib]
    ours, ours_peak, peer, peer_peak = medians(taken)
    name = f"ingest.{shape.name}"
    return [
        Figure(f"{name}.rows_per_core_second", ours, RATE),
        Figure(f"{name}.ratio_to_polars", ours / peer, "", RATIO_MIN[shape.name], "higher"),
        Figure(f"{name}.peak_mib", ours_peak, "MiB", PEAK_MIB_MAX),
        Figure(f"{name}.polars_rows_per_core_second", peer, RATE),
        Figure(f"{name}.polars_peak_mib", peer_peak, "MiB"),
    ]


def _leaf(file: Path, shape: Shape) -> int:
    """Return which leaf a file's rows are in. They are all in one."""
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(g).column(0).statistics for g in range(metadata.num_row_groups)]
    (leaf,) = {bisect_right(shape.split_points, end) for g in groups for end in (g.min, g.max)}
    return leaf


if __name__ == "__main__":
    quick(__doc__, run)
