"""Merges of ten and of fifty files with little memory: as fast as with what they may take?"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figure, quick
from benchmarks.inputs import sorted_files
from benchmarks.merging import Engine, merges
from benchmarks.programs import merge_ours
from benchmarks.shapes import FILES, Shape, shapes_named

ROUNDS = 3
MANY = 50
SPEED_RATIO_MIN = 0.8
LIMIT_MIB = {"sleeper": 256, "sys": 256, "narrow": 256, "wide": 384, "dup": 256}
"""Of buffers: the interpreter and its libraries are not counted."""


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each of ten files, None: the shape's. Takes four minutes."""
    figures = []
    for shape in shapes_named(shapes or list(LIMIT_MIB)):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    limit = str(LIMIT_MIB[shape.name])
    engines = [
        Engine(merge_ours.__name__, (shape.name, limit)),
        Engine(merge_ours.__name__, (shape.name,)),
    ]
    name = f"merge.{shape.name}"
    figures, ratios = [], []
    for files in (FILES, MANY):
        root = sorted_files(shape, files, file_rows * FILES // files)
        limited, free = merges(shape, root, engines, rounds)
        ratios.append(limited.rate / free.rate)
        peak = limited.used.peak_mib
        figures.append(Figure(f"{name}.limited_peak_mib_of_{files}_files", peak, "MiB"))
        figures.append(Figure(f"{name}.limited_speed_ratio_of_{files}_files", ratios[-1], ""))
    worst = Figure(f"{name}.limited_speed_ratio", min(ratios), "", SPEED_RATIO_MIN, "higher")
    return [worst, *figures]


if __name__ == "__main__":
    quick(__doc__, run)
