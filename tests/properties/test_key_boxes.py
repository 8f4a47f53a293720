"""Boxes of a predicate hold every row that it keeps, and no other where it tests row keys only."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed import field
from lakebed.model.keys import encode_field, key_value
from lakebed.model.predicates.key_boxes import boxes_of, met_boxes
from lakebed.model.predicates.language import (
    And,
    Like,
    Not,
    Or,
    Predicate,
    checked_predicate,
    fields_of,
)
from lakebed.model.ranges import Box, box_of
from lakebed.model.schema import Schema
from tests.properties.tables import Row, kept_rows, key_values, predicates, ranges, rows, schemas


@st.composite
def key_tests(draw: st.DrawFn, schema: Schema) -> Predicate:
    """Return one test of a row key, or two."""
    of = draw(st.sampled_from(schema.row_keys))
    on, values = field(of.name), st.sampled_from(key_values(schema, of.name))
    value, other = draw(values), draw(values)
    kinds: list[Predicate] = [
        *(on == value, on != value, on < value, on <= value, on > value, on >= value),
        *(on.is_in([value, other]), on.between(value, other), on.is_null(), on.is_not_null()),
    ]
    if str(of.type) == "string":
        wild = draw(st.sampled_from(["%", "_", "%_", "%a", "_%", ""]))
        kinds += [on.starts_with(value), on.like(value[:5] + wild), on.like(wild + value[:5])]
    return draw(st.sampled_from(kinds))


def trees(schema: Schema, given: list[Row]) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        key_tests(schema) | predicates(schema, given),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda some: And(tuple(some))),
            st.lists(inner, min_size=1, max_size=3).map(lambda some: Or(tuple(some))),
            inner.map(Not),
        ),
        max_leaves=8,
    )


def is_in(schema: Schema, row: Row, boxes: tuple[Box, ...]) -> bool:
    key = [encode_field(f.type, key_value(f, row[f.name])) for f in schema.row_keys]
    return any(all(r.contains(k) for r, k in zip(box, key, strict=True)) for box in boxes)


def is_exact(predicate: Predicate) -> bool:
    """Whether ranges say all that the tests of keys say."""
    match predicate:
        case And(parts) | Or(parts):
            return all(map(is_exact, parts))
        case Not(part):
            return is_exact(part)
        case Like(_, pattern, escape):
            return escape is None and not set("%_") & set(pattern.removesuffix("%"))
        case _:
            return True


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_every_row_that_is_kept_lies_in_a_box(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    some = data.draw(rows(schema, rows_max=12))
    predicate = data.draw(trees(schema, some))
    checked = checked_predicate(predicate, schema)
    boxes = boxes_of(checked, schema)
    kept = kept_rows(schema, some, predicate)
    inside = [row for row in some if is_in(schema, row, boxes)]
    chosen = {id(row) for row in inside}
    assert all(id(row) in chosen for row in kept)
    if fields_of(checked) <= {f.name for f in schema.row_keys} and is_exact(checked):
        assert [id(row) for row in kept] == [id(row) for row in inside]


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_what_lies_in_a_box_of_each_lies_in_one_of_both(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    some = data.draw(rows(schema, rows_max=12))
    two: list[tuple[Box, ...]] = [
        tuple(box_of(schema, given) for given in data.draw(st.lists(ranges(schema), max_size=3)))
        for _ in range(2)
    ]
    met = met_boxes(*two)
    for row in some:
        both: Any = all(is_in(schema, row, boxes) for boxes in two)
        assert is_in(schema, row, met) == both
