"""How many rows a table has: from its state where that is exact, and the same as reading them."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError, TableMissingError
from lakebed.lake import Lake
from lakebed.sorted_files import parquet_files
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.table import Table

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("t", SCHEMA)
    table.ingest(rows(range(1_000)))
    table.ingest(rows(range(500, 1_500)))
    return table


def rows(ids: range) -> pa.Table:
    return pa.table({"id": list(ids), "n": [i % 10 for i in ids]})


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object, **_more: object) -> Iterator[pa.RecordBatch]:
        parts = _[2]
        assert not parts, "a file was read"
        yield from ()

    for way in ("read", "scan"):
        monkeypatch.setattr(ParquetFiles, way, read)


def test_the_state_knows_how_many(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_read(monkeypatch)
    assert (table.count(), len(table)) == (2_000, 2_000)


def test_an_empty_table_has_none_and_is_true(lake: Lake) -> None:
    empty = lake.create_table("e", SCHEMA)
    assert (len(empty), bool(empty), empty.head().num_rows) == (0, True, 0)


def test_keys_ranges_and_predicates_are_counted(table: Table) -> None:
    assert table.count(keys=[600, 7]) == 3
    assert table.count(ranges={"id": (400, 600)}) == 300
    assert table.count(where=lakebed.field("n") == 3) == 200
    assert table.count(ranges={"id": (0, 100)}, where=lakebed.field("n") < 2) == 20


def test_counting_merges_nothing_where_the_table_folds_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge(*_: object) -> Iterator[pa.RecordBatch]:
        raise AssertionError("rows were put in order")

    monkeypatch.setattr(parquet_files, "_merged", merge)
    n = lakebed.field("n")
    assert table.count(where=n == 3) == 200
    table.change_processing(lakebed.Processing(filter=n < 5))
    assert len(table) == 1_000
    with pytest.raises(AssertionError, match="put in order"):
        table.query(where=n == 3).read_all()


def test_parts_of_files_that_a_split_has_cut_are_read(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, settings={"leaf_rows_max": 1_000, "job_files_max": 100})
    for first in (0, 1, 2, 3):
        table.ingest(rows(range(first, 4_000, 4)))
    lake._app.split_leaves.run(lake._app.catalog.find("t"))
    (status,) = lake.status("t")
    assert (status.leaves > 1, status.rows_exact) == (True, False)
    assert table.count() == 4_000 == table.query().read_all().num_rows
    table.ingest(rows(range(4_000, 4_010)))
    assert table.count() == 4_010


def test_rows_that_processing_merges_are_counted_as_they_are_read(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, processing=lakebed.Processing(aggregate={"n": "sum"}))
    for _ in range(2):
        table.ingest(rows(range(10)))
    assert table.count() == len(table.to_arrow()) == 10


def test_a_lake_gives_its_tables_by_name(lake: Lake, table: Table) -> None:
    assert lake["t"].count() == table.count()
    assert ("t" in lake, "u" in lake, list(lake)) == (True, False, ["t"])
    with pytest.raises(TableMissingError):
        lake["u"]


def test_rows_go_where_arrow_is_read(table: Table) -> None:
    assert table.head(3).to_pydict() == {"id": [0, 1, 2], "n": [0, 1, 2]}
    assert table.to_polars(keys=[600]).to_dict(as_series=False) == {"id": [600, 600], "n": [0, 0]}
    assert pl.DataFrame(table).shape == (2_000, 2)
    assert pa.table(table).num_rows == 2_000
    with duckdb.connect() as database:
        found = database.from_arrow(table.query(keys=[600])).aggregate("count(*)")
        assert found.fetchall() == [(2,)]


def test_what_is_not_installed_is_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for library, take in (("pandas", table.to_pandas), ("polars", table.to_polars)):
        monkeypatch.setitem(__import__("sys").modules, library, None)
        with pytest.raises(InvalidError, match=f"{library} is not installed"):
            take()
