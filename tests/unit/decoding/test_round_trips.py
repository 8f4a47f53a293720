"""What other libraries write in each format is read as it was, and so are bytes that were written
by hand; a record without a value is the same in all formats."""

from typing import Any

import pytest

from lakebed.model.schema import schema_of
from tests.dsl.decoding import Outcome, decode

pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf.message_factory")

from tests.dsl.written_formats import (
    FORMATS,
    SCALARS,
    VALUES,
    read_from_csv,
)


def rows_of(outcome: Outcome) -> list[Any]:
    """Rows without their lineage; maps as dicts."""
    return [_row(fate) if isinstance(fate, dict) else fate for fate in outcome.fates]


def _row(fate: dict[str, Any]) -> dict[str, Any]:
    row = {name: part for name, part in fate.items() if not name.startswith("_")}
    counts = row.get("counts")
    return row if counts is None else row | {"counts": dict(counts)}


@pytest.mark.parametrize("name", FORMATS)
def test_what_another_library_writes_is_read_as_it_was(name: str) -> None:
    form = FORMATS[name]
    nulls = VALUES[0] | dict.fromkeys(SCALARS)
    values = [*VALUES, nulls]
    wanted = [read_from_csv(value) if form.is_flat else value for value in values]
    assert rows_of(form.decoded([form.write(value) for value in values])) == wanted


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_by_hand_is_read(name: str) -> None:
    form = FORMATS[name]
    (row,) = rows_of(form.decoded([form.by_hand]))
    assert (row["id"], row["name"]) == (7, "a")
    assert not any(part for part in row.values() if part not in (7, "a", {"city": "", "zip": 0}))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("nulls", "without"), [("write", None), ("ignore", "ignored"), ("fail", "null-in-required")]
)
def test_a_record_without_a_value_is_written_ignored_or_fails_in_all_formats(
    name: str, nulls: str, without: str | None
) -> None:
    form = FORMATS[name]
    outcome = form.decoded([form.by_hand, None, b"", form.by_hand], nulls=nulls)
    first, *empty, last = rows_of(outcome)
    assert first == last
    if without is not None:
        assert empty == [without] * 2
        return
    for row in empty:
        assert row["id"] is None
        assert not any(row.values())
    assert [fate["_position"] for fate in outcome.fates] == [0, 1, 2, 3]


def test_a_column_of_nulls_alone_is_no_fault_of_its_records() -> None:
    form = FORMATS["csv"]
    alone = form.decoded([form.by_hand])
    together = form.decoded([form.by_hand, form.write(VALUES[0])])
    assert alone.fates[0] == together.fates[0]
    assert alone.fates[0]["amount"] is None


def test_text_and_bytes_are_kept_whole() -> None:
    for type_, payload, wanted in [
        ("string", "\u00e4 \U0001f600, \n".encode(), "\u00e4 \U0001f600, \n"),
        ("string", b"\xff", "not-utf8"),
        ("binary", b"\xff\x00", b"\xff\x00"),
    ]:
        schema = schema_of(
            row_keys={"_position": "int64"},
            values={"_split": "string", "_version": "int64", "line": type_},
        )
        connection = {"lineage": True, "rest": "line"}
        (fate,) = decode(schema, [payload], decoder={"format": "raw"}, connection=connection).fates
        assert (fate["line"] if isinstance(fate, dict) else fate) == wanted
