"""Files keep the columns they were written with; readers match them by number."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import CorruptError
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_of
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of
from tests.unit.sorted_files.lakes import Lake, batch_of


def schema(key: str = "id", **values: tuple[int, str]) -> Schema:
    """Return a schema with one key, number 1. values: number and type, `?` for nullable."""
    return Schema(
        row_keys=(Field(name=key, type=type_of("string"), number=1),),
        values=tuple(
            Field(
                name=name,
                type=type_of(type_.removesuffix("?")),
                number=number,
                nullable=type_.endswith("?"),
            )
            for name, (number, type_) in values.items()
        ),
    )


OLD = schema(a=(2, "int8?"), b=(3, "string"), c=(4, "float32"))
ROWS: list[dict[str, Any]] = [
    {"id": "x", "a": 5, "b": "bee", "c": 0.5},
    {"id": "y", "a": None, "b": "", "c": -0.0},
]


def read(directory: Path, now: Schema, condition: Selection | None = None) -> list[dict[str, Any]]:
    lake = Lake(directory)
    part = lake.part(lake.write(OLD, [batch_of(OLD, ROWS)]))
    rows: list[dict[str, Any]] = lake.read(now, [part], condition).to_pylist()
    return rows


def test_a_field_that_came_later_is_null(tmp_path: Path) -> None:
    now = schema(a=(2, "int8?"), b=(3, "string"), c=(4, "float32"), d=(5, "string?"))
    assert read(tmp_path, now) == [row | {"d": None} for row in ROWS]


def test_renamed_fields_are_found_by_number_even_when_they_swapped_names(tmp_path: Path) -> None:
    now = schema(key="name", c=(2, "int8?"), b=(3, "string"), a=(4, "float32"))
    assert read(tmp_path, now) == [
        {"name": "x", "c": 5, "b": "bee", "a": 0.5},
        {"name": "y", "c": None, "b": "", "a": -0.0},
    ]


def test_what_was_dropped_never_shows_under_its_old_name(tmp_path: Path) -> None:
    now = schema(a=(2, "int8?"), c=(4, "float32"), b=(5, "int64?"))
    assert [row["b"] for row in read(tmp_path, now)] == [None, None]


@pytest.mark.parametrize("wider", ["int16", "int32", "int64"])
def test_widened_fields_are_cast(tmp_path: Path, wider: str) -> None:
    now = schema(a=(2, wider + "?"), b=(3, "string"), c=(4, "float64"))
    assert read(tmp_path, now) == ROWS


def test_the_columns_asked_for_may_all_be_newer_than_the_file(tmp_path: Path) -> None:
    now = schema(key="k", z=(9, "float64?"))
    condition = condition_of(now, keys=["y"], columns=["z"])
    assert read(tmp_path, now, condition) == [{"z": None}]


def test_files_of_several_ages_merge_to_rows_of_today(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    newer = schema(a=(2, "int32?"), sea=(4, "float64"), b=(5, "string?"))
    now = schema(a=(2, "int64?"), sea=(4, "float64"), b=(5, "string?"), e=(6, "bool?"))
    parts = [
        lake.part(lake.write(OLD, [batch_of(OLD, ROWS)])),
        lake.part(lake.write(newer, [batch_of(newer, [{"id": "x", "a": 1 << 20, "sea": 1.5}])])),
        lake.part(lake.write(now, [batch_of(now, [{"id": "z", "a": 7, "sea": 2.5, "e": True}])])),
    ]
    merged = lake.part(lake.write(now, lake.files.merge(now, parts)))
    expected = [
        {"id": "x", "a": 5, "sea": 0.5, "b": None, "e": None},
        {"id": "x", "a": 1 << 20, "sea": 1.5, "b": None, "e": None},
        {"id": "y", "a": None, "sea": -0.0, "b": None, "e": None},
        {"id": "z", "a": 7, "sea": 2.5, "b": None, "e": True},
    ]
    assert lake.read(now, [merged]).sort_by([("id", "ascending"), ("a", "ascending")]) == (
        pa.Table.from_pylist(expected, schema=lake.read(now, []).schema)
    )


@pytest.mark.parametrize(
    ("wrong", "now"),
    [
        ("a number below others of the file", schema(a=(2, "int8?"), b=(3, "string"))),
        ("narrower than it was", schema(a=(2, "int8?"), b=(3, "string"), c=(4, "int32"))),
        ("required, and not there", schema(a=(2, "int8?"), d=(5, "string"))),
        ("null where it must not be", schema(a=(2, "int8"))),
    ],
)
def test_what_no_change_of_a_schema_leads_to_is_corrupt(
    tmp_path: Path, wrong: str, now: Schema
) -> None:
    lake = Lake(tmp_path)
    gap = schema(a=(2, "int8?"), c=(4, "float32"))
    written = gap if "below" in wrong else OLD
    rows = [{name: row[name] for name in ("id", "a", "c")} for row in ROWS]
    part = lake.part(lake.write(written, [batch_of(written, ROWS if written is OLD else rows)]))
    with pytest.raises(CorruptError, match="contradict the table's schema"):
        list(lake.files.merge(now, [part]))
