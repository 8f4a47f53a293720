"""What is not allowed is refused when a table is created, with what is."""

import pytest

from lakebed import (
    AgeOff,
    IteratorUse,
    Latest,
    Processing,
    field,
    processing_from_json,
    processing_json,
    schema_of,
)
from lakebed.errors import InvalidError
from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.changes.schema_changes import changed
from lakebed.model.processing import check_schema_change, checked_processing, iterator_use

SCHEMA = schema_of(
    row_keys={"id": "string"},
    sort_keys={"at": "timestamp[us, UTC]"},
    values={
        "count": "int64",
        "name": "string?",
        "seen": "int64",
        "maybe": "int64?",
        "gone": "bool?",
    },
)
ALL = {"count": "sum", "name": "max", "seen": "max", "maybe": "min", "gone": "last by seen"}


@pytest.mark.parametrize(
    ("processing", "wanted"),
    [
        (Processing(), "leave it out"),
        (Processing(aggregate=ALL, latest=Latest("seen")), "choose one"),
        (Processing(latest=Latest("seen"), iterator=IteratorUse("x")), "choose one"),
        (Processing(aggregate=ALL, iterator=IteratorUse("x")), "choose one"),
        (Processing(aggregate={"count": "sum"}), "a value field without a function"),
        (Processing(aggregate=ALL | {"cuont": "sum"}), "did you mean 'count'"),
        (Processing(aggregate=ALL | {"at": "max"}), "a key cannot be aggregated"),
        (Processing(aggregate=ALL | {"count": "avg"}), "last by FIELD"),
        (Processing(aggregate=ALL | {"name": "sum"}), "takes integers"),
        (Processing(aggregate=ALL | {"name": "count"}), "takes int64"),
        (Processing(aggregate=ALL | {"name": "last by at"}), "a key is no sequence"),
        (Processing(aggregate=ALL | {"name": "last by maybe"}), "without `?`"),
        (Processing(aggregate=ALL | {"name": "first by seen"}), "'seen' the function min"),
        (Processing(aggregate=ALL | {"name": "last by when"}), "known fields"),
        (Processing(latest=Latest("name")), "not a field for a sequence"),
        (Processing(latest=Latest("maybe")), "without `?`"),
        (Processing(latest=Latest("at")), "name a value field"),
        (Processing(latest=Latest("seen", delete="count")), "type bool"),
        (Processing(latest=Latest("seen", delete="gnoe")), "did you mean 'gone'"),
        (Processing(iterator=IteratorUse("")), "entry point"),
        (Processing(iterator=IteratorUse("x", {"a": object()})), "configuration is not JSON"),
        (Processing(iterator=IteratorUse("x", {"a": "b" * 70_000})), "65536 bytes"),
        (Processing(iterator=IteratorUse("x", {"a": (1, 2)})), "JSON values"),
        (Processing(age_off=AgeOff("name", 5)), "timestamp, a date, or an integer"),
        (Processing(age_off=AgeOff("seen", 5)), "give an integer field a unit"),
        (Processing(age_off=AgeOff("at", 5, "ms")), "leave it out for dates"),
        (Processing(age_off=AgeOff("at", 0)), "give 1 to"),
        (Processing(age_off=AgeOff("at", 10**12)), "give 1 to"),
        (Processing(age_off=AgeOff("count", 5, "s"), aggregate=ALL), "the function max"),
        (Processing(age_off=AgeOff("maybe", 5, "s"), aggregate=ALL), "without `?`"),
        (Processing(age_off=AgeOff("count", 5, "s"), latest=Latest("seen")), "sequence 'seen'"),
        (Processing(age_off=AgeOff("seen", 5, "s"), iterator=IteratorUse("x")), "a key field"),
        (Processing(filter=field("count") > 5, aggregate=ALL), "test key fields only"),
        (Processing(filter=field("count") > 5, iterator=IteratorUse("x")), "test key fields only"),
        (Processing(filter=field("count") > "x"), "give an integer"),
    ],
)
def test_what_is_not_allowed(processing: Processing, wanted: str) -> None:
    with pytest.raises(InvalidError) as raised:
        checked_processing(processing, SCHEMA)
    assert wanted in str(raised.value)


@pytest.mark.parametrize(
    "processing",
    [
        Processing(filter=field("count") > 5, age_off=AgeOff("seen", 5, "ms")),
        Processing(filter=field("id") > "a", age_off=AgeOff("at", 5), aggregate=ALL),
        Processing(age_off=AgeOff("seen", 5, "ms"), aggregate=ALL),
        Processing(filter=field("name").is_not_null(), latest=Latest("seen", delete="gone")),
        Processing(age_off=AgeOff("seen", 5, "us"), latest=Latest("seen")),
        Processing(filter=field("id") > "a", iterator=IteratorUse("x", {"a": [1, {"b": None}]})),
    ],
)
def test_what_is_allowed_is_kept_as_json(processing: Processing) -> None:
    checked = checked_processing(processing, SCHEMA)
    again = processing_from_json(processing_json(checked, SCHEMA))
    assert checked_processing(again, SCHEMA) == checked


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ([], "JSON object"),
        ({"agregate": {}}, "did you mean 'aggregate'"),
        ({"filter": "count >"}, "expected a number"),
        ({"filter": {"test": "like"}}, "not a predicate"),
        ({"latest": {"sequence": "seen", "deletes": "gone"}}, "not a processing"),
        ({"latest": "seen"}, "not a processing"),
        ({"age_off": {"field": "at", "seconds": "5"}}, "not a processing"),
        ({"aggregate": {"count": 5}}, "not a processing"),
    ],
)
def test_json_that_is_no_processing(value: object, wanted: str) -> None:
    with pytest.raises(InvalidError) as raised:
        processing_from_json(value)
    assert wanted in str(raised.value)


def test_a_filter_may_be_text() -> None:
    found = checked_processing(processing_from_json({"filter": "count > 5"}), SCHEMA)
    assert found == checked_processing(Processing(filter=field("count") > 5), SCHEMA)


def test_a_query_names_an_iterator_with_its_configuration() -> None:
    assert iterator_use(("x", {"a": 1})) == IteratorUse("x", {"a": 1})
    with pytest.raises(InvalidError, match="give"):
        iterator_use("x")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (FieldChange("rename", 5, "seen", "looked"), "cannot be renamed or dropped"),
        (FieldChange("drop", 5, "seen"), "cannot be renamed or dropped"),
        (FieldChange("rename", 4, "name", "title"), None),
        (FieldChange("drop", 4, "name"), None),
    ],
)
def test_fields_that_processing_names_stay(change: FieldChange, wanted: str | None) -> None:
    processing = Processing(latest=Latest("seen", delete="gone"))
    after = changed(SCHEMA, (change,), at=0)  # type: ignore[arg-type]  # a moment
    if wanted is None:
        check_schema_change(processing, SCHEMA, after)
    else:
        with pytest.raises(InvalidError, match=wanted):
            check_schema_change(processing, SCHEMA, after)


def test_an_aggregating_table_gets_no_field_without_a_function() -> None:
    new = FieldChange("add", 8, "more", "int64")
    after = changed(SCHEMA, (new,), at=0)  # type: ignore[arg-type]  # a moment
    with pytest.raises(InvalidError, match="without a function"):
        check_schema_change(Processing(aggregate=ALL), SCHEMA, after)
