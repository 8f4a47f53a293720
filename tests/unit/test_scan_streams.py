"""Scans through the public API: what their streams leave behind, and how much they read."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.errors import CorruptError, InvalidError, VersionExpiredError
from lakebed.ports.sorted_files import ReadFigures
from lakebed.query.conditions import condition_of
from lakebed.sorted_files import parquet_files
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.reading import query_sources
from lakebed.sorted_files.reading.part_reading import RowGroupsByArrow
from lakebed.sorted_files.reading.scanning import beside_each_other, row_group_scan
from lakebed.sorted_files.reading.scanning.beside_each_other import BesideEachOther
from lakebed.sorted_files.reading.scanning.row_group_scan import RowGroupScan
from lakebed.sorted_files.reading.tails import Tails
from lakebed.table import Table

ROWS = 40_000


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """Forty row groups in four leaves; batches begin with 100 rows."""
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", ROWS // 40)
    monkeypatch.setattr(beside_each_other, "ROWS_FIRST", 100)
    with lakebed.connect(tmp_path / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"v": "float64", "s": "string"})
        made = lake.create_table("t", schema, split_points=[10_001, 20_002, 30_003])
        ids = pa.array(range(ROWS))
        made.ingest(pa.table({"id": ids, "v": pc.divide(ids, 7.0), "s": pc.cast(ids, "string")}))
        yield made


ENDING_SECONDS_MAX = 30.0


def scanning() -> list[threading.Thread]:
    """Return the threads of scans that do not end: those of readers ahead may end a little later
    than what they read for."""
    names = ("lakebed-scan", "lakebed-ahead")
    found = [t for t in threading.enumerate() if t.name.startswith(names)]
    ends = time.monotonic() + ENDING_SECONDS_MAX
    for thread in found:
        thread.join(max(0.0, ends - time.monotonic()))
    return [t for t in found if t.is_alive()]


def test_all_rows_come_once_the_first_batch_is_small_and_later_ones_are_larger(
    table: Table,
) -> None:
    sizes = [batch.num_rows for batch in table.scan()]
    assert sum(sizes) == ROWS
    assert sizes[0] <= 100 < max(sizes)
    ids = table.scan(columns=["id"]).read_all().column("id")
    assert pc.count_distinct(ids).as_py() == len(ids) == ROWS


def test_a_scan_that_is_dropped_leaves_no_thread(table: Table) -> None:
    rows = table.scan()
    assert rows.read_next_batch().num_rows
    del rows
    assert not scanning()


def test_a_scan_that_is_read_to_its_end_leaves_no_thread(table: Table) -> None:
    rows = table.scan()
    rows.read_all()
    assert not scanning()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of each row group that is decoded."""
    found: list[tuple[str, ...]] = []

    class Watched(RowGroupsByArrow):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
            super().__init__(*args, **kwargs)
            found.append(kwargs["match"].names)

    monkeypatch.setattr(row_group_scan, "RowGroupsByArrow", Watched)
    return found


def test_a_limit_decodes_little(table: Table, decoded: list[tuple[str, ...]]) -> None:
    assert table.scan(limit=5).read_all().num_rows == 5
    assert 1 <= len(decoded) <= 4
    decoded.clear()
    assert table.scan().read_all().num_rows == ROWS
    assert len(decoded) == 43, "each leaf has a file, whose last row group is short"


