"""Rows folded while they are merged, then by `processing`, are what `processing` alone makes."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.names import Micros
from lakebed.model.processing import AgeOff, Processing, ProcessingPass
from lakebed.model.schema import Schema, schema_of
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.sorting.engines import PLAIN
from lakebed.sorted_files.sorting.window_merge import Source

if not available():
    pytest.skip("kernels need numba", allow_module_level=True)

from lakebed.sorted_files.sorting.compiled_engine import COMPILED
from lakebed.sorted_files.sorting.compiled_merge import CompiledMerge
from lakebed.sorted_files.sorting.gathered_rows import kept

LONG, SHORT = st.integers(-(2**59), 2**59), st.integers(-(2**27), 2**27)
VALUES: dict[str, tuple[str, st.SearchStrategy[Any], list[str]]] = {
    "long": ("int64", LONG, ["sum", "min", "max"]),
    "perhaps": ("int64?", st.none() | LONG, ["sum", "min", "max"]),
    "short": ("int32?", st.none() | SHORT, ["sum", "min", "max"]),
    "day": ("date32", st.integers(0, 9), ["min", "max"]),
    "at": ("timestamp[us, UTC]?", st.none() | LONG, ["min", "max"]),
    "rows": ("int64", st.just(1), ["count"]),
    "text": ("string", st.sampled_from("ab"), ["max"]),
    "real": ("float64", st.sampled_from([0.5, -1.0]), ["min"]),
}
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-2, 2),
    "int32": st.integers(-2, 2),
    "string": st.sampled_from(["", "a", "a\0", "prefix-prefix-1", "prefix-prefix-2"]),
}


def work_of(schema: Schema, aggregate: dict[str, str]) -> RowWork:
    given_ = ProcessingPass(Processing(aggregate=aggregate), Micros(0), "compaction")
    return RowWork(schema, given_)


def sources(schema: Schema, runs: Sequence[Sequence[pa.RecordBatch]]) -> list[Source]:
    def source(run: Sequence[pa.RecordBatch]) -> Source:
        def open_() -> Iterator[pa.RecordBatch]:
            return iter(run)

        return Source(encode_row(run[0], schema.key_fields, 0), open_)

    return [source(run) for run in runs]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_folded_rows_are_what_processing_makes_of_all_rows(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(KEYS)))
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    sort_keys = data.draw(st.sampled_from([{"n": "int32"}, {}]))
    schema = schema_of(
        row_keys={"key": key}, sort_keys=sort_keys, values={n: VALUES[n][0] for n in names}
    )
    columns = arrow_schema(schema)
    aggregate = {name: data.draw(st.sampled_from(VALUES[name][2])) for name in names}
    keys = len(schema.key_fields)
    parts = [KEYS[key], st.integers(0, 1)][:keys]
    row = st.tuples(*parts, *(VALUES[name][1] for name in names))
    runs = []
    for rows in data.draw(st.lists(st.lists(row, min_size=1, max_size=12), max_size=5)):
        ordered = zip(
            *sorted(
                rows, key=lambda row: (row[0].encode() if key == "string" else row[0], row[1:keys])
            ),
            strict=True,
        )
        arrays = [pa.array(v, f.type) for v, f in zip(ordered, columns, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=columns)
        step = data.draw(st.sampled_from([1, 3, 12]))
        runs.append([batch.slice(at, step) for at in range(0, len(batch), step)])
    work = work_of(schema, aggregate)
    merge = CompiledMerge(
        sources(schema, runs),
        schema.key_fields,
        rows_max=data.draw(st.sampled_from([1, 4, 100])),
        folds=work.folds,
    )
    found = pa.Table.from_batches(work.merged(merge.batches()), columns)
    found.validate(full=True)
    plainly = PLAIN.merge(sources(schema, runs), schema.key_fields)
    assert found.equals(pa.Table.from_batches(work.merged(plainly), columns))


def table(rows: Sequence[tuple[int, int]], type_: str) -> tuple[Schema, pa.RecordBatch]:
    schema = schema_of(row_keys={"key": "int64"}, values={"n": type_})
    columns = arrow_schema(schema)
    values = zip(*rows, strict=True)
    arrays = [pa.array(v, f.type) for v, f in zip(values, columns, strict=True)]
    return schema, pa.RecordBatch.from_arrays(arrays, schema=columns)


@pytest.mark.parametrize(("type_", "most"), [("int64", 2**63 - 1), ("int32", 2**31 - 1)])
def test_a_sum_too_large_on_the_way_is_right_and_one_too_large_refused(
    type_: str, most: int
) -> None:
    def summed(*numbers: int) -> int:
        # Another key follows: the rows of a run that is left alone are no part of what is merged.
        first, *others = numbers
        schema, rows = table([(7, first), (9, 0), *((7, n) for n in others)], type_)
        work = work_of(schema, {"n": "sum"})
        runs = [[rows.slice(0, 2)], *([rows.slice(at, 1)] for at in range(2, len(rows)))]
        merged = COMPILED.merge(sources(schema, runs), schema.key_fields, work.folds)
        found: list[int] = pa.Table.from_batches(work.merged(merged)).column("n").to_pylist()
        return found[0]

    assert summed(most, 1, -1) == most
    assert summed(-most, most, most) == most
    with pytest.raises(InvalidError, match="does not fit"):
        summed(most, 1)


def test_rows_are_folded_inside_the_merge() -> None:
    schema, rows = table([(7, n) for n in range(1000)], "int64")
    merged = list(
        COMPILED.merge(
            sources(schema, [[rows.slice(0, 500)], [rows.slice(500)]]),
            schema.key_fields,
            {"n": "sum"},
        )
    )
    # Rows of equal keys come run by run; those of the run that is left alone stay.
    assert [len(batch) for batch in merged] == [1, 500]
    assert merged[0].column("n").to_pylist() == [sum(range(500))]


def test_what_cannot_be_folded_in_parts_is_left_to_processing() -> None:
    schema = schema_of(row_keys={"key": "int64"}, values={"n": "int64", "t": "int64"})
    assert work_of(schema, {"n": "last by t", "t": "max"}).folds is None
    assert work_of(schema, {"n": "count", "t": "max"}).folds == {"n": "sum", "t": "max"}
    expires = Processing(age_off=AgeOff("t", 1, unit="s"))
    assert RowWork(schema, ProcessingPass(expires, Micros(0), "compaction")).folds is None


@given(data=st.data())
def test_rows_kept_by_a_mask_are_those_that_arrow_keeps(data: st.DataObject) -> None:
    one = st.tuples(st.integers(0, 9), st.none() | st.sampled_from(["", "ab"]), st.booleans())
    rows = data.draw(st.lists(one, min_size=1, max_size=40))
    numbers, texts, flags = zip(*rows, strict=True)
    batch = pa.record_batch({"n": pa.array(numbers), "t": pa.array(texts, pa.string())})
    begin = data.draw(st.integers(0, len(rows) - 1))
    mask = pa.array(flags).slice(begin)
    assert kept(batch.slice(begin), mask).equals(batch.slice(begin).filter(mask))
