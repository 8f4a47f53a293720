"""Each form of a predicate, and the boxes of row keys that hold what it keeps."""

from itertools import product

import pytest

from lakebed import field, predicate_from_text, schema_of
from lakebed.model.predicates import key_boxes
from lakebed.model.predicates.key_boxes import (
    BOXES_MAX,
    UNLIKE_BOXES_MAX,
    boxes_of,
    met_boxes,
)
from lakebed.model.predicates.language import And, Predicate, checked_predicate
from lakebed.model.ranges import EVERYTHING, Box, Range, box_of, box_of_key

SCHEMA = schema_of(
    row_keys={"a": "string", "n": "int32"}, sort_keys={"at": "int64"}, values={"v": "int64?"}
)
LARGEST = 2**31 - 1


def boxes(predicate: Predicate) -> list[Box]:
    return list(boxes_of(checked_predicate(predicate, SCHEMA), SCHEMA))


def a(least: str | None = None, most: str | None = None, **of: bool) -> Box:
    return box_of(SCHEMA, {"a": Range(least, most, **of)})


def n(least: int | None = None, most: int | None = None, **of: bool) -> Box:
    return box_of(SCHEMA, {"n": Range(least, most, **of)})


def keys(*of: object) -> list[Box]:
    return [box_of_key(SCHEMA, key) for key in of]


