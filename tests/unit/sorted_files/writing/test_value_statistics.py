"""Bounds of values in files of tables that want them: predicates on values pass over row groups."""

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.lake import Lake
from lakebed.model.predicates.language import checked_predicate
from lakebed.processing.predicate_masks import kept
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading import lookup
from lakebed.sorted_files.sorting import engines
from lakebed.sorted_files.writing import writer_options
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


@pytest.fixture
def paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Row groups of ten pages with 20 rows each."""
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 200)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 20)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 20)
    return lakebed.connect(tmp_path / "lake")


FLAT = lakebed.schema_of(
    row_keys={"id": "int64"}, values={"n": "int64?", "state": "string", "x": "float64?"}
)
FLAT_ROWS = ROWS.select(["id", "n", "state", "x"]).cast(arrow_schema(FLAT))


@pytest.mark.parametrize("kernels", ["off", "on"])
def test_pages_are_passed_over_by_bounds_of_values(
    paged: Lake, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    if kernels == "on":
        pytest.importorskip("numba")
        monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    with paged as lake:
        table = lake.create_table("t", FLAT, settings={"value_statistics": True})
        for start in (0, 500):
            table.ingest(FLAT_ROWS.slice(start, 500))
        for _ in ("ingested", "compacted"):
            for where, expression in PREDICATES:
                wanted = FLAT_ROWS.filter(expression)
                for asked in (where, expression):
                    assert table.query(where=asked).read_all().equals(wanted)
                    found = table.scan(where=asked).read_all().sort_by("id")
                    assert found.equals(wanted)
                assert table.dataset().to_table(filter=expression).sort_by("id").equals(wanted)
                told = table.explain(where=where)
                ids = wanted["id"].to_pylist()
                pages = 4 * (ids[-1] // 20 - ids[0] // 20 + 1)
                assert (
                    pages <= told.pages_read <= pages + 2
                )  # a dictionary of `state` in each row group
                assert told.pages_read < told.pages
            table.compact()


def test_pages_are_not_looked_at_where_values_have_no_bounds(paged: Lake) -> None:
    with paged as lake:
        table = lake.create_table("t", FLAT)
        table.ingest(FLAT_ROWS)
        for where, expression in PREDICATES:
            assert table.query(where=where).read_all().equals(FLAT_ROWS.filter(expression))
            told = table.explain(where=where)
            assert (told.pages, told.row_groups_read) == (0, 5)


def test_a_range_of_keys_and_a_test_of_values_read_fewer_pages_than_the_range(paged: Lake) -> None:
    with paged as lake:
        table = lake.create_table("t", FLAT, settings={"value_statistics": True})
        table.ingest(FLAT_ROWS)
        asked = {"ranges": {"id": (0, 400)}, "where": lakebed.field("n") == 12}
        wanted = FLAT_ROWS.filter((pc.field("n") == 12) & (pc.field("id") < 400))
        assert table.query(**asked).read_all().equals(wanted)
        lean, whole = table.explain(**asked), table.explain(ranges={"id": (0, 400)})
        assert lean.pages_read == 4 + 1  # and the dictionary of `state`
        assert whole.pages_read == 80 + 2


def test_too_many_pages_are_read_as_row_groups(
    paged: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paged as lake:
        table = lake.create_table("t", FLAT, settings={"value_statistics": True})
        table.ingest(FLAT_ROWS)
        where, expression = PREDICATES[0]
        for name in ("TESTED_BYTES_MAX", "LOOKUP_BYTES_MAX", "LOOKUP_MEMORY_BYTES_MAX"):
            with monkeypatch.context() as patched:
                patched.setattr(lookup, name, 10)
                assert table.explain(where=where).pages == 0
                assert table.query(where=where).read_all().equals(FLAT_ROWS.filter(expression))
        assert table.explain(where=where).pages > 0


def test_a_nested_column_is_read_as_row_groups(paged: Lake) -> None:
    with paged as lake:
        table = lake.create_table("t", SCHEMA, settings={"value_statistics": True})
        table.ingest(ROWS)
        for where, expression in PREDICATES:
            assert table.query(where=where).read_all().equals(ROWS.filter(expression))
            assert table.explain(where=where).pages == 0
            assert table.explain(where=where, columns=["n", "state", "x"]).pages > 0


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_pages_rule_out_no_row_that_is_kept(paged: Lake, seed: int) -> None:
    rng = random.Random(seed)
    schema = lakebed.schema_of(
        row_keys={"k": "int32", "m": "string"},
        values={
            "f": "float64?",
            "g": "float32?",
            "b": "bool?",
            "d": "decimal128(9,2)",
            "s": "string?",
            "t": "timestamp[us]?",
            "u": "uint32?",
        },
    )
    floats = [None, float("nan"), 0.0, -0.0, 0.1, -7.5, float("inf")]
    texts = [None, "", "a", "ab", "z" * 63, "z" * 64, "z" * 70, "\u00e4", "\U0001f600"]

    def row(n: int) -> dict[str, Any]:
        near = n // 40  # rows that lie together have like values, and some pages only nulls
        return {
            "k": n // 5,
            "m": f"{n:04}",
            "f": None if near % 7 == 3 else floats[(near + rng.randrange(2)) % len(floats)],
            "g": rng.choice([near / 10, None]),
            "b": near % 3 == 0,
            "d": Decimal(near * 3 - 20).scaleb(-2),
            "s": texts[(near + rng.randrange(2)) % len(texts)],
            "t": near * 10**6,
            "u": (1 << 32) - 1 - near,
        }

    rows = pa.Table.from_pylist([row(n) for n in range(600)], schema=arrow_schema(schema))
    with paged as lake:
        table = lake.create_table("t", schema, settings={"value_statistics": True})
        table.ingest(rows)
        passed_over = 0
        for _ in range(25):
            one = row(rng.randrange(600))
            name = rng.choice("fgbdstum")
            field = lakebed.field(name)
            tests = [field.is_null(), field.is_not_null()]
            if one[name] is not None and one[name] == one[name]:
                tests += [field == one[name], field != one[name]]
                if name != "b":
                    tests += [field < one[name], field >= one[name]]
            where = rng.choice(tests)
            if rng.random() < 0.5:
                where = ~where if rng.random() < 0.5 else where & (lakebed.field("k") >= 60)
            wanted = kept(rows.combine_chunks().to_batches()[0], checked_predicate(where, schema))
            found = table.query(where=where).read_all()
            assert str(found.to_pylist()) == str(wanted.to_pylist())
            told = table.explain(where=where)
            passed_over += told.pages > told.pages_read
        assert passed_over > 5
