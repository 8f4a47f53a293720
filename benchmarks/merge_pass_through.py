"""A merge of files that share no keys: their row groups are copied, beside a copy of the files.

By processor time, as the clock would measure the disk.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import files_apart, files_in, scratch
from benchmarks.peers import pass_through_copy
from benchmarks.peers.checking import Check, contents
from benchmarks.processes import measured
from benchmarks.programs import merge_ours
from benchmarks.shapes import FILES, SLEEPER

ROUNDS = 5
RATIO_MIN = 0.3


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: a million. shapes: there is one."""
    assert set(shapes) <= {SLEEPER.name}, "files apart are of the shape sleeper"
    root = files_apart(FILES, file_rows or SLEEPER.file_rows)
    inputs = files_in(root)
    size = sum(file.stat().st_size for file in inputs) / 1e6
    check = Check(contents(inputs), SLEEPER.keys)
    taken = []
    with scratch(root) as store:
        before = set(store.rglob("*.parquet"))
        for _ in range(rounds):
            ours = measured(merge_ours.__name__, str(store), SLEEPER.name)
            (output,) = set(store.rglob("*.parquet")) - before
            check([output], merge_ours.__name__)
            output.unlink()
            copy = measured(pass_through_copy.__name__, str(store))
            taken.append([size / ours.cpu_seconds, size / copy.cpu_seconds])
    rate, copied = medians(taken)
    unit = "MB/s/core"
    return [
        Figure("merge.pass_through.ratio_to_copy", rate / copied, "", RATIO_MIN, "higher"),
        Figure("merge.pass_through.megabytes_per_core_second", rate, unit),
        Figure("merge.pass_through.copied_megabytes_per_core_second", copied, unit),
    ]


if __name__ == "__main__":
    quick(__doc__, run)
