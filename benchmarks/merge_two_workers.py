"""The merge on two CPUs, by the clock, beside DataFusion on the same two."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks import merge_datafusion, merge_ours
from benchmarks.figures import Figure, quick
from benchmarks.inputs import sorted_files
from benchmarks.merging import Engine, merges
from benchmarks.shapes import FILES, Shape, shapes_named

ROUNDS = 5
RATIO_MIN, MEAN_MIN = 1.1, 1.4
KIND = "two_workers_wall_ratio_to_datafusion"


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes three minutes."""
    ratios = {
        shape.name: _ratio(shape, file_rows or shape.file_rows, rounds)
        for shape in shapes_named(shapes)
    }
    mean = statistics.geometric_mean(ratios.values())
    figures = [
        Figure(f"merge.{name}.{KIND}", ratio, "", RATIO_MIN, "higher")
        for name, ratio in ratios.items()
    ]
    return [*figures, Figure(f"merge.{KIND}", mean, "geometric mean", MEAN_MIN, "higher")]


def _ratio(shape: Shape, file_rows: int, rounds: int) -> float:
    engines = [
        Engine(merge_ours.__name__, (shape.name, "0", "2"), cpus=2),
        Engine(merge_datafusion.__name__, (shape.for_peers(),), cpus=2),
    ]
    ours, peer = merges(shape, sorted_files(shape, FILES, file_rows), engines, rounds)
    return peer.used.wall_seconds / ours.used.wall_seconds


if __name__ == "__main__":
    quick(__doc__, run)
