"""What others read from our files is what we read: files of one row group and of many, files from
before and after a change of fields, merged ones, and joined ones."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.kernels.toolchain.presence import SWITCH
from lakebed.parquet_bytes.footer import Footer
from lakebed.parquet_bytes.page_index import pages_of
from lakebed.query.datasets import TableDataset
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.merging import file_merge, stretches
from tests.readers.rows import plain
from tests.tidy.source import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROWS = 700
KEPT = {"garbage_seconds_min": 1 << 20}
SCHEMA = lakebed.schema_of(
    row_keys={"s": "string", "i": "int64"},
    sort_keys={"t": "timestamp[us, UTC]"},
    values={
        "bool": "bool?",
        "int8": "int8?",
        "int16": "int16?",
        "int32": "int32?",
        "uint8": "uint8?",
        "uint16": "uint16?",
        "uint32": "uint32?",
        "float32": "float32?",
        "float64": "float64?",
        "decimal": "decimal128(12,2)?",
        "text": "string?",
        "few": "string?",
        "bytes": "binary?",
        "day": "date32?",
        "naive": "timestamp[us]?",
        "list": {"list": "int32"},
        "map": {"map": ["string", {"list": "string"}]},
        "struct": {"struct": [{"name": "a", "type": "float64"}, {"name": "b", "type": "binary"}]},
    },
)
"""Every type but times of day, which Spark does not read."""
NARROW = lakebed.schema_of(
    row_keys={"s": "string", "i": "int64"},
    sort_keys={"t": "timestamp[us, UTC]"},
    values={"text": "string?", "bytes": "binary", "n": "int32?", "list": {"list": "string"}},
)
"""Pages of these rows begin within the rows that Spark reads at once, and end beyond them."""
PAGED_ROWS = 9_000
SPARK_ROWS = 4_096
"""So many it reads at once."""


def rows(schema: lakebed.Schema, seed: int, count: int = ROWS) -> pa.Table:
    """Return rows that differ in each field, with nulls, empty values and ends of ranges."""
    columns = {}
    for column in arrow_schema(schema):
        values = [_value(column, n * 7 + seed) for n in range(count)]
        columns[column.name] = pa.array(values, _as_numbers(column.type)).cast(column.type)
    return pa.table(columns, schema=arrow_schema(schema))


def _as_numbers(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date(type_) else type_


def _value(column: pa.Field, n: int) -> Any:  # noqa: ANN401 - of the column's type
    kinds, type_ = pa.types, column.type
    if column.nullable and n % 11 == 0:
        return None
    if kinds.is_boolean(type_):
        return n % 3 == 0
    if kinds.is_integer(type_):
        bits = type_.bit_width - 1 if kinds.is_signed_integer(type_) else type_.bit_width
        return (1 << bits) - 1 - n % 5 if n % 2 else n % 100
    if kinds.is_floating(type_):
        return [0.0, -0.0, 0.5, float("inf"), float("nan"), n / 4][n % 6]
    if kinds.is_decimal(type_):
        return (-1) ** n * n
    if column.name == "s":
        return ["", "\x00", "\xe9", "\ue000", "\U0001f600"][n % 5] + f"{n % 97}\x00{n}"
    if kinds.is_string(type_):
        return ["red", "gr\xfcn", ""][n % 3] if column.name == "few" else f"{n % 97}\xe9\x00{n}"
    if kinds.is_binary(type_):
        return bytes([n % 256, 0, 255])[: n % 4]
    if kinds.is_timestamp(type_) or kinds.is_date(type_):
        return (n - 300) * (1 if kinds.is_date(type_) else 86_399_999_999)
    if kinds.is_map(type_):
        return [(f"k{k}", ["x", None][: k % 3]) for k in range(n % 3)]
    if kinds.is_list(type_):
        numbers = [None, n, -n][: n % 4]
        return [str(n) if n and kinds.is_string(type_.value_type) else n for n in numbers]
    return {"a": n / 2, "b": None if n % 5 else b"b"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Files by how they came to be. Row groups have 300 rows, but where they have many pages."""
    folder = tmp_path_factory.mktemp("readers")
    with pytest.MonkeyPatch.context() as patch, lakebed.connect(folder / "lake") as lake:
        found: dict[str, str] = {}

        def took(name: str, rows: int = 0) -> None:
            new = {str(p) for p in (folder / "lake").rglob("*.parquet")} - set(found.values())
            (found[name],) = (p for p in new if rows in {0, pq.read_metadata(p).num_rows})

        for name, switch in {"pages by pyarrow": "off", "pages by kernels": "always"}.items():
            patch.setenv(SWITCH, switch)
            table = lake.create_table(f"pages-{switch}", NARROW, settings=KEPT)
            table.ingest(rows(NARROW, 0, PAGED_ROWS))
            took(name)
        patch.delenv(SWITCH)
        for module in (row_groups, stretches):
            patch.setattr(module, "ROW_GROUP_ROWS_MAX", 300)
        table = lake.create_table("t", SCHEMA, settings=KEPT)
        table.ingest(rows(table.schema, 0))
        took("ingested")
        table.change_fields(
            add={"new": "string?"},
            rename={"text": "words", "float64": "text"},
            drop=["int8"],
            widen={"int16": "int64", "float32": "float64", "decimal": "decimal128(20,4)"},
        )
        table.ingest(rows(table.schema, 3))
        took("ingested after fields were changed")
        table.compact()
        took("merged of both")
        lake_rows = table.query().read_all()
        assert plain(lake_rows) == plain(pq.read_table(found["merged of both"], partitioning=None))
        assert lake_rows.num_rows == 2 * ROWS
        for name, switch in {"joined by pyarrow": "off", "joined by kernels": "always"}.items():
            patch.setenv(SWITCH, switch)
            joined(lake.create_table(switch, table.schema, settings=KEPT), lake_rows, patch)
            took(name, rows=2 * ROWS)
        yield found


