"""SQL and scans of a table in a directory, beside DuckDB on the files and Arrow's data sets.

Processor time of this process, as the engine's threads use it, too; each pair of answers is
compared. The files are those of one version, each wholly its leaf's, so that a glob over them has
the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

import lakebed
from benchmarks.figures import Figure, medians
from benchmarks.inputs import kept
from lakebed.table import Table

ROWS = 4_000_000
FILES = 64
LEAVES = 16
POINTS = 40
POINT_MS_MAX = 5.0
GROUP_BY_RATIO_MAX = 3.5
SCAN_RATIO_MIN = 0.8
GROUP_BY = "select city, count(*) n, sum(fare) s from {} group by city order by city"


def sql_figures(rows: int | None = None, rounds: int = 5) -> list[Figure]:
    """Measure in turn. rows: of the table. Takes a minute."""
    with lakebed.connect(_made(rows or ROWS), create=False) as lake:
        table = lake.table("trips")
        return [_point(lake, table, rounds), *_group_by(lake, rounds), _scan(table, rounds)]


def _made(rows: int) -> Path:
    """Return the folder of a lake with a table of so many rows."""

    def fill(folder: Path) -> None:
        schema = lakebed.schema_of(
            row_keys={"id": "int64"}, values={"city": "string", "fare": "int64", "note": "string"}
        )
        points = [rows * leaf // LEAVES for leaf in range(1, LEAVES)]
        settings = {"shared_file_rows_max": 0}
        with lakebed.connect(folder) as lake:
            table = lake.create_table("trips", schema, split_points=points, settings=settings)
            times = FILES // LEAVES
            for start in range(times):
                ids = pa.array(range(start, rows, times))
                table.ingest(_rows(ids))

    return kept(f"sql-{FILES}x{rows}", fill)


def _rows(ids: pa.Array) -> pa.Table:
    numbers = ids.to_numpy()
    cities = pa.array([f"city {n}" for n in range(50)])
    return pa.table(
        {
            "id": ids,
            "city": cities.take(pa.array(numbers * 7919 % 50)),
            "fare": pa.array(numbers * 31 % 10_007),
            "note": pa.array(numbers * 2_654_435_761 % 1_000_003).cast(pa.string()),
        }
    )


def _point(lake: lakebed.Lake, table: Table, rounds: int) -> Figure:
    """Return how much more processor time a key takes in SQL than in a query."""
    keys = [n * 99_991 % table.count() for n in range(POINTS)]

    def in_sql() -> object:
        text = "select * from trips where id = ?"
        return [lake.sql(text, [key]).read_all().to_pylist() for key in keys]

    def by_query() -> object:
        return [table.query(keys=[key]).read_all().to_pylist() for key in keys]

    ours, bare = _in_turn(rounds, in_sql, by_query)
    return Figure("sql.point.extra_cpu_ms", (ours - bare) / POINTS * 1000, "ms", POINT_MS_MAX)


def _group_by(lake: lakebed.Lake, rounds: int) -> list[Figure]:
    paths = [str(path) for path in _files(lake)]

    def in_sql() -> object:
        return lake.sql(GROUP_BY.format("trips")).read_all().to_pylist()

    def on_files() -> object:
        with duckdb.connect() as connection:
            return (
                connection.sql(GROUP_BY.format(f"read_parquet({paths})"))
                .to_arrow_table()
                .to_pylist()
            )

    ours, bare = _in_turn(rounds, in_sql, on_files)
    return [
        Figure("sql.group_by.ratio_to_duckdb_files", ours / bare, "", GROUP_BY_RATIO_MAX),
        Figure("sql.group_by.cpu_ms", ours * 1000, "ms"),
    ]


def _scan(table: Table, rounds: int) -> Figure:
    """Return how many rows a second of processor time a scan gives, in those of Arrow."""
    files = [str(path) for path in _files(table)]

    def ours() -> object:
        return sum(batch.num_rows for batch in table.scan())

    def arrows() -> object:
        return sum(batch.num_rows for batch in ds.dataset(files).to_batches())

    taken, bare = _in_turn(rounds, ours, arrows)
    scanned, read = _columns(table.scan().read_all()), _columns(ds.dataset(files).to_table())
    assert scanned == read, "rows are equal"
    return Figure("scan.unordered.ratio_to_pyarrow", bare / taken, "", SCAN_RATIO_MIN, "higher")


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns by name, in the order of the keys, each of which comes once."""
    ordered = rows.sort_by("id")
    return {name: ordered.column(name) for name in ordered.column_names}


def _files(opened: lakebed.Lake | Table) -> list[Path]:
    root = Path(opened._given_app.location)  # noqa: SLF001 - where it lies
    found = sorted(root.rglob("*.parquet"))
    assert found, "a lake in a directory has its files below it"
    return found


def _in_turn(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Return the processor time of each work, the median of some rounds. Answers are equal."""
    taken = []
    for turn in range(rounds + 1):
        answers, ends = [], [time.process_time()]
        for work in works:
            answers.append(work())
            ends.append(time.process_time())
        assert all(answer == answers[0] for answer in answers), "answers are equal"
        if turn:  # the first one loads and fills caches
            taken.append([end - begun for begun, end in pairwise(ends)])
    return medians(taken)