ALL = [box_of(SCHEMA, {})]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 'x'", keys("x")),
        ("a == 'x' and n = 3", keys(("x", 3))),
        ("n = 3", [n(3, 3, max_inclusive=True)]),
        ("a < 'x'", [a(None, "x")]),
        ("a <= 'x'", [a(None, "x", max_inclusive=True)]),
        ("a > 'x'", [a("x", None, min_inclusive=False)]),
        ("a >= 'x'", [a("x")]),
        ("a != 'x'", [a(None, "x"), a("x", None, min_inclusive=False)]),
        ("not a = 'x'", [a(None, "x"), a("x", None, min_inclusive=False)]),
        ("not a != 'x'", keys("x")),
        ("not a < 'x'", [a("x")]),
        ("not (a < 'x' or a >= 'y')", [a("x", "y")]),
        ("not (a >= 'x' and a < 'y')", [a(None, "x"), a("y")]),
        ("a between 'x' and 'y'", [a("x", "y", max_inclusive=True)]),
        ("a not between 'x' and 'y'", [a(None, "x"), a("y", None, min_inclusive=False)]),
        ("a between 'y' and 'x'", []),
        ("a in ('y', 'x', 'y')", keys("x", "y")),
        ("a not in ('x')", [a(None, "x"), a("x", None, min_inclusive=False)]),
        ("a in ('x', 'y') and a in ('y', 'z')", keys("y")),
        ("a in ('x', 'y') and n in (2, 1)", keys(("x", 1), ("x", 2), ("y", 1), ("y", 2))),
        ("a = 'x' or a = 'y' or a > 'z'", [*keys("x", "y"), a("z", None, min_inclusive=False)]),
        ("a = 'x' and (n = 1 or n = 2)", keys(("x", 1), ("x", 2))),
        ("a = 'x' or n = 1", [*keys("x"), n(1, 1, max_inclusive=True)]),
        ("a = 'x' and a = 'y'", []),
        (f"n > {LARGEST}", []),
        (f"n >= {LARGEST}", [n(LARGEST)]),
        (f"n <= {LARGEST}", ALL),
        ("a is null", []),
        ("a is not null", ALL),
        ("not a is null", ALL),
        ("a is null or n = 1", [n(1, 1, max_inclusive=True)]),
        ("a like 'x%'", [a("x", "y")]),
        ("a like 'x%y_'", [a("x", "y")]),
        ("a like 'x'", keys("x")),
        ("a like '%'", ALL),
        ("a like '%x'", ALL),
        ("a like 'x!%%' escape '!'", [a("x%", "x&")]),
        ("a not like 'x%'", [a(None, "x"), a("y")]),
        ("a not like 'x'", [a(None, "x"), a("x", None, min_inclusive=False)]),
        ("a not like 'x%y'", ALL),
        ("a not like '%'", []),
        ("v = 1", ALL),
        ("at = 1", ALL),
        ("not v = 1", ALL),
        ("v is null and a = 'x'", keys("x")),
        ("v = 1 or a = 'x'", ALL),
        ("not (v = 1 or a = 'x')", [a(None, "x"), a("x", None, min_inclusive=False)]),
        ("not (v = 1 and a = 'x')", ALL),
    ],
)
def test_each_form_has_its_boxes(text: str, wanted: list[Box]) -> None:
    assert sorted(boxes(predicate_from_text(text)), key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize(
    ("prefix", "above"),
    [("a", "b"), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000"), ("é", "ê")],
)
def test_a_prefix_ends_where_the_next_text_begins(prefix: str, above: str) -> None:
    assert boxes(field("a").starts_with(prefix)) == [a(prefix, above)]


def test_behind_the_last_character_a_prefix_has_no_end() -> None:
    assert boxes(field("a").starts_with("\U0010ffff" * 2)) == [a("\U0010ffff" * 2)]


def test_too_many_boxes_become_fewer_that_hold_them() -> None:
    many = field("a").is_in([f"{i:05}" for i in range(5_000)])
    assert len(boxes(many)) == 5_000
    both = boxes(many & field("n").is_in([1, 2, 7]))
    assert len(both) == 5_000
    assert {box[1] for box in both} == {n(1, 7, max_inclusive=True)[1]}


def test_work_is_bounded_where_alternatives_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    met, calls = key_boxes._met_ranges, []
    monkeypatch.setattr(key_boxes, "_met_ranges", lambda *two: calls.append(0) or met(*two))
    of_a, of_n = field("a"), field("n")
    either = [
        (of_a == f"{i}") & (of_n > i) | (of_a != f"{i}") & (of_n < 1_000 - i) for i in range(140)
    ]
    found = boxes(And(tuple(either)))
    assert any(box[0].contains(b"5\0\0") for box in found)
    assert len(found) <= BOXES_MAX
    assert len(calls) < 1_000_000


def test_boxes_that_are_no_ranges_of_whole_keys_stay_few() -> None:
    some = (field("a") > "x") & field("n").is_in(list(range(0, 2 * UNLIKE_BOXES_MAX, 2)))
    assert len(boxes(some)) == UNLIKE_BOXES_MAX
    more = (field("a") > "x") & field("n").is_in(list(range(0, 2 * UNLIKE_BOXES_MAX + 2, 2)))
    assert boxes(more) == [a("x", None, min_inclusive=False)]


def test_boxes_of_two_kinds_meet() -> None:
    some, others = keys("x", ("y", 1), "z"), [n(0, 5), a("z")]
    wanted = [
        tuple(one.meets(other) for one, other in zip(first, second, strict=True))
        for first, second in product(some, others)
    ]
    assert list(met_boxes(some, others)) == [
        box for box in wanted if not any(r.is_empty for r in box)
    ]
    assert met_boxes(some, []) == met_boxes([], others) == ()
    assert list(met_boxes(ALL, others)) == others


def test_many_boxes_meet_in_bounded_time() -> None:
    some = keys(*[(f"{i}", i) for i in range(9_000)])
    others = [n(i, i + 1) for i in range(0, 8_000, 2)]
    met = met_boxes(some, others)
    assert [box[1] for box in met] == [box[1] for box in some[:7_999]]
    alone = schema_of(row_keys={"n": "int64"})
    even = [box_of_key(alone, i) for i in range(0, 20_000, 2)]
    third = [box_of_key(alone, i) for i in range(0, 30_000, 3)]
    assert list(met_boxes(even, third)) == [box_of_key(alone, i) for i in range(0, 20_000, 6)]
    assert EVERYTHING not in met[0]
