"""Ids of records without a key: unique, and the same whenever a record is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakebed.decoding.auto_keys import ID_BYTES, auto_keys
from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

TEXT, BYTES = pa.string(), pa.binary()
GOLDEN = ["39859c61774fc2eb0000000000000000", "39859c61774fc2eb0000000000015fa1"]


def ids(feed: str, split: str, positions: list[int]) -> list[bytes]:
    return auto_keys(feed, split, pa.array(positions, pa.int64()), BYTES).to_pylist()


def test_an_id_is_the_same_in_every_release() -> None:
    """Tables hold them: another id would make another row of the same record."""
    split = "orders:3@E_WGnqV7T-GG9Q5t4dkBoA"
    assert auto_keys("f1", split, pa.array([0, 90_017], pa.int64()), TEXT).to_pylist() == GOLDEN


def test_text_is_the_bytes_in_hexadecimal_digits() -> None:
    positions = pa.array([0, 1, 255, 1 << 62, (1 << 63) - 1], pa.int64())
    raw = auto_keys("f", "s", positions, BYTES)
    text = auto_keys("f", "s", positions, TEXT)
    assert [one.hex() for one in raw.to_pylist()] == text.to_pylist()
    assert {len(one) for one in raw.to_pylist()} == {ID_BYTES}
    for one in (raw, text, auto_keys("f", "s", positions[:0], TEXT)):
        one.validate(full=True)


def test_feed_source_split_and_position_make_it_and_the_border_between_them() -> None:
    given = [
        ids(feed, split, [0, 1, 2])
        for feed in ("a", "ab", "a of a file")
        for split in ("", "b", "s", "s@1", "s@2")
    ]
    found = {one for three in given for one in three}
    assert len(found) == 3 * len(given)
    assert set(ids("a", "b", [0])).isdisjoint(ids("ab", "", [0]))


def test_ids_of_a_source_split_rise_with_its_positions() -> None:
    positions = [0, 1, 255, 256, 65_536, 1 << 40, 1 << 62]
    found = ids("f", "s", positions)
    assert found == sorted(found)


def test_positions_of_a_slice_are_those_that_are_seen() -> None:
    whole = pa.array(np.arange(10), pa.int64())
    assert auto_keys("f", "s", whole[7:], BYTES).to_pylist() == ids("f", "s", [7, 8, 9])


@pytest.mark.parametrize("type_", ["string", "binary"])
def test_a_decoder_gives_each_row_its_id(type_: str) -> None:
    schema = schema_of(row_keys={"id": type_}, values={"n": "int64?"})
    outcome = decode(
        schema, [b'{"n": 1}', b"{", b'{"n": 3, "id": "own"}'], connection={"auto_key": "id"}
    )
    first, bad, last = outcome.fates
    assert bad == "unparsable"
    expected = auto_keys("", "split-7", pa.array([0, 2]), TEXT if type_ == "string" else BYTES)
    assert [first["id"], last["id"]] == expected.to_pylist()
    assert [first["n"], last["n"]] == [1, 3]
    assert outcome.decoded.unknown == {"id": 1}, "the record's own is left out and counted"


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"auto_key": "ids"}, ["connection.c.auto_key", "no such column", "ids"]),
        ({"auto_key": "n"}, ["connection.c.auto_key", "int64", "string or binary"]),
        ({"auto_key": "id", "columns": {"id": "x", "n": "n"}}, ["columns.id", "two sources"]),
        ({"auto_key": "id", "rest": "id"}, ["connection.c", "two sources"]),
        ({"auto_key": 3}, ["connection.c", "auto_key", "str"]),
    ],
)
def test_what_does_not_fit_is_refused(connection: dict[str, object], said: list[str]) -> None:
    schema = schema_of(row_keys={"id": "string"}, values={"n": "int64?"})
    with pytest.raises(InvalidError) as raised:
        decode(schema, [b"{}"], connection=connection)
    for part in said:
        assert part in str(raised.value) + str(raised.value.hint)
