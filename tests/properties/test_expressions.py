"""What is understood of an expression of Arrow, held against Arrow's own filter."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed import schema_of
from lakebed.processing.predicate_masks import kept
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading.expressions.implied import implied_by

SCHEMA = schema_of(
    row_keys={"id": "string", "at": "timestamp[us, UTC]"},
    values={
        "n": "int64?",
        "small": "int8?",
        "wide": "uint32?",
        "x": "float64?",
        "single": "float32?",
        "flag": "bool?",
        "day": "date32?",
        "hour": "time64[us]?",
        "naive": "timestamp[us]?",
        "price": "decimal128(9,2)?",
        "raw": "binary?",
        "text": "string?",
        "list": {"list": "int32"},
    },
)
COLUMNS = arrow_schema(SCHEMA)
_TEXTS = ["", "a", "ab", "a%", "a_b", "a\\b", "a\nb", "\xe9", "b"]
_AT = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
_MICROS = [datetime.timedelta(microseconds=n) for n in (-1, 0, 1, 1_000_000)]
_DOMAINS: dict[str, list[Any]] = {
    "id": _TEXTS,
    "at": [_AT + d for d in _MICROS],
    "n": [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "small": [-128, -1, 0, 1, 127],
    "wide": [0, 1, 2**32 - 1],
    "x": [-1.5, -0.0, 0.0, 1.0, 0.1, float("nan"), float("inf")],
    "single": [0.0, 1.5, pa.scalar(0.1, pa.float32()).as_py(), float("nan")],
    "flag": [True, False],
    "day": [datetime.date(2013, 1, 1), datetime.date(2013, 1, 2)],
    "hour": [datetime.time(0), datetime.time(5, 0, 0, 1)],
    "naive": [(_AT + d).replace(tzinfo=None) for d in _MICROS],
    "price": [Decimal("-0.01"), Decimal("4.50"), Decimal("1.00")],
    "raw": [b"", b"a", b"\xff"],
    "text": _TEXTS,
}
_OTHER_TYPES: dict[str, list[pa.DataType]] = {
    "id": [pa.string(), pa.large_string(), pa.string_view()],
    "at": [pa.timestamp(u, "UTC") for u in ("us", "ns")] + [pa.timestamp("us", "Europe/Berlin")],
    "n": [pa.int64(), pa.float64(), pa.int8(), pa.decimal128(21, 1)],
    "small": [pa.int8(), pa.int64(), pa.float32()],
    "wide": [pa.uint32(), pa.int64(), pa.uint64()],
    "x": [pa.float64(), pa.float32(), pa.int64()],
    "single": [pa.float32(), pa.float64()],
    "day": [pa.date32(), pa.timestamp("us")],
    "hour": [pa.time64("us"), pa.time64("ns"), pa.time32("s")],
    "naive": [pa.timestamp("us"), pa.timestamp("ms")],
    "price": [pa.decimal128(9, 2), pa.decimal128(12, 3), pa.int32(), pa.float64()],
    "raw": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "text": [pa.string(), pa.string_view()],
}
_FIXED: dict[str, Any] = {"id": "a", "at": _AT, "list": [1]}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            name: st.sampled_from(values) if name in _FIXED else st.none() | st.sampled_from(values)
            for name, values in _DOMAINS.items()
        }
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def literals(draw: st.DrawFn, name: str) -> pa.Scalar:
    """Return a value of a field, perhaps of another type that Arrow compares with it. Never null:
    beside others such comparisons end the process, in Arrow 26."""
    kind = draw(st.sampled_from(_OTHER_TYPES.get(name, [COLUMNS.field(name).type])))
    value = draw(st.sampled_from(_DOMAINS[name]))
    own = pa.scalar(value, COLUMNS.field(name).type)
    try:
        return own.cast(kind)
    except pa.ArrowException:
        return own


@st.composite
def single_tests(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(_DOMAINS)))
    on, literal = pc.field(name), pc.scalar(draw(literals(name)))
    signs = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    sign = getattr(pc, draw(st.sampled_from(signs if name != "flag" else signs[:2])))
    kinds = ["compare", "mirrored", "is_in", "engine", "null"]
    kinds += ["text"] * (name in ("id", "text")) + ["bare"] * (name == "flag") + ["cast"]
    match draw(st.sampled_from(kinds)):
        case "compare":
            return sign(on, literal)
        case "mirrored":
            return sign(literal, on)
        case "cast":
            kind = draw(st.sampled_from(_OTHER_TYPES.get(name, [COLUMNS.field(name).type])))
            return sign(on.cast(kind), literal.cast(COLUMNS.field(name).type))
        case "is_in" | "engine" as kind:
            values = draw(st.lists(st.none() | st.sampled_from(_DOMAINS[name]), max_size=3))
            array = pa.array(values, COLUMNS.field(name).type)
            if kind == "is_in":
                skips = draw(st.booleans())
                return pc.is_in(on, value_set=array, skip_nulls=skips)
            return pc.if_else(on.is_valid(), on.isin(array), pa.scalar(None, pa.bool_()))
        case "null":
            chosen = [on.is_null(), on.is_valid(), on.is_null(nan_is_null=True)]
            return draw(st.sampled_from(chosen))
        case "bare":
            return on
        case _:
            part = draw(st.sampled_from([*_TEXTS, "%", "_", "a\\_%", "%b", "_%"]))
            makes = [pc.starts_with, pc.ends_with, pc.match_substring, pc.match_like]
            ignores = draw(st.booleans())
            return draw(st.sampled_from(makes))(on, part, ignore_case=ignores)


# No `if_else` of these: where one of them is null whatever the row, Arrow 26 ends the process.
EXPRESSIONS = st.recursive(
    single_tests(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=6,
)


@given(expression=EXPRESSIONS, rows=ROWS)
@settings(max_examples=200, deadline=None)
def test_what_is_understood_keeps_what_arrow_keeps(
    expression: pc.Expression, rows: list[dict[str, Any]]
) -> None:
    numbered = [row | {"list": [place]} for place, row in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, COLUMNS)
    try:
        wanted = table.filter(expression).column("list").to_pylist()
    except (pa.ArrowException, TypeError):
        return  # Arrow does not compute it, and neither would a query
    implied, is_exact = implied_by(expression, SCHEMA)
    if implied is None:
        return
    (batch,) = table.combine_chunks().to_batches()
    found = kept(batch, implied).column("list").to_pylist()
    assert [one for one in wanted if one not in found] == []
    if is_exact:
        assert found == wanted