def test_decoded_bytes_that_wait_are_bounded(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[BesideEachOther] = []
    threads, bytes_max = 2, 60_000

    class Watched(BesideEachOther):
        def __init__(self, scan: RowGroupScan, **_: object) -> None:
            super().__init__(scan, threads=threads, bytes_max=bytes_max)
            scans.append(self)

    monkeypatch.setattr(parquet_files, "BesideEachOther", Watched)
    rows = waited = largest = 0
    for batch in table.scan():  # more rows may be ahead each time, soon all of them
        (scan,) = scans
        while scan._running:
            time.sleep(0.001)
        rows, largest = rows + batch.num_rows, max(largest, batch.nbytes)
        waited = max(waited, sum(one.nbytes for one in scan._ready))
    assert rows == ROWS
    assert bytes_max // 2 < waited <= bytes_max + threads * largest < 20 * ROWS // 2


def test_a_key_is_looked_up_by_pages(table: Table) -> None:
    figures = ReadFigures()
    query = table._app.query
    found = table.scan(keys=[77])
    assert found.read_all().column("id").to_pylist() == [77]
    plan = query.plan(table._opened, partial(condition_of, keys=[77]))
    assert sum(b.num_rows for b in query.scan(table._opened, plan, figures=figures)) == 1
    assert figures.pages_read
    assert figures.row_groups_met == 1


def test_columns_that_are_not_asked_for_are_not_read_not_even_keys(
    table: Table, decoded: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_sources, "LOOKUP_TAILS_BYTES_MAX", 0)
    rows = table.scan(columns=["v"]).read_all()
    assert (rows.column_names, rows.num_rows) == (["v"], ROWS)
    assert set(decoded) == {("v",)}
    decoded.clear()
    rows = table.scan(columns=["v"], ranges={"id": (1_500, 20_500)}).read_all()
    assert (rows.column_names, rows.num_rows) == (["v"], 19_000)
    assert sorted(decoded) == [("id", "v")] * 2 + [("v",)] * 20, "keys where a range ends"
    decoded.clear()
    table.scan(columns=["v"], where=lakebed.field("s") == "7").read_all()
    assert set(decoded) == {("v", "s")}


def test_where_keeps_what_a_query_keeps(table: Table) -> None:
    where = (lakebed.field("v") >= 1000) & (lakebed.field("s") != "8000")
    wanted = table.query(where=where, columns=["s"]).read_all().column("s").to_pylist()
    found = table.scan(where=where, columns=["s"]).read_all().column("s").to_pylist()
    assert sorted(found) == sorted(wanted)
    assert table.scan(where=lakebed.field("v") < 0).read_all().num_rows == 0
    with pytest.raises(InvalidError, match="not a limit"):
        table.scan(limit=-1)
    with pytest.raises(InvalidError, match="no such field"):
        table.scan(columns=["w"])


def test_a_file_that_is_gone_is_told_as_a_query_tells_it(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table.scan()
    late = table.scan()
    files = sorted((tmp_path / "lake").rglob("*.parquet"))
    for file in files:
        file.unlink()
    monkeypatch.setattr(table._app.files, "_tails", Tails(table._app.objects, bytes_max=0))
    with pytest.raises(CorruptError, match="a file of the table is missing"):
        rows.read_all()
    table.clear()
    with pytest.raises(VersionExpiredError, match="the version was collected"):
        late.read_all()
    assert not scanning()


AT_EXIT = """
import sys, lakebed
lake = lakebed.connect(sys.argv[1])
table = lake.table("t")
rows = table.scan()
rows.read_next_batch()
if sys.argv[2] == "duckdb":
    streamed = lake.sql("select * from t")
    streamed.read_next_batch()
    joined = lake.sql("select a.id from t a join t b on a.v < b.v")
    joined.read_next_batch()
if sys.argv[2] == "parameters":
    streamed = lake.sql("select * from t where id >= ?", [0])
    streamed.read_next_batch()
    named = lake.sql("select a.id from t a join t b on a.v < b.v + $more", {"more": 1.5})
    named.read_next_batch()
if sys.argv[2] == "dataset":
    import duckdb
    data = table.dataset()
    con = duckdb.connect()
    streamed = con.sql("select * from data").to_arrow_reader(1000)
    streamed.read_next_batch()
if sys.argv[2] == "error":
    sys.exit(7)
"""


@pytest.mark.parametrize("what", ["scan", "duckdb", "parameters", "dataset", "error"])
def test_a_process_ends_quietly_in_the_middle_of_streams(
    table: Table, tmp_path: Path, what: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", AT_EXIT, str(tmp_path / "lake"), what],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == (7 if what == "error" else 0), ended
    assert (ended.stdout, ended.stderr) == ("", "")
