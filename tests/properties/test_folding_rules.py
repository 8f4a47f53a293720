"""The rules of folding, as one table of cases.

Values are folded in three places, and each is held to it: `processing.folding` by numpy,
`kernels.folding` while rows are merged, and the plain model of the memory backend, which the
simulation and other properties trust.

A case: the type of a field, a function, the values of rows with one key, and what becomes of them.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from lakebed.backends.memory import row_processing
from lakebed.errors import SumTooLargeError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.schema import Schema, schema_of
from lakebed.processing import folding
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.sorting.compiled_folding import can_fold
from lakebed.sorted_files.sorting.window_merge import Source

TOO_LARGE = SumTooLargeError
MOST = Decimal("9" * 36 + ".99")
MAP = {"map": ["string", "int64"]}


class Case(NamedTuple):
    """What a fold makes of values. wanted: the value, or the error."""

    type: Any
    function: str
    values: Sequence[Any]
    wanted: Any


def day(number: int) -> date:
    return date(2026, 1, number)


def hour(number: int) -> datetime:
    return datetime(2026, 1, 1, number, tzinfo=UTC)


CASES = [
    # Nulls are left out; nothing but nulls is null.
    Case("int64?", "sum", [None, 3, None, 4], 7),
    Case("int64?", "min", [None, 3, 4], 3),
    Case("int64?", "max", [3, None, -4], 3),
    *(Case("int64?", function, [None, None], None) for function in ("sum", "min", "max")),
    *(Case("int64?", function, [None], None) for function in ("sum", "min", "max")),
    Case("string?", "max", [None, None], None),
    Case("float64?", "sum", [None, None], None),
    # One value stays what it is.
    *(Case("int32", function, [-5], -5) for function in ("sum", "min", "max")),
    # A sum is exact, and right where it is too large only on the way.
    Case("int64", "sum", [2**63 - 1, 1, -1], 2**63 - 1),
    Case("int64", "sum", [-(2**63), -1, 1], -(2**63)),
    Case("int64", "sum", [2**63 - 1, 1], TOO_LARGE),
    Case("int64", "sum", [-(2**63), -1], TOO_LARGE),
    Case("int64", "sum", [2**62, 2**62, 2**62, 2**62], TOO_LARGE),
    Case("int32", "sum", [2**31 - 1, 1, -1], 2**31 - 1),
    Case("int32", "sum", [2**31 - 1, 1], TOO_LARGE),
    Case("int8", "sum", [100, 27], 127),
    Case("int8", "sum", [100, 28], TOO_LARGE),
    Case("uint8", "sum", [200, 55], 255),
    Case("uint8", "sum", [200, 56], TOO_LARGE),
    Case("decimal128(38,2)", "sum", [Decimal("1.05"), Decimal("-0.10")], Decimal("0.95")),
    Case("decimal128(38,2)", "sum", [MOST, Decimal("0.00")], MOST),
    Case("decimal128(38,2)", "sum", [MOST, Decimal("0.01"), Decimal("-0.01")], MOST),
    Case("decimal128(38,2)", "sum", [MOST, Decimal("0.01")], TOO_LARGE),
    Case("decimal128(4,2)", "sum", [Decimal("99.99"), Decimal("0.01")], TOO_LARGE),
    # The limits of a type are values like others.
    Case("int64", "min", [2**63 - 1, -(2**63)], -(2**63)),
    Case("int64?", "min", [None, 2**63 - 1], 2**63 - 1),
    Case("int64?", "max", [None, -(2**63)], -(2**63)),
    # Times and days are ordered.
    Case("date32", "min", [day(2), day(1)], day(1)),
    Case("timestamp[us, UTC]?", "max", [hour(1), None, hour(2)], hour(2)),
    # -0.0 is given as 0.0; NaN is above all numbers.
    Case("float64", "sum", [-0.0, -0.0], 0.0),
    Case("float64", "min", [nan, 1.5], 1.5),
    Case("float64", "max", [nan, 1.5], nan),
    Case("float64", "min", [nan, nan], nan),
    Case("float64", "sum", [inf, -inf], nan),
    Case("float32", "max", [-inf, 0.5], 0.5),
    # Text is ordered by its bytes, false is below true.
    Case("string", "max", ["a", "", "ab"], "ab"),
    Case("string", "min", ["\xe9", "z"], "z"),
    Case("binary", "min", [b"\xff", b"\x00"], b"\x00"),
    Case("bool", "max", [False, True], True),
    Case("bool", "min", [True, True], True),
    # Maps have the keys of all, ascending; their values are folded.
    Case(
        {"map": ["string", "int64"]},
        "sum",
        [[("b", 1)], [("a", 2), ("b", 5)]],
        [("a", 2), ("b", 6)],
    ),
    Case(MAP, "min", [[], []], []),
    Case({"map": ["string", "int8"]}, "sum", [[("a", 100)], [("a", 100)]], TOO_LARGE),
]


def schema_for(case: Case) -> Schema:
    return schema_of(row_keys={"key": "int64"}, values={"v": case.type})


def column(case: Case, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, arrow_schema(schema_for(case)).field("v").type)


def by_model(case: Case) -> pa.Array:
    field = schema_for(case).values[0]
    as_given = column(case, case.values)
    if pa.types.is_temporal(as_given.type):  # the model's times are numbers
        width = pa.int32() if as_given.type.bit_width == 32 else pa.int64()
        found = row_processing.folded(
            as_given.view(width).to_pylist(), case.function, field, field.type
        )
        return pa.array([found], width).view(as_given.type)
    found = row_processing.folded(as_given.to_pylist(), case.function, field, field.type)
    return column(case, [found])


def by_numpy(case: Case) -> pa.Array:
    """Fold them as the second of three groups: what lies around must not matter."""
    values = column(case, [case.values[0], *case.values, case.values[-1]])
    starts = np.array([0, 1, 1 + len(case.values)])
    found = folding.folded(values, starts, case.function, "v")
    found.validate(full=True)
    return found[1:2]


def by_kernels(case: Case) -> pa.Array:
    """Merge a file for each value, and let numpy finish what was not folded on the way."""
    from lakebed.sorted_files.sorting.compiled_engine import COMPILED

    schema = schema_for(case)
    if not can_fold(arrow_schema(schema), ["key"], {"v": case.function}):
        pytest.skip("kernels leave it to numpy")
    keys = pa.array([7], pa.int64())
    batches = [
        pa.RecordBatch.from_arrays([keys, column(case, [value])], schema=arrow_schema(schema))
        for value in case.values
    ]

    def source(batch: pa.RecordBatch) -> Source:
        return Source(encode_row(batch, schema.key_fields, 0), lambda: iter([batch]))

    sources = [source(batch) for batch in batches]
    merged = COMPILED.merge(sources, schema.key_fields, {"v": case.function})
    found = pa.Table.from_batches(merged, arrow_schema(schema))["v"].combine_chunks()
    return folding.folded(found, np.array([0]), case.function, "v")


def same(found: pa.Array, wanted: pa.Array) -> bool:
    """Whether values are alike to the bit, but for what a NaN carries."""
    if not pa.types.is_floating(wanted.type):
        return bool(found.equals(wanted))
    return [repr(v) for v in found.to_pylist()] == [repr(v) for v in wanted.to_pylist()]


@pytest.mark.parametrize("fold", [by_model, by_numpy, by_kernels])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type}-{case.function}")
def test_each_place_that_folds_keeps_the_rules(
    case: Case, fold: Callable[[Case], pa.Array]
) -> None:
    if fold is by_kernels and not available():
        pytest.skip("kernels need numba")
    if case.wanted is TOO_LARGE:
        with pytest.raises(SumTooLargeError, match="does not fit its field"):
            fold(case)
    else:
        assert same(fold(case), column(case, [case.wanted]))


def test_kernels_fold_what_they_say_and_no_more() -> None:
    folded = {
        str(case.type)
        for case in CASES
        if can_fold(arrow_schema(schema_for(case)), ["key"], {"v": case.function})
    }
    assert folded == {"int64", "int64?", "int32", "int8", "date32", "timestamp[us, UTC]?"} - {
        "int8"
    }
