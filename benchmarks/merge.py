"""Compaction beside the peer: ten sorted files become one, by our merge and by DataFusion's."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figure, quick
from benchmarks.inputs import sorted_files
from benchmarks.merging import Engine, merges
from benchmarks.peers import merge_datafusion, merge_rewrite
from benchmarks.programs import merge_ours
from benchmarks.shapes import FILES, Shape, shapes_named

ROUNDS = 5
RATIO_MIN = {"sleeper": 1.5, "sys": 1.3, "narrow": 1.5, "wide": 1.1, "dup": 2.2}
PEAK_MIB_MAX = 350
RATE = "rows/s/core"


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes four minutes."""
    figures = []
    for shape in shapes_named(shapes):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    root = sorted_files(shape, FILES, file_rows)
    engines = [
        Engine(merge_ours.__name__, (shape.name,)),
        Engine(merge_datafusion.__name__, (shape.for_peers(),)),
    ]
    if shape.folds is None:  # else other rows come out
        engines.append(Engine(merge_rewrite.__name__, (shape.name,), sorts=False))
    ours, peer, *rewrites = merges(shape, root, engines, rounds)
    name = f"merge.{shape.name}"
    aim = RATIO_MIN[shape.name]
    figures = [
        Figure(f"{name}.rows_per_core_second", ours.rate, RATE),
        Figure(f"{name}.ratio_to_datafusion", ours.rate / peer.rate, "", aim, "higher"),
        Figure(f"{name}.peak_mib", ours.used.peak_mib, "MiB", PEAK_MIB_MAX),
        Figure(f"{name}.size_ratio_to_datafusion", ours.size / peer.size, ""),
        Figure(f"{name}.datafusion_rows_per_core_second", peer.rate, RATE),
        Figure(f"{name}.datafusion_peak_mib", peer.used.peak_mib, "MiB"),
    ]
    for one in rewrites:
        figures.append(Figure(f"{name}.ratio_to_rewrite", ours.rate / one.rate, ""))
        figures.append(Figure(f"{name}.rewrite_rows_per_core_second", one.rate, RATE))
    return figures


if __name__ == "__main__":
    quick(__doc__, run)
