"""What bounds rule out is never kept, and what they can rule out they do."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from lakebed import field, schema_of
from lakebed.model.predicates.bounds import FieldBounds, may_keep
from lakebed.model.predicates.language import Like, Predicate, checked_predicate
from lakebed.processing.predicate_masks import mask_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading.expressions.bounds import expression_may_keep

SCHEMA = schema_of(row_keys={"id": "int64"}, values={"n": "int8?", "x": "float64?", "s": "string?"})
_VALUES: dict[str, list[Any]] = {
    "n": [-1, 0, 1, 2],
    "x": [-0.0, 0.0, 1.5, math.inf, math.nan],
    "s": ["", "a", "ab", "b", "\xe9"],
}
ROWS = st.lists(
    st.fixed_dictionaries({n: st.none() | st.sampled_from(v) for n, v in _VALUES.items()}),
    min_size=1,
    max_size=6,
)


@st.composite
def _tests(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(_VALUES)))
    literals = st.sampled_from([v for v in _VALUES[name] if v == v])  # noqa: PLR0124 - not NaN
    on, value = field(name), draw(literals)
    if name == "s" and draw(st.booleans()):
        return on.like(draw(st.sampled_from(["%", "a%", "a", "_", "a_%", "\xe9%", "\U0010ffff%"])))
    return draw(
        st.sampled_from(
            [
                *(on == value, on != value, on < value, on <= value, on > value, on >= value),
                *(on.is_in([value, draw(literals)]), on.is_null(), on.is_not_null()),
            ]
        )
    )


PREDICATES = st.recursive(
    _tests(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=5,
)


def bounds_of(rows: list[dict[str, Any]], name: str) -> FieldBounds:
    values = [row[name] for row in rows if row[name] is not None]
    numbers = [v for v in values if v == v]  # noqa: PLR0124 - statistics leave NaN out
    return FieldBounds(
        min(numbers, default=None),
        max(numbers, default=None),
        may_be_null=len(values) < len(rows),
        may_have_values=bool(values),
    )


@given(rows=ROWS, predicate=PREDICATES, hidden=st.sets(st.sampled_from(sorted(_VALUES))))
def test_rows_that_are_kept_are_never_ruled_out(
    rows: list[dict[str, Any]], predicate: Predicate, hidden: set[str]
) -> None:
    checked = checked_predicate(predicate, SCHEMA)
    numbered = [row | {"id": 0} for row in rows]
    batch = pa.RecordBatch.from_pylist(numbered, schema=arrow_schema(SCHEMA))
    if mask_of(batch, checked).true_count:
        assert may_keep(
            checked, lambda name: FieldBounds() if name in hidden else bounds_of(rows, name)
        )


@st.composite
def _expressions(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(_VALUES)))
    on, value = pc.field(name), draw(st.sampled_from(_VALUES[name]))
    return draw(
        st.sampled_from(
            [
                *(on == value, on != value, on < value, on <= value, on > value, on >= value),
                *(on.isin([value]), on.isin([value, None]), on.is_null(), ~on.is_null()),
                pc.if_else(on < value, on.is_null(), on != value),
                pc.coalesce(on, pc.scalar(value)) == value,
            ]
        )
    )


EXPRESSIONS = st.recursive(
    _expressions(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=5,
)


@given(rows=ROWS, expression=EXPRESSIONS, hidden=st.sets(st.sampled_from(sorted(_VALUES))))
def test_rows_that_an_expression_keeps_are_never_ruled_out(
    rows: list[dict[str, Any]], expression: pc.Expression, hidden: set[str]
) -> None:
    columns = pa.schema([column for column in arrow_schema(SCHEMA) if column.name in _VALUES])
    if pa.Table.from_pylist(rows, columns).filter(expression).num_rows:
        assert expression_may_keep(
            expression,
            columns,
            lambda name: FieldBounds() if name in hidden else bounds_of(rows, name),
        )


@given(rows=ROWS, predicate=_tests())
def test_what_one_test_cannot_keep_is_ruled_out(
    rows: list[dict[str, Any]], predicate: Predicate
) -> None:
    checked = checked_predicate(predicate, SCHEMA)
    name = checked.field  # type: ignore[union-attr]  # one test has one field
    several = {repr(row[name]) for row in rows if row[name] is not None}
    if len(several) == 1:  # then the bounds say all
        numbered = [row | {"id": 0} for row in rows]
        batch = pa.RecordBatch.from_pylist(numbered, schema=arrow_schema(SCHEMA))
        possible = may_keep(checked, lambda name: bounds_of(rows, name))
        is_wild = isinstance(checked, Like) and "_" in checked.pattern
        if not possible or not (name == "x" or is_wild):  # NaN is outside of bounds
            assert possible == bool(mask_of(batch, checked).true_count)
