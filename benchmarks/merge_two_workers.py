"""The merge on two CPUs, by the clock, beside DataFusion on the same two.

With a helper that is there, as for each job of a task but its first; and beside it with one that is
started when the merge begins.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.figures import Figure, quick
from benchmarks.inputs import sorted_files
from benchmarks.merging import Engine, merges
from benchmarks.peers import merge_datafusion
from benchmarks.programs import merge_ours
from benchmarks.shapes import FILES, Shape, shapes_named

ROUNDS = 5
RATIO_MIN, MEAN_MIN = 1.1, 1.4
KIND = "two_workers_wall_ratio_to_datafusion"
COLD = "two_workers_cold_wall_ratio_to_datafusion"


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes five minutes."""
    ratios = {
        shape.name: _ratios(shape, file_rows or shape.file_rows, rounds)
        for shape in shapes_named(shapes)
    }
    figures = [
        figure
        for name, (warm, cold) in ratios.items()
        for figure in (
            Figure(f"merge.{name}.{KIND}", warm, "", RATIO_MIN, "higher"),
            Figure(f"merge.{name}.{COLD}", cold, ""),
        )
    ]
    warm, cold = (statistics.geometric_mean(found) for found in zip(*ratios.values(), strict=True))
    return [
        *figures,
        Figure(f"merge.{KIND}", warm, "geometric mean", MEAN_MIN, "higher"),
        Figure(f"merge.{COLD}", cold, "geometric mean"),
    ]


def _ratios(shape: Shape, file_rows: int, rounds: int) -> tuple[float, float]:
    """Return DataFusion's time over ours, with a helper that is there, and with one to start."""
    engines = [
        Engine(merge_ours.__name__, (shape.name, "0", "2", "warm"), cpus=2),
        Engine(merge_ours.__name__, (shape.name, "0", "2", "cold"), cpus=2),
        Engine(merge_datafusion.__name__, (shape.for_peers(),), cpus=2),
    ]
    warm, cold, peer = merges(shape, sorted_files(shape, FILES, file_rows), engines, rounds)
    seconds = peer.used.wall_seconds
    return seconds / warm.used.wall_seconds, seconds / cold.used.wall_seconds


if __name__ == "__main__":
    quick(__doc__, run)
