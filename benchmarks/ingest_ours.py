"""One ingest as a user calls it, in a process of its own: `ingest_ours LAKE FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.processes import IMPORTS_ONLY, tell_peak
from benchmarks.shapes import SLEEPER, SPLIT_POINTS
from lakebed.lake import connect


def main(lake: Path, folder: Path) -> None:
    with connect(lake) as opened:
        table = opened.create_table("sleeper", SLEEPER, split_points=SPLIT_POINTS)
        table.ingest(folder)


if __name__ == "__main__":
    if IMPORTS_ONLY not in sys.argv:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    tell_peak()
