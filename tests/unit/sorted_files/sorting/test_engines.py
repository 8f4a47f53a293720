import os
import random
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.sorting.engines import PLAIN, Engine
from lakebed.sorted_files.sorting.window_merge import Source
from tests.tidy.source import ROOT
from tests.unit.sorted_files.lakes import EVERY_TYPE, KEY_VALUES, batch_of, keys_batch

pytest.importorskip("numba")

from lakebed.sorted_files.sorting.compiled_engine import COMPILED
from lakebed.sorted_files.sorting.compiled_merge import CompiledMerge

Runs = list[list[pa.RecordBatch]]
FEW: dict[str, Sequence[Any]] = {
    "string": [
        "",
        "a",
        "a\x00",
        "a\x00b",
        "sharedsharedshared",
        "sharedsharedshared\x00",
        "\U0001f600",
    ],
    "binary": [b"", b"\x00", b"\x00\x00", b"\xff", b"0123456701234567", b"01234567012345670"],
    "int32": [-(2**31), -1, 0, 1, 2**31 - 1],
    "date32": [-1, 0, 1],
    "int64": [-(2**63), -1, 0, 1, 2**63 - 1],
    "timestamp[us, UTC]": [-1, 0, 1],
}


def batches_of(
    engine: Engine, batches: list[pa.RecordBatch], schema: Schema, bytes_max: int = 1 << 30
) -> list[pa.RecordBatch]:
    rows = engine.sort(batches, schema.key_fields, bytes_max)
    found = [rows.batch(place) for place in range(len(rows.starts) - 1)]
    keys = [field.name for field in schema.key_fields]
    for place, batch in enumerate(found):
        assert rows.first(place).select(keys) == batch.slice(0, 1).select(keys)
    return found


