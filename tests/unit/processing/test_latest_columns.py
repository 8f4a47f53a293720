"""A query of a table that keeps the latest rows reads the columns that it needs, and no others."""

import itertools
from typing import Any

import pyarrow as pa
import pytest

from lakebed import AgeOff, Latest, Processing, field, schema_of
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, checked_processing
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema

SCHEMA = schema_of(
    row_keys={"k": "int64"},
    values={"a": "int64?", "version": "int64", "b": "string?", "gone": "bool?", "c": "int64?"},
)
LATEST = Latest("version", delete="gone")


def work(columns: set[str] | None, **of: Any) -> RowWork:  # noqa: ANN401 - parts of processing
    processing = checked_processing(Processing(latest=LATEST, **of), SCHEMA)
    return RowWork(SCHEMA, ProcessingPass(processing, Micros(0), "query"), columns)


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ({"k"}, ("k", "version", "gone")),
        ({"gone", "version"}, ("k", "version", "gone")),
        ({"a"}, ("k", "a", "version", "gone")),
        ({"b"}, ("k", "a", "version", "b", "gone")),
        ({"c"}, ("k", "a", "version", "b", "gone", "c")),
        (None, ("k", "a", "version", "b", "gone", "c")),
    ],
)
def test_columns_before_those_that_are_asked_for_tell_ties_apart(
    asked: set[str] | None, read: tuple[str, ...]
) -> None:
    assert work(asked).columns == read


def test_what_processing_looks_at_is_read_too() -> None:
    assert work({"a"}, filter=field("c") > 0).columns == ("k", "a", "version", "gone", "c")
    old = AgeOff("version", seconds=1, unit="s")
    assert work({"k"}, age_off=old).columns == ("k", "version", "gone")


@pytest.mark.parametrize("kept", [False, True])
def test_fewer_columns_give_the_values_of_the_same_rows(kept: bool) -> None:
    of: dict[str, Any] = {"filter": field("c") >= 0} if kept else {}
    values = (None, 1, 2)
    rows = [
        {"k": number // 27, "a": a, "version": 7, "b": str(b), "gone": None, "c": c}
        for number, (_, a, b, c) in enumerate(itertools.product(range(4), values, values, values))
    ]
    whole = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SCHEMA))

    def found(columns: set[str] | None) -> pa.Table:
        own = work(columns, **of)
        batches = [
            own.selected(whole.select(list(own.columns)).slice(at, 9)) for at in range(0, 108, 9)
        ]
        return pa.Table.from_batches(own.merged(batches))

    for size in (1, 2, 3):
        for names in itertools.combinations(("a", "version", "b", "gone", "c"), size):
            assert found({*names}).select(names).equals(found(None).select(names)), names