def joined(table: lakebed.Table, rows: pa.Table, patch: pytest.MonkeyPatch) -> None:
    """Merge files that overlap in the middle only: other row groups pass as they are stored."""
    places = range(rows.num_rows)
    first = [p for p in places if p < 600 or (p < 800 and p % 2)]
    table.ingest(rows.take(first))
    table.ingest(rows.take(sorted(set(places) - set(first))))
    passed = []
    usual = file_merge.stored_row_groups

    def noted(*arguments: Any) -> Iterator[Any]:  # noqa: ANN401 - as the function itself
        for row_group in usual(*arguments):
            passed.append(row_group)
            yield row_group

    with patch.context() as noting:
        noting.setattr(file_merge, "stored_row_groups", noted)
        table.compact()
    assert len(passed) >= 3
    assert plain(table.query().read_all()) == plain(rows)


def footer_of(path: Path) -> Footer:
    """Return the footer of a file with one row group."""
    file, chunks = path.read_bytes(), pq.read_metadata(path).row_group(0)
    last = chunks.column(chunks.num_columns - 1)
    end = last.total_compressed_size + (last.dictionary_page_offset or last.data_page_offset)
    return Footer(file[end:], end)


def by_duckdb(path: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql("SELECT * FROM read_parquet(?)", params=[path])
        return found.to_arrow_table()


def by_polars(path: str) -> pa.Table:
    return pl.read_parquet(path).to_arrow()


def by_datafusion(path: str) -> pa.Table:
    return datafusion.SessionContext().read_parquet(path).to_arrow_table()


READERS: dict[str, Callable[[str], pa.Table]] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "DataFusion": by_datafusion,
}


@pytest.mark.parametrize("reader", READERS)
def test_others_read_the_same_rows(files: dict[str, str], reader: str) -> None:
    for name, path in files.items():
        expected = plain(pq.read_table(path, partitioning=None))
        assert sorted(plain(READERS[reader](path))) == sorted(expected), name


def test_files_have_several_row_groups_and_numbered_columns(files: dict[str, str]) -> None:
    for name, path in files.items():
        file = pq.ParquetFile(path)
        assert file.num_row_groups >= 3 or "pages" in name
        assert all(b"PARQUET:field_id" in column.metadata for column in file.schema_arrow)


