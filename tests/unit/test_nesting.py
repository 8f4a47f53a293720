"""How deep types may be nested: every table that can be created can be filled, merged and read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError

KINDS = ("list", "map", "struct")
DEEPEST = {"list": 32, "map": 16, "struct": 32}


def nested(kind: str, depth: int) -> tuple[Any, Any]:
    """Return a type and a value of it."""
    type_: Any = "int64"
    value: Any = 7
    for _ in range(depth):
        match kind:
            case "list":
                type_, value = {"list": type_}, [value]
            case "map":
                type_, value = {"map": ["string", type_]}, [("a", value)]
            case _:
                type_, value = {"struct": [{"name": "m", "type": type_}]}, {"m": value}
    return type_, value


def schema_with(type_: object) -> lakebed.Schema:
    field = {"name": "v", "type": type_, "nullable": True}
    return lakebed.schema_from_json(
        {"row_keys": [{"name": "k", "type": "int32"}], "values": [field]}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_nested_as_deep_as_allowed_can_be_filled_merged_and_read(
    kind: str, tmp_path: Path
) -> None:
    type_, value = nested(kind, DEEPEST[kind])
    with lakebed.connect(tmp_path) as lake:
        table = lake.create_table("deep", schema_with(type_))
        column = pa.array([value, None], table.arrow_schema.field("v").type)
        rows = pa.table({"k": pa.array([1, 2], pa.int32()), "v": column})
        table.ingest(rows)
        table.ingest(rows)
        table.compact()
        found = table.query().read_all()
    assert found.column("v").to_pylist() == [value, value, None, None]


@pytest.mark.parametrize("more", [1, 40, 100_000])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_nested_deeper_is_refused_when_a_table_is_made_or_altered(
    kind: str, more: int, tmp_path: Path
) -> None:
    type_, _ = nested(kind, DEEPEST[kind] + more)
    told = "nested too deep .*field=v.*32 levels are allowed"
    with lakebed.connect(tmp_path) as lake:
        with pytest.raises(InvalidError, match=told):
            lake.create_table("deep", schema_with(type_))
        assert lake.tables() == []
        table = lake.create_table("flat", schema_with("int64"))
        with pytest.raises(InvalidError, match=told.replace("=v", "=w")):
            table.add_field("w", type_)
        assert [field.name for field in table.schema.values] == ["v"]


def test_columns_nested_without_end_are_refused_as_a_model_for_a_table() -> None:
    type_ = pa.int64()
    for _ in range(500):
        type_ = pa.list_(type_)
    columns = pa.schema({"k": pa.int64(), "v": type_})
    with pytest.raises(InvalidError, match=r"nested too deep .*field=v"):
        lakebed.schema_from_arrow(columns, row_keys=["k"])
