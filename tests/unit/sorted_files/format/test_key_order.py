from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.feed_errors import InvalidKeyError
from lakebed.model.keys import encode_key
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.key_encoding import (
    check_keys,
    encode_keys,
    encode_row,
    search,
    search_many,
    slice_key_range,
)
from lakebed.sorted_files.sorting.ordering import is_sorted, sorted_order
from tests.unit.sorted_files.lakes import KEY_VALUES, keys_batch

KeyedRows = tuple[Schema, list[tuple[Any, ...]]]


@st.composite
def keyed_rows(draw: st.DrawFn) -> KeyedRows:
    types = draw(st.lists(st.sampled_from(sorted(KEY_VALUES)), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(KEY_VALUES[t] for t in types)), max_size=30))
    if rows and draw(st.booleans()):
        rows += draw(st.lists(st.sampled_from(rows), max_size=5))
    return schema_of(row_keys={f"k{i}": t for i, t in enumerate(types)}), rows


@given(keyed_rows())
def test_keys_encoded_as_columns_are_those_encoded_one_by_one(given_rows: KeyedRows) -> None:
    schema, rows = given_rows
    batch = keys_batch(schema, rows)
    wanted = [encode_key(schema.row_keys, row) for row in rows]
    assert encode_keys(batch, schema.row_keys).to_pylist() == wanted
    assert [encode_row(batch, schema.row_keys, i) for i in range(len(rows))] == wanted
    for start in range(min(3, len(rows))):
        sliced = batch.slice(start)
        assert encode_keys(sliced, schema.row_keys).to_pylist() == wanted[start:]


@given(keyed_rows())
def test_rows_are_sorted_as_their_encoded_keys(given_rows: KeyedRows) -> None:
    schema, rows = given_rows
    batch = keys_batch(schema, rows)
    order = sorted_order(batch.columns)
    keys = [encode_key(schema.row_keys, rows[i]) for i in order]
    assert sorted(order) == list(range(len(rows)))
    assert keys == sorted(keys)
    assert is_sorted(batch.take(pa.array(order, pa.int64())).columns)
    given_keys = [encode_key(schema.row_keys, row) for row in rows]
    assert is_sorted(batch.columns) == (given_keys == sorted(given_keys))


@given(keyed_rows())
def test_arrow_and_duckdb_sort_as_encoded_keys_do(given_rows: KeyedRows) -> None:
    schema, rows = given_rows
    table = pa.Table.from_batches([keys_batch(schema, rows)])
    names = table.column_names
    wanted = sorted(encode_key(schema.row_keys, row) for row in rows)

    def keys_of(columns: pa.Table) -> list[bytes]:
        batches = columns.combine_chunks().to_batches()
        return [k for b in batches for k in encode_keys(b, schema.row_keys).to_pylist()]

    arrow_order = pc.sort_indices(table, [(name, "ascending") for name in names])
    assert keys_of(table.take(arrow_order)) == wanted
    raw = pa.table(
        [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns], names
    )
    if any(pa.types.is_date32(c.type) for c in table.columns):
        return  # DuckDB's dates reach less far than 32 bits of days
    with duckdb.connect() as connection:
        connection.register("given", raw)
        order_by = ", ".join(names)
        found = connection.sql(f"SELECT * FROM given ORDER BY {order_by}").to_arrow_table()
    assert keys_of(found.cast(raw.schema).cast(table.schema)) == wanted


@given(keyed_rows())
def test_smallest_and_largest_keys_are_those_of_parquets_statistics(given_rows: KeyedRows) -> None:
    schema, rows = given_rows
    if not rows:
        return
    table = pa.Table.from_batches([keys_batch(schema, rows)])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    row_group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    field = schema.row_keys[0]
    ends = [row_group.column(0).statistics.min_raw, row_group.column(0).statistics.max_raw]
    values = [
        e.decode() if str(field.type) == "string" and isinstance(e, bytes) else e for e in ends
    ]
    keys = [encode_key([field], row[:1]) for row in rows]
    assert [encode_key([field], [value]) for value in values] == [min(keys), max(keys)]


@given(keyed_rows(), st.binary(max_size=12), st.integers(0, 40))
def test_a_search_finds_the_place_of_any_bytes(
    given_rows: KeyedRows, junk: bytes, cut: int
) -> None:
    schema, rows = given_rows
    fields = schema.row_keys
    keys = sorted(encode_key(fields, row) for row in rows)
    rows = sorted(rows, key=lambda row: encode_key(fields, row))
    batch = keys_batch(schema, rows)
    for point in [junk, *keys[:3], *(k[:cut] for k in keys[:3])]:
        assert search(batch, fields, point) == sum(k < point for k in keys)
        assert search(batch, fields, point, after=True) == sum(k <= point for k in keys)
        kept = slice_key_range(batch, fields, KeyRange(junk, point))
        assert len(kept) == sum(junk <= k < point for k in keys)
    points = sorted({encode_key(fields[:1], row[:1]) for row in rows})
    assert search_many(batch, fields, points) == [sum(k < p for k in keys) for p in points]
    mixed = sorted([*points, junk, junk + b"\x00"])
    assert search_many(batch, fields, mixed) == [sum(k < p for k in keys) for p in mixed]


def test_a_key_may_have_1024_bytes_and_no_more() -> None:
    schema = schema_of(row_keys={"k": "string", "n": "int32"}, sort_keys={"b": "binary"})
    fits = 1024 - 4 - 2 - 2
    check_keys(keys_batch(schema, [("x" * fits, 1, b"")]), schema.key_fields)
    check_keys(keys_batch(schema, [("x" * (fits - 4), 1, b"\x00\x00")]), schema.key_fields)
    for row in [("x" * fits, 1, b"y"), ("x" * (fits - 3), 1, b"\x00\x00")]:
        with pytest.raises(InvalidKeyError, match="too long"):
            check_keys(keys_batch(schema, [("", 0, b""), row]), schema.key_fields)


def test_a_null_key_is_refused_with_its_field_and_how_many() -> None:
    schema = schema_of(row_keys={"k": "string"})
    batch = pa.record_batch({"k": pa.array(["a", None, None])})
    with pytest.raises(InvalidKeyError, match=r"field=k rows=2"):
        check_keys(batch, schema.key_fields)


def test_no_rows_are_in_order(tmp_path: Path) -> None:
    schema = schema_of(row_keys={"k": "string"})
    batch = keys_batch(schema, [])
    check_keys(batch, schema.key_fields)
    assert sorted_order(batch.columns).tolist() == []
    assert encode_keys(batch, schema.key_fields).to_pylist() == []