def test_pages_begin_and_end_within_what_spark_reads_at_once(files: dict[str, str]) -> None:
    for name in ("pages by pyarrow", "pages by kernels"):
        footer = footer_of(Path(files[name]))
        row_group = footer.row_group(0)
        for chunk in row_group.chunks:
            pages = pages_of(footer, row_group, chunk)
            assert pages is not None
            assert len(pages.first_rows) >= 4
            assert all(row % SPARK_ROWS for row in pages.first_rows[1:])


@pytest.mark.parametrize("line", ["3.5", "4"])
def test_spark_reads_the_same_rows_and_sorts_them_alike(
    files: dict[str, str], line: str, tmp_path: Path
) -> None:
    spark = Path(os.environ.get("LAKEBED_SPARK", ROOT / ".venv")) / f"spark-{line}"
    if not spark.exists():
        pytest.skip(f"Spark {line} is not installed: `make test-all` does it where Java is")
    asked = {
        name: (path, str(tmp_path / f"{n}"), ["s", "i", "t"])
        for n, (name, path) in enumerate(files.items())
    }
    (tmp_path / "asked.json").write_text(json.dumps(list(asked.values())), encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": str(spark),
        "SPARK_HOME": str(spark / "pyspark"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "spark"),
    }
    program = Path(__file__).with_name("spark_program.py")
    run = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "asked.json")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    for name, (path, written, _) in asked.items():
        found = pq.read_table(written, partitioning=None)
        assert plain(found) == plain(pq.read_table(path, partitioning=None)), name


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableDataset]:
    """The rows of some files of a table in three leaves, as a data set."""
    with lakebed.connect(tmp_path_factory.mktemp("dataset") / "lake") as lake:
        table = lake.create_table("t", SCHEMA, split_points=["\ue000", "\U0001f600"])
        for seed in range(3):
            table.ingest(rows(SCHEMA, seed))
        yield table.dataset()
    gc.collect()  # Polars keeps a stream that it left, in a cycle of its own


FEW = "bool, int8, int32, uint16, decimal, text, few, bytes, day"


def test_duckdb_reads_a_data_set(dataset: TableDataset) -> None:
    wanted = dataset.to_table()
    with duckdb.connect(config={"threads": "2"}) as con:
        con.execute("SET TimeZone = 'UTC'").fetchall()
        found = con.sql("from dataset").to_arrow_table()
        assert sorted(plain(found)) == sorted(plain(wanted))
        asked = f"select {FEW} from dataset where i between 10 and 900 and few = 'red'"
        con.register("wanted_rows", wanted)
        again = con.sql(asked.replace("dataset", "wanted_rows")).to_arrow_table()
        assert sorted(plain(con.sql(asked).to_arrow_table())) == sorted(plain(again))
        assert con.sql("select count(*) from dataset").fetchall() == [(wanted.num_rows,)]


def test_datafusion_reads_a_data_set(dataset: TableDataset) -> None:
    wanted = dataset.to_table()
    ctx = datafusion.SessionContext()
    ctx.register_dataset("t", dataset)
    asked = "select int32, text from t where i in (1, 8, 15, 22, 29, 36) or few = 'red'"
    found = ctx.sql(asked).to_arrow_table()
    rows_in = wanted.to_pylist()
    expected = [
        {"int32": row["int32"], "text": row["text"]}
        for row in rows_in
        if row["i"] in {1, 8, 15, 22, 29, 36} or row["few"] == "red"
    ]
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected))
    (count,) = ctx.sql("select count(*) n from t").to_arrow_table().to_pylist()
    assert count == {"n": wanted.num_rows}


def test_polars_reads_a_data_set(dataset: TableDataset) -> None:
    wanted = dataset.to_table()
    asked = pl.scan_pyarrow_dataset(dataset).filter(pl.col("i") < 500).select("int32", "text")
    found = asked.collect().to_arrow()
    rows_in = [row for row in wanted.to_pylist() if row["i"] < 500]
    expected = [{"int32": row["int32"], "text": row["text"]} for row in rows_in]
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected))
    assert asked.head(3).collect().height == 3
