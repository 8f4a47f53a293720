"""Compaction beside the peer: ten sorted files become one, by our merge and by DataFusion's."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import merge_datafusion, merge_ours
from benchmarks.checking import contents, is_in_order
from benchmarks.figures import Figure, medians, table
from benchmarks.processes import measured
from benchmarks.shapes import CACHE, FILE_ROWS, FILES, SLEEPER, sorted_files

ROUNDS = 5
RATIO_MIN, PEAK_MIB_MAX = 0.9, 350
ENGINES: tuple[tuple[str, Callable[[Path], Path]], ...] = (
    (merge_ours.__name__, merge_ours.output),
    (merge_datafusion.__name__, merge_datafusion.output),
)


def run(file_rows: int = FILE_ROWS, rounds: int = ROUNDS) -> list[Figure]:
    """Measure, our runs and the peer's in turn; every output is checked. Takes two minutes."""
    root, parts = sorted_files(file_rows)
    rows = FILES * file_rows
    wanted = contents(root / "objects" / part.path for part in parts)
    keys = SLEEPER.key_fields[0].name, SLEEPER.key_fields[1].name
    taken: list[list[float]] = []
    with TemporaryDirectory(prefix="merge-", dir=CACHE) as scratch:
        store = _linked(root, Path(scratch))
        for _ in range(rounds):
            taken.append([])
            for module, output in ENGINES:
                used = measured(module, str(store))
                file = output(store)
                assert contents([file]) == wanted, f"{module} lost rows, or made some"
                assert is_in_order(file, keys), f"{module} wrote rows out of order"
                file.unlink()
                taken[-1] += [rows / used.cpu_seconds, used.peak_mib]
    ours, ours_peak, peer, peer_peak = medians(taken)
    rate = "rows/s/core"
    return [
        Figure("merge.sleeper.rows_per_core_second", ours, rate),
        Figure("merge.sleeper.ratio_to_datafusion", ours / peer, "", RATIO_MIN, "higher"),
        Figure("merge.sleeper.peak_mib", ours_peak, "MiB", PEAK_MIB_MAX),
        Figure("merge.sleeper.datafusion_rows_per_core_second", peer, rate),
        Figure("merge.sleeper.datafusion_peak_mib", peer_peak, "MiB"),
    ]


def _linked(root: Path, scratch: Path) -> Path:
    """Return a store with the same files, without a copy, in which outputs are thrown away."""
    for file in root.rglob("*"):
        if file.is_file():
            place = scratch / file.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, place)
    return scratch


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=FILE_ROWS, help="of each of the files")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    print(table(run(given.rows, given.rounds)))
