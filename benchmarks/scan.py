"""A whole table read through the public API, beside reading the same bytes raw.

Raw: the same client of S3 fetches the files' data one after the other, in pieces as large as ours,
over one connection, and throws them away. Beside it: the same over as many connections as ours.
Then scans without order, and SQL, beside Arrow's data sets and DuckDB on the files.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.figures import Figure, medians, quick
from benchmarks.lookup import ROWS
from benchmarks.peers.sql import sql_figures
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import made, objects_of, served
from benchmarks.shapes import SHAPES
from lakebed.sorted_files.reading.read_ahead import CONNECTIONS, PIECE_BYTES

RATIO_MIN = 0.8


def run(rows: int | None = None, rounds: int = 3, shapes: Sequence[str] = ()) -> list[Figure]:
    """Measure: ours and raw in turn. rows: of the table. Takes a minute."""
    figures = []
    for name in shapes or ("sys",):
        folder = made(SHAPES[name], rows or ROWS[name])
        with served(folder) as table:
            raw = _Raw(ServedObjects(objects_of(folder), table.server))
            taken = []
            for _ in range(rounds):
                begun = time.perf_counter()
                found = sum(batch.num_rows for batch in table.table.query())
                ends = [time.perf_counter()]
                paths = [path.partition("objects/")[2] for path in table.paths]
                for connections in (1, CONNECTIONS):
                    size = raw.read(paths, connections)
                    ends.append(time.perf_counter())
                taken.append((ends[0] - begun, ends[1] - ends[0], ends[2] - ends[1]))
                assert found, "rows were read"
        ours, bare, parallel = medians(taken)
        prefix = "scan" if name == "sys" else f"scan.{name}"
        figures += [
            Figure(f"{prefix}.ratio_to_raw", bare / ours, "", RATIO_MIN, "higher"),
            Figure(f"{prefix}.ratio_to_raw_parallel", parallel / ours, ""),
            Figure(f"{prefix}.mb_per_second", size / 1e6 / ours, "MB/s"),
            Figure(f"{prefix}.raw_mb_per_second", size / 1e6 / bare, "MB/s"),
            Figure(f"{prefix}.raw_parallel_mb_per_second", size / 1e6 / parallel, "MB/s"),
            Figure(f"{prefix}.rows_per_second", found / ours, "rows/s"),
        ]
    return figures + ([] if shapes else sql_figures(rows, max(3, rounds)))


class _Raw:
    def __init__(self, objects: ServedObjects) -> None:
        self._objects = objects

    def read(self, paths: Sequence[str], connections: int) -> int:
        """Read some objects. Returns how many bytes they have."""
        pieces = []
        for path in paths:
            facts = self._objects.look(path)
            assert facts is not None, f"{path} is there"
            starts = range(0, facts.size, PIECE_BYTES)
            pieces += [(path, [(at, min(at + PIECE_BYTES, facts.size))]) for at in starts]
        with ThreadPoolExecutor(connections) as readers:
            return sum(
                len(body) for (body,) in readers.map(lambda p: self._objects.read(*p), pieces)
            )


if __name__ == "__main__":
    quick(__doc__, run)