def ascending(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    (table,) = [pa.Table.from_batches([b]) for b in batches_of(PLAIN, [batch], schema)]
    return table.combine_chunks().to_batches()[0]


def pieces(batch: pa.RecordBatch, step: int) -> list[pa.RecordBatch]:
    return [batch.slice(at, step) for at in range(0, len(batch), step)]


def runs_of(schema: Schema, batches: Sequence[pa.RecordBatch], step: int) -> Runs:
    return [pieces(ascending(batch, schema), step) for batch in batches if len(batch)]


def sources_of(runs: Runs, schema: Schema) -> list[Source]:
    fields = schema.key_fields
    return [Source(encode_row(r[0], fields, 0), partial(iter, r)) for r in runs]


def merged(engine: Engine, runs: Runs, schema: Schema) -> pa.Table:
    found = pa.Table.from_batches(engine.merge(sources_of(runs, schema), schema.key_fields))
    found.validate(full=True)
    return found


def told(table: pa.Table, keys: list[str], values: list[str]) -> list[str]:
    """Rows as texts in an order of their own: that of rows with equal keys is not promised."""
    numbers = [
        c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.select(keys)
    ]
    told_keys = zip(*(c.to_pylist() for c in numbers), strict=True)
    rows = zip(told_keys, table.select(values).to_pylist(), strict=True)
    return sorted(map(repr, rows))


def sorted_anew(engine: Engine, runs: Runs, schema: Schema) -> pa.Table:
    """Return the rows of all runs, which are given to be sorted in the order of the runs."""
    batches = [batch for run in reversed(runs) for batch in run]
    found = pa.Table.from_batches(batches_of(engine, batches, schema))
    found.validate(full=True)
    assert not batches
    return found


def hold_equal(runs: Runs, schema: Schema) -> None:
    """Merged and sorted: same columns, same order of keys, same rows."""
    wanted = merged(PLAIN, runs, schema)
    are_equal(merged(COMPILED, runs, schema), wanted, schema)
    if len(wanted) < 1000:
        are_equal(merged_in_small_batches(runs, schema), wanted, schema)
    are_equal(sorted_anew(COMPILED, runs, schema), wanted, schema)


def merged_in_small_batches(runs: Runs, schema: Schema) -> pa.Table:
    fields = schema.key_fields
    merge = CompiledMerge(sources_of(runs, schema), fields, rows_max=7, bytes_max=100)
    batches = list(merge.batches())
    assert max(map(len, batches)) <= max(7, *(len(b) for run in runs for b in run))
    return pa.Table.from_batches(batches)


def are_equal(ours: pa.Table, wanted: pa.Table, schema: Schema) -> None:
    assert ours.schema == wanted.schema
    keys = [field.name for field in schema.key_fields]
    assert ours.select(keys).equals(wanted.select(keys))
    if values := [name for name in ours.column_names if name not in keys]:
        assert told(ours, keys, values) == told(wanted, keys, values)


@st.composite
def keyed_runs(draw: st.DrawFn) -> tuple[Schema, Runs]:
    types = draw(st.lists(st.sampled_from(list(KEY_VALUES)), min_size=1, max_size=3))
    fields = {f"k{place}": type_ for place, type_ in enumerate(types)}
    sort_key = draw(st.booleans()) and len(types) > 1
    sort_keys = {f"k{len(types) - 1}": fields.pop(f"k{len(types) - 1}")} if sort_key else {}
    schema = schema_of(row_keys=fields, sort_keys=sort_keys)
    few = draw(st.booleans())
    row = st.tuples(*(st.sampled_from(FEW[t]) if few else KEY_VALUES[t] for t in types))
    runs = draw(st.lists(st.lists(row, min_size=1, max_size=10), min_size=1, max_size=50))
    batches = [keys_batch(schema, rows) for rows in runs]
    return schema, runs_of(schema, batches, draw(st.integers(1, 4)))


@settings(max_examples=300, deadline=None)
@given(keyed_runs())
def test_compiled_and_plain_engines_order_keys_alike(given: tuple[Schema, Runs]) -> None:
    hold_equal(given[1], given[0])


def hold_equal_without_some(runs: Runs, schema: Schema, share: float, seed: int) -> None:
    """Merged with masks, and merged without the rows that masks leave out: the same."""
    rng = random.Random(seed)
    masks: dict[int, pa.BooleanArray | None] = {}
    left: Runs = []
    for run in runs:
        left.append([])
        for batch in run:
            before = rng.randrange(3)
            bits = [rng.random() < share for _ in range(before + len(batch))]
            mask = masks[id(batch)] = pa.array(bits, pa.bool_()).slice(before)
            left[-1].append(batch.filter(mask))
            if share == 1:
                masks[id(batch)] = None
    sources = [
        msgspec.structs.replace(source, mask=lambda batch: masks[id(batch)])
        for source in sources_of(runs, schema)
    ]
    fields, columns = schema.key_fields, arrow_schema(schema)
    left = [filled for run in left if (filled := [batch for batch in run if len(batch)])]
    wanted = pa.Table.from_batches(PLAIN.merge(sources_of(left, schema), fields), columns)
    for merge in (
        CompiledMerge(sources, fields),
        CompiledMerge(sources, fields, rows_max=7, bytes_max=100),
    ):
        are_equal(pa.Table.from_batches(merge.batches(), columns), wanted, schema)


SHARES = (0, 0.05, 0.6, 0.95, 1)


@settings(max_examples=300, deadline=None)
@given(keyed_runs(), st.sampled_from(SHARES), st.integers(0, 9))
def test_rows_that_masks_leave_out_take_no_part(
    given: tuple[Schema, Runs], share: float, seed: int
) -> None:
    hold_equal_without_some(given[1], given[0], share, seed)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("count", [1, 3])
def test_masks_of_large_batches_leave_rows_out(share: float, count: int) -> None:
    schema = schema_of(row_keys={"k": "int64"}, values={"v": "string"})
    rng = random.Random(count)
    batches = [
        batch_of(schema, [{"k": rng.randrange(900), "v": f"{n}"} for n in range(1000)])
        for _ in range(count)
    ]
    hold_equal_without_some(runs_of(schema, batches, 333), schema, share, count)


VALUE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": KEY_VALUES["int32"],
    "uint8": st.integers(0, 255),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float32": st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("nan")]),
    "float64": st.floats(),
    "text": st.text(max_size=40),
    "bytes": st.binary(max_size=80),
}
NESTED = {
    "list": st.lists(st.none() | st.integers(-5, 5), max_size=3),
    "map": st.lists(
        st.tuples(st.text(max_size=2), st.lists(st.none() | st.text(max_size=2), max_size=2)),
        max_size=2,
    ),
    "struct": st.fixed_dictionaries({"a": st.none() | st.floats(), "b": st.none()}),
}
ROW = st.fixed_dictionaries(
    {
        "s": st.sampled_from(FEW["string"]),
        "i": st.integers(-2, 2),
        "t": st.integers(0, 2),
        **{name: st.none() | values for name, values in VALUE.items()},
        **NESTED,
    }
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_compiled_engines_keep_values_of_every_type_and_nulls(
    rows: list[list[dict[str, Any]]], step: int, cut: int
) -> None:
    """Slices begin inside a byte of the bits that tell nulls."""
    batches = [batch_of(EVERY_TYPE, [*r, *r]) for r in rows]
    sliced = [b.slice(min(cut, len(b) - 1)) for b in batches]
    hold_equal(runs_of(EVERY_TYPE, sliced, step), EVERY_TYPE)


WORDS = schema_of(row_keys={"k": "string"}, values={"v": "binary?", "n": "int64"})


@pytest.mark.parametrize(("runs", "keys", "step"), [(1, 9, 7), (10, 10**9, 997), (50, 300, 64)])
def test_orders_of_thousands_of_rows_are_right(runs: int, keys: int, step: int) -> None:
    rng = random.Random(runs)
    batches = []
    for _ in range(runs):
        rows = rng.randrange(1, 4000)
        words = [f"user/{rng.randrange(keys):010}" for _ in range(rows)]
        values = [rng.choice([None, b"", b"x" * rng.randrange(99)]) for _ in range(rows)]
        columns = [pa.array(words), pa.array(values, pa.binary()), pa.array(range(rows))]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(WORDS)))
    hold_equal(runs_of(WORDS, batches, step), WORDS)


