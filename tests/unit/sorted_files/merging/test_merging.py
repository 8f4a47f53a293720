import math
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.model.keys import encode_key
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.merging.memory_shares import overlap
from lakebed.sorted_files.sorting.window_merge import Source, merge
from tests.unit.sorted_files.lakes import EVERY_TYPE, SLEEPER, Lake, batch_of

NESTED = schema_of(
    row_keys={"k": "string"},
    sort_keys={"t": "int64"},
    values={
        "float": "float64?",
        "list": {"list": "int32"},
        "map": {"map": ["string", "int64"]},
        "struct": {"struct": [{"name": "a", "type": "string"}]},
    },
)
ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["", "a", "a\x00", "b", "\U0001f600"]),
        "t": st.integers(-3, 3),
        "float": st.none() | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
        "list": st.lists(st.none() | st.integers(-5, 5), max_size=3),
        "map": st.lists(st.tuples(st.text(max_size=2), st.none() | st.just(1)), max_size=2),
        "struct": st.fixed_dictionaries({"a": st.none() | st.text(max_size=2)}),
    }
)


def key_of(row: dict[str, Any]) -> tuple[bytes, int]:
    return row["k"].encode(), row["t"]


def as_told(row: dict[str, Any]) -> str:
    bits = None if row["float"] is None else struct.pack(">d", row["float"])
    return repr({**row, "float": bits})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    runs=st.lists(st.lists(ROW, max_size=12), max_size=50),
    step=st.integers(1, 5),
)
def test_a_merge_gives_every_row_once_in_the_order_of_keys(
    runs: list[list[dict[str, Any]]], step: int
) -> None:
    fields = NESTED.key_fields
    sources = []
    for rows in runs:
        ascending = sorted(rows, key=key_of)
        batch = batch_of(NESTED, ascending)
        batches = [batch.slice(at, step) for at in range(0, len(batch), step)]
        lowest = encode_key(fields, [ascending[0][n] for n in "kt"]) if rows else b""
        sources.append(Source(lowest, lambda b=batches: iter(b)))
    merged = [row for b in merge(sources, fields) for row in b.to_pylist()]
    everything = [row for rows in runs for row in rows]
    again = batch_of(NESTED, everything).to_pylist()
    assert [key_of(r) for r in merged] == sorted(key_of(r) for r in everything)
    assert sorted(map(as_told, merged)) == sorted(map(as_told, again))


def sleeper_rows(rng: random.Random, rows: int, keys: int) -> pa.RecordBatch:
    return batch_of(
        SLEEPER,
        [
            {
                "key": f"{rng.randrange(keys):04x}",
                "timestamp": rng.randrange(-20, 20),
                "value": f"{rng.randrange(5)}",
                "note": rng.choice([None, "", "n"]),
            }
            for _ in range(rows)
        ],
    )


@pytest.mark.parametrize(("runs", "keys"), [(1, 50), (2, 1), (10, 300), (50, 10_000)])
def test_merged_files_are_what_datafusion_sorts(tmp_path: Path, runs: int, keys: int) -> None:
    rng = random.Random(runs)
    lake = Lake(tmp_path)
    batches = [sleeper_rows(rng, rng.choice([1, 30, 400]), keys) for _ in range(runs)]
    parts = [lake.part(lake.sort_and_write(SLEEPER, [batch])) for batch in batches]
    ours = lake.read(SLEEPER, parts)
    context = datafusion.SessionContext()
    context.register_record_batches("given", [batches])
    order_by = 'ORDER BY "key", "timestamp", "value", "note" NULLS FIRST'
    theirs = context.sql(f"SELECT * FROM given {order_by}").collect()
    wanted = pa.Table.from_batches(theirs).cast(ours.schema)
    assert ours.select(["key", "timestamp"]).equals(wanted.select(["key", "timestamp"]))
    by_all = [(n, "ascending", "at_start") for n in ours.column_names]
    assert ours.sort_by([k[:2] for k in by_all]).num_rows == wanted.num_rows
    context.register_record_batches("ours", [ours.to_batches()])
    again = context.sql(f"SELECT * FROM ours {order_by}").collect()
    assert pa.Table.from_batches(again).cast(ours.schema).equals(wanted)


