"""A table's definition makes the same table again."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidError, NewerFormatError
from tests.unit.cli.programs import Shell

SCHEMA = lakebed.schema_of(
    row_keys={"day": "date32", "who": "string", "raw": "binary"},
    sort_keys={"at": "timestamp[us, UTC]"},
    values={"n": "int64", "tags": {"map": ["string", {"list": "int64"}]}},
)
DAYS = (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2))
POINTS = [DAYS[0], (DAYS[1], 'a,b\n"c"'), (DAYS[1], "b", b"\xff\x00")]


def test_everything_but_rows_comes_back(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        one = lake.create_table(
            "one",
            SCHEMA,
            split_points=POINTS,
            settings={"leaf_rows_max": 1_000},
            processing=lakebed.Processing(filter=lakebed.field("n") > 3),
        )
        told = json.loads(json.dumps(one.definition))
        two = lake.create_table_from("two", told)
        assert two.definition == told
        assert two.schema == one.schema
        assert two.split_points == one.split_points
        assert len(one.split_points) == 3
        assert two.settings == one.settings
        assert two.processing == one.processing
        assert told["settings"] == {"leaf_rows_max": 1_000}


def test_changes_of_fields_are_not_history_of_the_new_table(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        one = lake.create_table("one", lakebed.schema_of(row_keys={"id": "int64"}))
        one.add_field("n", "int64?")
        one.rename_field("id", "key")
        two = lake.create_table_from("two", one.definition)
        assert two.schema.past == ()
        two.ingest(pa.table({"key": [1], "n": [2]}))
        assert two.add_field("m", "int64?").version == 2
        assert two.query().read_all().to_pydict() == {"key": [1], "n": [2], "m": [None]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schemas": 1}, "did you mean 'schema'?"),
        ({"split_points": {"a": 1}}, "split points are a list, settings are named"),
        ({"split_points": [["2024-01-01", "a", "00", 1]]}, "a value of the first row key"),
        ({"settings": {"leaf_rows": 1}}, "leaf_rows_max"),
        ({"processing": {"filtre": 1}}, "filter"),
    ],
)
def test_what_is_not_allowed_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        told = lake.create_table("one", SCHEMA).definition
        with pytest.raises(InvalidError) as caught:
            lake.create_table_from("two", told | change)
        assert says in str(caught.value)
        with pytest.raises(InvalidError, match="not the definition of a table"):
            lake.create_table_from("two", lakebed.schema_json(SCHEMA))
        with pytest.raises(NewerFormatError):
            lake.create_table_from("two", told | {"format": 2})
        assert lake.tables() == ["one"]


def test_the_shell_writes_and_reads_it(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    points = ("--split-point", "10", "--split-point", "20")
    create = ("table", "create", "one", "--row-key", "id:int64", "--value", "n:int64?")
    shell.ok(*create, *points, "--set", "leaf_rows_max=1000")
    path = tmp_path / "one.json"
    path.write_text(shell.ok("table", "describe", "one", "--definition"), "utf-8")
    made = shell.json("table", "create", "two", "--definition", str(path))
    assert made["leaves"] == 3
    assert shell.json("table", "describe", "two", "--definition") == json.loads(path.read_text())
    for more in (("--row-key", "x:int64"), ("--set", "leaf_rows_max=7"), ("--like", str(path))):
        code, error = shell.refused("table", "create", "x", "--definition", str(path), *more)
        assert (code, error["message"]) == (2, "--definition describes the whole table")
    path.write_text("{", "utf-8")
    code, error = shell.refused("table", "create", "x", "--definition", str(path))
    assert (code, error["code"]) == (2, "unreadable-input")