SORTED = {
    "random": lambda rng: (rng.randrange(2**63), 0),
    "few": lambda rng: (rng.randrange(4), rng.randrange(-(2**40), 2**40)),
    "one": lambda _: (7, 7),
    "low bits": lambda rng: (rng.randrange(2), rng.randrange(9)),
    "ends": lambda rng: (rng.choice([-(2**63), 2**63 - 1]), rng.randrange(2)),
    "clusters": lambda rng: (2**50 * rng.randrange(9) + rng.randrange(9), 1),
}
NUMBERS = schema_of(row_keys={"a": "int64", "b": "int64"}, values={"n": "int32"})
DEEP = schema_of(row_keys={"k": "binary", "b": "int32"}, values={"n": "int32"})


@pytest.mark.parametrize("shape", SORTED)
@pytest.mark.parametrize("rows", [1, 2, 23, 24, 25, 5000])
def test_groups_of_any_size_are_sorted(shape: str, rows: int) -> None:
    rng = random.Random(rows)
    a, b = zip(*(SORTED[shape](rng) for _ in range(rows)), strict=True)
    columns = [pa.array(a), pa.array(b), pa.array(range(rows), pa.int32())]
    numbers = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(NUMBERS))
    long = [f"{'same' * 9}{x:x}{'same' * (x % 3)}".encode() for x in a]
    narrow = pa.array([x % 2**31 for x in b], pa.int32())
    columns = [pa.array(long, pa.binary()), narrow, pa.array(range(rows), pa.int32())]
    texts = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(DEEP))
    for schema, batch in ((NUMBERS, numbers), (DEEP, texts)):
        for step in (rows, 7):
            runs = [pieces(batch, step)]
            wanted = sorted_anew(PLAIN, runs, schema)
            are_equal(sorted_anew(COMPILED, runs, schema), wanted, schema)