def test_a_part_is_opened_only_when_its_keys_come() -> None:
    opened: list[int] = []

    def source(number: int) -> Source:
        def open_() -> Iterator[pa.RecordBatch]:
            opened.append(number)
            yield batch_of(SIMPLE, [{"k": 10 * number + i} for i in range(5)])

        return Source(encode_key(SIMPLE.row_keys, [10 * number]), open_)

    merged = merge([source(n) for n in (2, 0, 1, 3)], SIMPLE.key_fields)
    assert next(merged).to_pylist()[0] == {"k": 0}
    assert opened == [0]
    assert [b.to_pylist()[0]["k"] for b in merged] == [10, 20, 30]
    assert opened == [0, 1, 2, 3]


def test_a_source_without_rows_is_left_out() -> None:
    sources = [Source(b"", lambda: iter(()), lambda: None), Source(b"", lambda: iter(()))]
    assert list(merge(sources, SIMPLE.key_fields)) == []


def test_overlap_counts_the_key_ranges_that_hold_one_key() -> None:
    assert overlap([]) == 0
    assert overlap([KeyRange(b"", b"b"), KeyRange(b"b", b"c"), KeyRange(b"c", None)]) == 1
    assert overlap([EVERYTHING, KeyRange(b"b", b"c"), EVERYTHING, KeyRange(b"c", None)]) == 3


SIMPLE: Schema = schema_of(row_keys={"k": "int64"})
COUNTING = pa.proxy_memory_pool(pa.default_memory_pool())
"""Kept for ever: what was allocated from it must not outlive it."""


def wide_batches(run: int, rows: int, width: int) -> list[pa.RecordBatch]:
    schema = arrow_schema(WIDE)
    return [
        pa.RecordBatch.from_arrays(
            [
                pa.array([f"{row:05d}-{run}"]),
                pa.array([random.Random(run * 1000 + row).randbytes(width)], pa.binary()),
            ],
            schema=schema,
        )
        for row in range(rows)
    ]


WIDE = schema_of(row_keys={"k": "string"}, values={"v": "binary"})


def test_rows_of_a_megabyte_are_merged_in_bounded_memory(tmp_path: Path) -> None:
    inputs, rows, width, memory = 8, 12, 1024 * 1024, 32 * 1024 * 1024
    lake = Lake(tmp_path, memory_bytes=memory)
    parts = [lake.part(lake.write(WIDE, wide_batches(run, rows, width))) for run in range(inputs)]
    usual = pa.default_memory_pool()
    pa.set_memory_pool(COUNTING)
    try:
        keys = [
            key for batch in lake.files.merge(WIDE, parts) for key in batch.column("k").to_pylist()
        ]
    finally:
        pa.set_memory_pool(usual)
    assert len(keys) == inputs * rows
    assert keys == sorted(keys)
    assert COUNTING.max_memory() < 2 * memory
    with lake.files.sorter(WIDE) as sorter:
        for run in range(inputs):
            for batch in wide_batches(run, rows, width):
                sorter.add(batch)
        written = lake.write(WIDE, sorter.sorted_batches(EVERYTHING))
    assert written is not None
    assert lake.read(WIDE, [lake.part(written)]).column("k").to_pylist() == keys


def test_every_type_is_merged_with_its_bits_and_nulls(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    empty = {"list": [], "map": [], "struct": {"a": None, "b": None}}
    key = {"i": 0, "t": 0}
    rows = [
        {"s": "null", **key, **empty},
        {"s": "b", **key, **empty, "list": [None], "float64": -0.0, "float32": math.nan},
        {
            "s": "c",
            **key,
            "list": [1, None, -1],
            "map": [("x", None), ("y", []), ("", [None, ""])],
            "struct": {"a": -0.0, "b": {"c": b"\x00"}},
            "decimal": None,
            "text": "",
            "bytes": b"",
        },
    ]
    batch = batch_of(EVERY_TYPE, rows)
    parts = [lake.part(lake.sort_and_write(EVERY_TYPE, [b])) for b in (batch, batch.slice(1))]
    found = lake.read(EVERY_TYPE, parts)
    wanted = pa.Table.from_batches([batch.take(pa.array([1, 1, 2, 2, 0]))])
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())
    assert found.schema.equals(arrow_schema(EVERY_TYPE), check_metadata=False)
