"""A whole table exported by one worker, beside reading its rows through the public API.

Both read the same table of 16 leaves and some fifty files from a directory, in turn; the export's
files go into another directory of the same disk, with checksums and syncs. Rows are compared once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

import lakebed
from benchmarks.figures import Figure, medians, quick
from benchmarks.lookup import ROWS
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import made, objects_of
from benchmarks.shapes import SHAPES
from lakebed.exports.row_sums import RowSum

RATIO_MIN = 0.9


def run(rows: int | None = None, rounds: int = 3, shapes: Sequence[str] = ()) -> list[Figure]:
    """Measure: a query and an export in turn. rows: of the table. Takes a minute."""
    figures = []
    for name in shapes or ("sys",):
        folder = made(SHAPES[name], rows or ROWS[name])
        objects = ServedObjects(objects_of(folder), None)
        with lakebed.connect(folder / "directory", objects=objects) as lake:
            table = lake.table("bench")
            taken, spent = [], []
            for number in range(rounds):
                with TemporaryDirectory(dir=folder) as target:
                    ends, used = [time.perf_counter()], [time.process_time()]
                    found = sum(batch.num_rows for batch in table.query())
                    ends.append(time.perf_counter())
                    used.append(time.process_time())
                    done = table.export(target, workers=1)
                    ends.append(time.perf_counter())
                    used.append(time.process_time())
                    assert done.rows == found, "the same rows"
                    if not number:
                        _compare(table, Path(target))
                taken.append((ends[1] - ends[0], ends[2] - ends[1]))
                spent.append((used[1] - used[0], used[2] - used[1]))
        read, written = medians(taken)
        read_cpu, written_cpu = medians(spent)
        prefix = "export" if name == "sys" else f"export.{name}"
        figures += [
            Figure(f"{prefix}.ratio_to_read", read / written, "", RATIO_MIN, "higher"),
            Figure(f"{prefix}.core_ratio_to_read", read_cpu / written_cpu, ""),
            Figure(f"{prefix}.rows_per_second", found / written, "rows/s"),
            Figure(f"{prefix}.read_rows_per_second", found / read, "rows/s"),
        ]
    return figures


def _compare(table: lakebed.Table, target: Path) -> None:
    """Refuse an export that does not hold the table's rows."""
    sums = RowSum(), RowSum()
    for batch in table.query():
        sums[0].add(batch)
    for file in sorted(target.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches():
            sums[1].add(batch)
    assert sums[0].value == sums[1].value, "other rows"


if __name__ == "__main__":
    quick(__doc__, run)
