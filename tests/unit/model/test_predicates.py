"""What is no predicate is refused with a reason, and never evaluated."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed import field, predicate_from_json, predicate_from_text, schema_of
from lakebed.errors import InvalidError
from lakebed.model.predicates.language import (
    DEPTH_MAX,
    TESTS_MAX,
    VALUES_MAX,
    And,
    Compare,
    Predicate,
    checked_predicate,
    fields_of,
    predicate_json,
)
from lakebed.model.processing import Processing, checked_processing
from lakebed.processing.predicate_masks import kept

SCHEMA = schema_of(
    row_keys={"id": "string"},
    values={
        "fare": "float64?",
        "count": "int8?",
        "raw": "binary?",
        "flag": "bool?",
        "day": "date32?",
        "at": "timestamp[us, UTC]?",
        "local": "timestamp[us]?",
        "hour": "time64[us]?",
        "price": "decimal128(4,2)?",
        "tags": {"list": "string"},
        "ok?": "bool",
    },
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "expected the name of a field"),
        ("fare", "expected =, !="),
        ("fare >=", "expected a number"),
        ("fare >= 4 note", "expected `and`, `or`, or the end"),
        ("fare = null", "expected a number"),
        ("(fare = 4", "expected `)`"),
        ("fare = 4)", "the end"),
        ("fare in 4", "expected `(`"),
        ("fare in ()", "expected a number"),
        ("fare is 4", "expected `null`"),
        ("fare not = 4", "expected =, !="),
        ("fare = = 4", "expected a number"),
        ("fare between 4", "expected `and`"),
        ("fare between 4 or 5", "expected `and`"),
        ("fare not between 4 and", "expected a number"),
        ("id like ab", "single quotes"),
        ('id like "ab%"', "single quotes"),
        ("id not like 4", "single quotes"),
        ("id like 'ab%' escape !", "single quotes"),
        ("id ilike 'ab%'", "expected =, !="),
        ("id like 'a%' escape", "single quotes"),
        ("day = date 2013", "single quotes"),
        ("null = 4", "expected the name of a field"),
        ("4 = 4", "expected the name of a field"),
        ("fare = 'open", "single quotes"),
        ("fare = 4; drop", "single quotes"),
        ("fare = 1_000", "single quotes"),
        ("fare = __import__('os')", "expected a number"),
        ("fare = " + "9" * 101, "at most 100 digits"),
        ("fare = 4 or " * 2_000 + "fare = 4", "at most 20000 characters"),
        ("(" * 5_000 + "fare = 4" + ")" * 5_000, "deep"),
        ("not " * 4_000 + "fare = 4", "deep"),
    ],
)
def test_text_that_is_no_predicate(text: str, wanted: str) -> None:
    with pytest.raises(InvalidError) as raised:
        predicate_from_text(text)
    assert wanted in str(raised.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("fara > 4", "did you mean 'fare'"),
        ("fare = 'x'", "give a number"),
        ("fare = true", "give a number"),
        ("count = 4.5", "give an integer"),
        ("count = 128", "give -128 to 127"),
        ("flag = 1", "give true or false"),
        ("flag < true", "use = or !="),
        ("id = 4", "give text"),
        ("raw = 'zz'", "hex digits"),
        ("raw = 'abc'", "hex digits"),
        ("day = '2013-13-01'", "write '2013-01-31'"),
        ("day = '2013-01-01T00:00:00'", "write '2013-01-31'"),
        ("at = '2013-01-01T00:00:00'", "with an offset"),
        ("local = '2013-01-01T00:00:00Z'", "without an offset"),
        ("at = 'today'", "write '2013-01-31T05:00:00Z'"),
        ("hour = '25:00'", "write '05:00:00'"),
        ("hour = -1", "give 0 to 86399999999"),
        ("price = 4.567", "up to 2 digits"),
        ("price = 100", "up to 2 digits"),
        ("price = 'much'", "up to 2 digits"),
        ("tags = 'a'", "is null"),
        ("tags in ('a')", "is null"),
        ("tags like 'a'", "only text has patterns"),
        ("fare like '4%'", "only text has patterns"),
        ("raw like 'ff%'", "only text has patterns"),
        ("id like 'a!' escape '!'", "ends with its escape"),
        ("id like 'a' escape '!!'", "give one character"),
        ("id like 'a' escape ''", "give one character"),
        (f"id like '{'a' * 1_001}'", "at most 1000 characters"),
        ("fare between 'x' and 4", "give a number"),
        ("fara between 3 and 4", "did you mean 'fare'"),
        (" or ".join(["fare = 4"] * TESTS_MAX), "use `in`"),
    ],
)
def test_a_literal_that_does_not_fit(text: str, wanted: str) -> None:
    with pytest.raises(InvalidError) as raised:
        checked_predicate(predicate_from_text(text), SCHEMA)
    assert wanted in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "fare > 4",
        {"test": "eval", "field": "fare"},
        {"test": "compare", "field": "fare", "is": "like", "value": 4},
        {"test": "compare", "field": "fare", "value": 4},
        {"test": "compare", "field": 4, "is": "=", "value": 4},
        {"test": "null", "field": "fare", "more": 1},
        {"test": "like", "field": "id"},
        {"test": "like", "field": "id", "pattern": 4},
        {"test": "like", "field": "id", "pattern": "a", "escape": 4},
    ],
)
def test_json_that_is_no_predicate(value: object) -> None:
    with pytest.raises(InvalidError, match="not a predicate"):
        predicate_from_json(value)


def test_json_that_is_far_too_deep() -> None:
    nested: dict[str, Any] = {"test": "null", "field": "fare"}
    for _ in range(DEPTH_MAX + 1):
        nested = {"test": "not", "part": nested}
    with pytest.raises(InvalidError, match="too large"):
        checked_predicate(predicate_from_json(nested), SCHEMA)
    for _ in range(10_000):
        nested = {"test": "not", "part": nested}
    with pytest.raises(InvalidError, match="not a predicate"):
        predicate_from_json(nested)


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        (field("fare") == None, "fare is null"),  # noqa: E711  what a beginner writes
        (Compare("fare", "=", math.nan), "nothing equals NaN"),
        (field("fare") == 10**400, "a float64 can hold"),
        (field("fare").is_in([]), "1 to"),
        (field("fare").is_in(range(VALUES_MAX + 1)), "1 to"),
        (field("fare").is_in([1, None]), "fare is null"),
        (field("at") == datetime(2013, 1, 1), "with an offset"),  # noqa: DTZ001  is the point
        (field("local") == datetime(2013, 1, 1, tzinfo=UTC), "without an offset"),
        (field("day") == datetime(2013, 1, 1, tzinfo=UTC), "give an integer"),
        (field("id") == "\ud800", "lone surrogate"),
        (field("id") == b"x", "give text"),
        (field("price") == Decimal("nan"), "up to 2 digits"),
        (And(()), "at least one test"),
        (field("id").like(4), "give text"),  # type: ignore[arg-type]  # is the point
        (field("id").like("a", 4), "give text"),  # type: ignore[arg-type]  # is the point
        (field("id").like("\ud800%"), "lone surrogate"),
        ("fare > 4", "not a predicate"),
    ],
)
def test_python_that_is_no_predicate(built: Predicate, wanted: str) -> None:
    with pytest.raises(InvalidError) as raised:
        checked_predicate(built, SCHEMA)
    assert wanted in str(raised.value)


def test_pythons_own_and_is_caught() -> None:
    with pytest.raises(InvalidError, match="&"):
        (field("fare") >= 4) and (field("fare") <= 5)
    with pytest.raises(InvalidError, match="has a name"):
        field(4)  # type: ignore[arg-type]  # is the point
    with pytest.raises(InvalidError, match="a prefix is not a text"):
        field("id").starts_with(4)  # type: ignore[arg-type]  # is the point


def test_names_that_are_no_words_are_quoted() -> None:
    predicate = predicate_from_text('"ok?" = true AND "and""or" is null')
    assert fields_of(predicate) == {"ok?", 'and"or'}
    assert predicate_from_text('"ok?" = TRUE') == Compare("ok?", "=", value=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("at = '2013-01-31T05:00:00+01:00'", "2013-01-31T04:00:00Z"),
        ("local = '2013-01-31T05:00:00.000001'", "2013-01-31T05:00:00.000001"),
        ("day = 9999999", 9999999),
        ("hour = '05:00:00'", "05:00:00"),
        ("price = 4.5", "4.5"),
        ("raw = 'FF00'", "ff00"),
        ("fare = -1e3", -1000.0),
        ("fare == 4.0", 4.0),
        ("day = date '2013-01-31'", "2013-01-31"),
        ("at = TIMESTAMP '2013-01-31T05:00:00Z'", "2013-01-31T05:00:00Z"),
    ],
)
def test_json_has_values_as_people_write_them(text: str, value: object) -> None:
    predicate = checked_predicate(predicate_from_text(text), SCHEMA)
    as_json = json.loads(json.dumps(predicate_json(predicate, SCHEMA)))
    assert as_json["value"] == value
    assert checked_predicate(predicate_from_json(as_json), SCHEMA) == predicate


@pytest.mark.parametrize("name", ["like", "between", "escape", "date", "time", "timestamp"])
def test_words_of_tests_may_be_names_of_fields(name: str) -> None:
    schema = schema_of(row_keys={name: "string"})
    for text in (f"{name} like 'a%'", f"{name} between 'a' and 'b'", f"{name} = 'a'"):
        assert fields_of(checked_predicate(predicate_from_text(text), schema)) == {name}


@pytest.mark.parametrize(
    ("pattern", "escape", "matches"),
    [
        ("", None, [""]),
        ("%", None, ["", "a", "ab", "a.b", "a\nb", "a%b", "\xe9b", "a\x00", "a\\b"]),
        ("a%", None, ["a", "ab", "a.b", "a\nb", "a%b", "a\x00", "a\\b"]),
        ("_", None, ["a"]),
        ("_b", None, ["ab", "\xe9b"]),
        ("a_b", None, ["a.b", "a\nb", "a%b", "a\\b"]),
        ("a.b", None, ["a.b"]),
        ("a\n_", None, ["a\nb"]),
        ("a\x00", None, ["a\x00"]),
        ("%\x00%", None, ["a\x00"]),
        ("%%b", None, ["ab", "a.b", "a\nb", "a%b", "\xe9b", "a\\b"]),
        ("%n%", None, []),
        ("a\\%", None, ["a\\b"]),
        ("a!%_", "!", ["a%b"]),
        ("a\\%b", "\\", ["a%b"]),
        ("aa%b", "a", ["ab", "a.b", "a\nb", "a%b", "a\\b"]),
        ("a%%b", "%", ["a%b"]),
    ],
)
def test_patterns_are_those_of_sql(pattern: str, escape: str | None, matches: list[str]) -> None:
    schema = schema_of(row_keys={"n": "int64"}, values={"s": "string?"})
    texts = ["", "a", "ab", "a.b", "a\nb", "a%b", "\xe9b", "a\x00", "a\\b"]
    column = pa.array([*texts, None])
    batch = pa.RecordBatch.from_pydict({"n": list(range(len(column))), "s": column})
    like = checked_predicate(field("s").like(pattern, escape), schema)
    assert kept(batch, like).column("s").to_pylist() == matches
    unlike = checked_predicate(~field("s").like(pattern, escape), schema)
    assert kept(batch, unlike).column("s").to_pylist() == [t for t in texts if t not in matches]


@pytest.mark.parametrize("pattern", ["_" * 1_000, "%_" * 500, "a%" * 500, "%" * 1_000])
def test_the_longest_patterns_are_understood(pattern: str) -> None:
    schema = schema_of(row_keys={"s": "string"})
    batch = pa.RecordBatch.from_pydict({"s": ["a" * 999, "\U0001f600" * 1_000, "a" * 1_000]})
    found = kept(batch, checked_predicate(field("s").like(pattern), schema)).column("s")
    assert "a" * 1_000 in found.to_pylist()


def test_a_tables_filter_has_no_patterns() -> None:
    for where in (field("id").like("a%"), ~field("id").like("a%") | field("fare").is_null()):
        with pytest.raises(InvalidError, match="cannot use `like`") as raised:
            checked_processing(Processing(filter=where), SCHEMA)
        assert ">= 'ab' and < 'ac'" in str(raised.value)
    allowed = Processing(filter=field("id").between("ab", "ac"))
    assert checked_processing(allowed, SCHEMA) == allowed


def test_nan_equals_nothing_and_a_float32_is_compared_as_one() -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"x": "float32?"})
    batch = pa.RecordBatch.from_pydict(
        {"id": [1, 2, 3], "x": pa.array([math.nan, 0.1, None], pa.float32())}
    )

    def ids(text: str) -> list[int]:
        found: list[int] = (
            kept(batch, checked_predicate(predicate_from_text(text), schema))
            .column("id")
            .to_pylist()
        )
        return found

    assert ids("x = 0.1") == [2]
    assert ids("x < 1 or x >= 1") == [2]
    assert ids("x != 1") == [1, 2]
    assert ids("not x in (1)") == [1, 2]
