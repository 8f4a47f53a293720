"""Options of `format("lakebed")`, and filters that Spark hands over. Spark is not needed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.model.predicates.language import Compare, In
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from lakebed.spark.filters import taken_over
from lakebed.spark.options import ReadOptions, append_options

PLACE = {"lake": "./lake", "table": "t"}
SCHEMA = lakebed.schema_of(
    row_keys={"k": "string", "at": "timestamp[us, UTC]"}, values={"v": "float64?", "a,b": "bool?"}
)


def condition(**given: str) -> Selection:
    return ReadOptions(PLACE | given).condition(SCHEMA)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({}, {}),
        ({"columns": "v, k"}, {"columns": ["v", "k"]}),
        ({"columns": '["a,b"]'}, {"columns": ["a,b"]}),
        ({"keys": '["a", ["b", "1970-01-01T00:00:01Z"]]'}, {"keys": ["a", ("b", 10**6)]}),
        ({"keys": '[{"k": "a"}]'}, {"keys": [{"k": "a"}]}),
        ({"ranges": '{"k": ["a", "c"]}'}, {"ranges": {"k": ("a", "c")}}),
        (
            {"ranges": '[{"k": {"min": "a"}}, {"at": [null, 5]}]'},
            {"ranges": [{"k": ("a", None)}, {"at": (None, 5)}]},
        ),
        (
            {"ranges": '{"k": {"min": "a", "max": "c", "max_inclusive": true}}'},
            {"ranges": {"k": lakebed.Range("a", "c", max_inclusive=True)}},
        ),
        (
            {"where": "v >= 4 and k = 'x'"},
            {"where": lakebed.predicate_from_text("v >= 4 and k = 'x'")},
        ),
    ],
)
def test_options_mean_what_arguments_of_a_query_mean(
    given: dict[str, str], same: dict[str, Any]
) -> None:
    assert condition(**given) == condition_of(SCHEMA, **same)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"table": "t"}, "where the lake is"),
        (PLACE | {"path": "./other"}, "where the lake is"),
        ({"lake": "./lake"}, "no table is named"),
        (PLACE | {"colums": "v"}, "columns"),
        (PLACE | {"job": "j"}, "unknown option"),
        (PLACE | {"pin_seconds": "-1"}, "whole number"),
        (PLACE | {"slice_bytes": "1e6"}, "whole number"),
        (PLACE | {"ranges": "k=a..b"}, "not JSON"),
        (PLACE | {"ranges": '{"k": ["a", "b"], "k": ["c", "d"]}'}, "not JSON"),
        (PLACE | {"columns": "[1]"}, "columns are names"),
        (PLACE | {"where": "v >="}, "not a predicate"),
    ],
)
def test_options_that_cannot_be_read_are_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        ReadOptions(given)


@pytest.mark.parametrize(
    "given",
    [
        {"ranges": '["a"]'},
        {"ranges": '{"k": "a"}'},
        {"ranges": '{"k": ["a"]}'},
        {"ranges": '{"k": {"least": "a"}}'},
        {"ranges": '{"k": {"min": "a", "max_inclusive": 1}}'},
        {"ranges": '{"k": ["c", "a"]}'},
        {"ranges": '{"v": [1, 2]}'},
        {"ranges": '{"k": [1, 2]}'},
        {"keys": "[null]"},
        {"keys": '[["a", 1, 2]]'},
        {"columns": "x"},
        {"where": "x = 1"},
    ],
)
def test_options_that_do_not_fit_the_table_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidError):
        condition(**given)


def test_a_version_is_named_as_a_query_names_it() -> None:
    assert ReadOptions(PLACE).scan.as_of is None
    assert ReadOptions(PLACE | {"as_of": "41"}).scan.as_of == "41"
    with pytest.raises(InvalidError, match="as_of"):
        ReadOptions(PLACE | {"asof": "41"})


def test_options_of_appending() -> None:
    columns = [("k", "string")]
    lake, asked = append_options({"path": "x", "table": "t", "job": "j"}, columns)
    assert (lake, asked.table, asked.job, asked.extra_columns) == ("x", "t", "j", "refuse")
    for bad in ({"extra_columns": "keep"}, {"where": "v = 1"}, {"lake": "y"}):
        with pytest.raises(InvalidError):
            append_options({"path": "x", "table": "t"} | bad, columns)


@dataclass(frozen=True)
class _Filter:
    attribute: tuple[str, ...]
    value: object


class EqualTo(_Filter):
    """As `pyspark.sql.datasource` has it from 4.1 on; and so are the others."""


class GreaterThan(_Filter):
    pass


class StringStartsWith(_Filter):
    pass


In_ = type("In", (_Filter,), {})


def test_filters_on_keys_are_taken_over_and_others_are_left() -> None:
    moment = datetime.fromtimestamp(1, UTC)
    given = {
        EqualTo(("k",), "a"): Compare("k", "=", "a"),
        GreaterThan(("at",), moment): Compare("at", ">", 10**6),
        In_(("k",), ("a", "b")): In("k", ("a", "b")),
        EqualTo(("v",), 1.0): None,
        EqualTo(("k", "part"), "a"): None,
        EqualTo(("k",), 5): None,
        EqualTo(("k",), None): None,
        In_(("k",), ()): None,
        StringStartsWith(("k",), "a"): None,
    }
    assert dict(taken_over(given, SCHEMA)) == given


def test_what_spark_hands_over_narrows_what_options_ask_for() -> None:
    options = ReadOptions(PLACE | {"where": "v >= 4"})
    found = options.condition(SCHEMA, [Compare("k", "=", "a")])
    both = (lakebed.field("v") >= 4) & (lakebed.field("k") == "a")
    assert found == condition_of(SCHEMA, where=both)