@pytest.mark.parametrize("keys", [[b"", b"\0"], [b"a", b"a\0", b"a" + b"\0" * 9 + b"b", b"a\0\0"]])
def test_many_keys_that_differ_in_zeros_only_are_sorted(keys: list[bytes]) -> None:
    rng = random.Random(1)
    given = [rng.choice(keys) for _ in range(3000)]
    numbers = pa.array(range(3000), pa.int32())
    columns = [pa.array(given, pa.binary()), pa.array([0] * 3000, pa.int32()), numbers]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(DEEP))
    found = sorted_anew(COMPILED, [[batch]], DEEP).column("k").to_pylist()
    assert found == sorted(given)


@pytest.mark.parametrize(
    "letters", [b"a", b"ab", b"0123456789abcdef", b"\0\1\xff", bytes(range(256))]
)
@pytest.mark.parametrize("longest", [3, 40])
def test_texts_of_few_and_of_all_letters_are_sorted(letters: bytes, longest: int) -> None:
    rng = random.Random(longest)
    given = [bytes(rng.choices(letters, k=rng.randrange(longest))) for _ in range(3000)]
    rows = pa.array([0] * 3000, pa.int32())
    columns = [pa.array(given, pa.binary()), rows, rows]
    batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(DEEP))
    found = sorted_anew(COMPILED, [[batch.slice(0, 1000), batch.slice(1000)]], DEEP)
    assert found.column("k").to_pylist() == sorted(given)


@pytest.mark.parametrize("long", [1, 5000])
def test_sorted_rows_come_in_batches_of_so_many_bytes(long: int) -> None:
    rng = random.Random(long)
    batches = []
    for seed in range(5):
        words = [f"{rng.randrange(10**6):06}" for _ in range(700)]
        values = [b"x" * (long if rng.random() < 0.05 else 1) for _ in words]
        columns = [pa.array(words), pa.array(values, pa.binary()), pa.array([seed] * 700)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(WORDS)))
    wanted = pa.Table.from_batches(batches).sort_by("k")
    found = batches_of(COMPILED, batches, WORDS, bytes_max=8000)
    assert all(len(batch) == 1 or batch.nbytes <= 5 * 8000 for batch in found)
    assert len(found) > 9
    are_equal(pa.Table.from_batches(found), wanted, WORDS)


def test_what_offsets_cannot_hold_is_gathered_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebed.sorted_files.sorting.gathered_rows.BYTES_MAX", 1)
    monkeypatch.setattr("lakebed.sorted_files.sorting.gathered_rows.GatheredColumn", None)
    batch = pa.RecordBatch.from_pylist([{"k": "a", "v": b"", "n": 1}], arrow_schema(WORDS))
    assert merged(COMPILED, [[batch], [batch]], WORDS).num_rows == 2


def test_very_many_batches_are_for_the_plain_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebed.sorted_files.sorting.compiled_engine.SEGMENTS_MAX", 1)
    monkeypatch.setattr("lakebed.sorted_files.sorting.compiled_engine.sort_order", None)
    batch = pa.RecordBatch.from_pylist([{"k": "a", "v": b"", "n": 1}], arrow_schema(WORDS))
    assert sorted_anew(COMPILED, [[batch], [batch]], WORDS).num_rows == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_of_this_holds_with_bounds_checked() -> None:
    if os.environ.get("LAKEBED_KERNELS") == "checked":
        pytest.skip("these are the tests that the other process runs")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "LAKEBED_KERNELS": "checked"}
    subprocess.run(command, env=environment, cwd=ROOT, check=True)
