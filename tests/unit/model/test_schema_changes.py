"""What may become of a schema, and what is refused."""

from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import InvalidError, NewerFormatError
from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.changes.schema_changes import PAST_KEPT, changed, planned
from lakebed.model.names import Micros
from lakebed.model.schema import Schema, schema_from_json, schema_json, schema_of
from lakebed.model.types import VALUE_TYPES, type_of, widens
from lakebed.sorted_files.format.arrow_schema import arrow_type
from lakebed.user_files.casting import fits

SCHEMA = schema_of(
    row_keys={"id": "int32"},
    sort_keys={"at": "int64"},
    values={
        "fare": "float32?",
        "n": "int8",
        "tags": {"list": "string"},
        "place": {"struct": [{"name": "x", "type": "int8"}]},
        "cost": "decimal128(10,2)",
    },
)


def after(schema: Schema, **asked: object) -> Schema:
    whole: dict[str, Any] = {"add": {}, "rename": {}, "drop": (), "widen": {}} | asked
    return changed(schema, planned(schema, **whole), at=Micros(7))


def shown(schema: Schema) -> dict[str, tuple[int, str]]:
    return {f.name: (f.number, str(f.type)) for f in schema.fields}


def test_fields_keep_their_numbers_and_places() -> None:
    now = after(
        SCHEMA,
        add={"tip": "int16?"},
        rename={"id": "key", "fare": "n2"},
        drop=["tags"],
        widen={"n": "int64", "fare": "float64"},
    )
    assert [f.name for f in now.row_keys + now.sort_keys] == ["key", "at"]
    assert shown(now) == {
        "key": (1, "int32"),
        "at": (2, "int64"),
        "n2": (3, "float64"),
        "n": (4, "int64"),
        "place": (6, "struct<x: int8>"),
        "cost": (8, "decimal128(10,2)"),
        "tip": (9, "int16"),
    }
    assert now.field("tip").nullable
    assert not now.field("n").nullable


def test_names_may_be_swapped_and_a_dropped_name_taken_again() -> None:
    now = after(SCHEMA, rename={"fare": "n", "n": "fare"})
    assert (now.field("n").number, now.field("fare").number) == (3, 4)
    again = after(SCHEMA, drop=["n"], add={"n": "string?"})
    assert (again.field("n").number, str(again.field("n").type)) == (9, "string")


def test_a_number_is_never_used_again_even_the_highest() -> None:
    now = after(SCHEMA, add={"a": "int8?"})
    now = after(after(now, drop=["a"]), add={"b": {"struct": [{"name": "y", "type": "bool"}]}})
    assert now.field("b").number == 10
    assert now.next_number == 12
    with pytest.raises(InvalidError, match="a field's number is never reused"):
        changed(now, [FieldChange("add", 9, "c", "int8")], at=Micros(0))


def test_what_became_of_a_name_is_told() -> None:
    now = after(SCHEMA, rename={"fare": "price"}, drop=["n"])
    now = after(now, rename={"price": "cents"})
    for name, says in [("fare", "'cents'"), ("price", "'cents'"), ("n", "was dropped")]:
        with pytest.raises(InvalidError) as raised:
            now.field(name)
        assert says in str(raised.value.hint)
    assert "did you mean 'place'" in now.hint_for("plase")
    assert "was dropped" in after(now, drop=["cents"]).hint_for("fare")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "nothing to change"),
        ({"drop": ["id"]}, "a key cannot be dropped"),
        ({"drop": ["at"]}, "a key cannot be dropped"),
        ({"widen": {"id": "int64"}}, "a key keeps its type"),
        ({"drop": ["no"]}, "no such field"),
        ({"rename": {"no": "yes"}}, "no such field"),
        ({"widen": {"no": "int64"}}, "no such field"),
        ({"rename": {"fare": "N"}}, "two fields have one name"),
        ({"rename": {"fare": ""}}, "not a field name"),
        ({"rename": {"fare": 5}}, "not a field name"),
        ({"rename": {"fare": "_lakebed_x"}}, "not a field name"),
        ({"rename": {"fare": "fare"}}, "leaves the field as it is"),
        ({"add": {"fare": "int8?"}}, "two fields have one name"),
        ({"add": {"tip": "int8"}}, "an added field must be nullable"),
        ({"add": {"tip": "int128?"}}, "no such type"),
        ({"add": {"tip": 5}}, "not a type"),
        ({"widen": {"n": "int8"}}, "leaves the field as it is"),
        ({"widen": {"n": "uint16"}}, "not a wider type"),
        ({"widen": {"fare": "float32"}}, "leaves the field as it is"),
        ({"widen": {"tags": {"list": "binary"}}}, "not a wider type"),
        ({"widen": {"cost": "decimal128(10,3)"}}, "not a wider type"),
        ({"drop": ["n", "n"]}, "named again"),
        ({"drop": ["n"], "rename": {"n": "m"}}, "named again"),
        ({"drop": ["n"], "widen": {"n": "int16"}}, "named again"),
    ],
)
def test_a_change_that_cannot_be_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        after(SCHEMA, **asked)


def test_what_widens_fits_and_loses_nothing() -> None:
    types = [*VALUE_TYPES, "decimal128(9,2)", "decimal128(10,2)", "decimal128(11,3)"]
    pairs = [(a, b) for a in types for b in types if widens(type_of(a), type_of(b))]
    assert ("int8", "int64") in pairs
    assert ("decimal128(9,2)", "decimal128(11,3)") in pairs
    assert not {("int64", "int32"), ("int32", "float64"), ("uint32", "int32")} & set(pairs)
    assert not [(a, b) for a, b in pairs if (b, a) in pairs]
    for a, b in pairs:
        assert fits(arrow_type(type_of(a)), arrow_type(type_of(b))), (a, b)
        ends = {"int8": -128, "int16": -(2**15), "int32": -(2**31)}.get(a, 2**8 - 1)
        if "int" in a:
            given = pa.array([ends, 0], arrow_type(type_of(a)))
            assert given.cast(arrow_type(type_of(b))).to_pylist() == [ends, 0]


def test_a_changed_schema_comes_back_from_json_and_a_new_one_looks_as_ever() -> None:
    assert set(schema_json(SCHEMA)) == {"format", "row_keys", "sort_keys", "values"}
    now = after(after(SCHEMA, rename={"fare": "price"}), drop=["n"])
    assert schema_json(now)["format"] == 2
    assert schema_from_json(schema_json(now)) == now
    with pytest.raises(NewerFormatError):
        schema_from_json(schema_json(now) | {"format": 3})
    with pytest.raises(InvalidError, match="not a changed schema"):
        schema_from_json(schema_json(now) | {"past": [[1]]})


def test_of_many_changes_the_newest_are_kept() -> None:
    now = SCHEMA
    for turn in range(PAST_KEPT + 5):
        names = ("n", "m") if turn % 2 == 0 else ("m", "n")
        now = after(now, rename=dict([names]))
    assert (now.version, len(now.past), now.past[-1].version) == (106, PAST_KEPT, 106)
