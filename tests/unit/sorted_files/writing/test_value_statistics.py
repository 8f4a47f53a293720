"""Bounds of values in files of tables that want them: predicates on values pass over row groups."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.lake import Lake
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.writing.test_encoding_row_groups import file_of

SCHEMA = lakebed.schema_of(
    row_keys={"id": "int64"},
    values={
        "n": "int64?",
        "state": "string",
        "x": "float64?",
        "raw": "binary",
        "l": {"list": "int8"},
    },
)
ROWS = pa.Table.from_pylist(
    [
        {
            "id": n,
            "n": None if n % 7 == 3 else n // 10,
            "state": "done" if n < 990 else "open",
            "x": n / 4,
            "raw": b"%d" % n,
            "l": [n % 3],
        }
        for n in range(1_000)
    ],
    schema=arrow_schema(SCHEMA),
)
PREDICATES = [
    (lakebed.field("n") == 12, pc.field("n") == 12),
    (lakebed.field("state") == "open", pc.field("state") == "open"),
    (lakebed.field("x") >= 240, pc.field("x") >= 240),
]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 100)
    return lakebed.connect(tmp_path / "lake")


def groups_read(lake: Lake, where: Any) -> tuple[int, int]:  # noqa: ANN401 - a predicate
    """Return how many row groups were read for a query, and of how many."""
    told = lake.table("t").explain(where=where)
    return told.row_groups_read, told.row_groups


@pytest.mark.parametrize("kernels", ["off", "on"])
def test_a_table_that_wants_statistics_reads_fewer_row_groups(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    if kernels == "on":
        pytest.importorskip("numba")
        monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    with lake:
        table = lake.create_table("t", SCHEMA, settings={"value_statistics": True})
        for start in (0, 500):
            table.ingest(ROWS.slice(start, 500))
        for _ in ("ingested", "compacted"):
            for where, expression in PREDICATES:
                wanted = ROWS.filter(expression)
                for asked in (where, expression):
                    assert table.query(where=asked).read_all().equals(wanted)
                read, of = groups_read(lake, where)
                assert read <= 3 < of == 10
            table.compact()


def test_the_setting_holds_for_files_from_then_on(lake: Lake) -> None:
    with lake:
        table = lake.create_table("t", SCHEMA)
        table.ingest(ROWS.slice(0, 500))
        assert groups_read(lake, lakebed.field("n") == 12) == (5, 5)
        table.change_settings(value_statistics=True)
        table.ingest(ROWS.slice(500, 500))
        assert groups_read(lake, lakebed.field("n") == 12) == (5, 10)
        assert groups_read(lake, lakebed.field("n") == 72) == (6, 10)
        with pytest.raises(lakebed.errors.InvalidError, match="value for the setting"):
            table.change_settings(value_statistics="some")


@pytest.mark.parametrize("compiled", [False, True])
def test_only_short_values_have_bounds(compiled: bool) -> None:
    if compiled:
        pytest.importorskip("numba")
    long = ROWS.set_column(2, arrow_schema(SCHEMA).field(2), pa.array(["z" * 9_000] * len(ROWS)))
    for rows, lacking in (
        (ROWS, {"raw", "l.list.element"}),
        (long, {"raw", "l.list.element", "state"}),
    ):
        file = file_of(SCHEMA, [rows], compiled=compiled, value_statistics=True)
        with pq.ParquetFile(pa.BufferReader(file), page_checksum_verification=True) as parquet:
            assert parquet.read().equals(rows)
            row_group = parquet.metadata.row_group(0)
            told = {
                row_group.column(place).path_in_schema: row_group.column(place).statistics
                for place in range(row_group.num_columns)
            }
        assert {n for n, s in told.items() if s is None or not s.has_min_max} == lacking
        assert (told["n"].min, told["n"].max, told["n"].null_count) == (0, 99, 143)
