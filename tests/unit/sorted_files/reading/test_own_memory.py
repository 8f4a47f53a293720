"""Few rows of many do not keep the memory of all."""

from pathlib import Path

import pyarrow as pa

import lakebed
from lakebed.sorted_files.reading.own_memory import COPIED_FROM_BYTES, own_memory

ROWS = 50_000


def many_rows() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": pa.array(range(ROWS)),
            "name": pa.array([f"name {i}" for i in range(ROWS)]),
            "list": pa.array([[i, None] for i in range(ROWS)]),
        }
    )


def test_a_slice_below_a_quarter_is_copied() -> None:
    batch = many_rows()
    few = batch.slice(100, ROWS // 5)
    own = own_memory(few)
    assert own.equals(few)
    assert own.get_total_buffer_size() < batch.get_total_buffer_size() / 4
    half = batch.slice(0, ROWS // 2)
    assert own_memory(half) is half
    assert own_memory(batch) is batch


def test_small_buffers_are_left() -> None:
    small = many_rows().slice(0, 10)
    small = pa.concat_batches([small]).slice(0, 1)
    assert small.get_total_buffer_size() < COPIED_FROM_BYTES
    assert own_memory(small) is small


def test_rows_that_a_query_gives_keep_their_own_memory(tmp_path: Path) -> None:
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", schema)
        table.ingest(pa.Table.from_batches([many_rows()]).select(["id", "name"]))
        for given in (
            table.query(limit=3),
            table.query(ranges={"id": (100, 103)}),
            table.query(ranges={"id": (100, 103)}, columns=["id"]),
        ):
            batches = list(given)
            assert sum(map(len, batches)) == 3
            assert sum(batch.get_total_buffer_size() for batch in batches) < COPIED_FROM_BYTES
