"""Split points from a sample: alike shares of its rows in each leaf (row 26)."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import InvalidError

CHANCE = random.Random(26)
COLUMNS: dict[str, tuple[str, pa.Array]] = {
    "text": ("string", pa.array([f"{CHANCE.betavariate(1, 9):.9f}" for _ in range(5_000)])),
    "numbers": ("int64", pa.array([int(CHANCE.gauss(0, 10**9)) for _ in range(5_000)])),
    "bytes": ("binary", pa.array([CHANCE.randbytes(3) for _ in range(5_000)])),
    "days": ("date32", pa.array([CHANCE.randrange(9_000) for _ in range(5_000)], pa.date32())),
    "times": (
        "timestamp[us, UTC]",
        pa.array([CHANCE.randrange(10**15) for _ in range(5_000)], pa.timestamp("us", "UTC")),
    ),
    "few": ("int32", pa.array([CHANCE.randrange(100) for _ in range(5_000)], pa.int32())),
}


def schema(type_: str) -> lakebed.Schema:
    return lakebed.schema_of(row_keys={"id": type_}, values={"n": "int64?"})


def shares(folder: Path, type_: str, column: pa.Array, points: list[Any]) -> list[int]:
    """Rows in each leaf of a table with these split points."""
    with lakebed.connect(folder / "lake") as lake:
        table = lake.create_table("t", schema(type_), split_points=points)
        table.ingest(pa.table({"id": column}))
        (status,) = lake.status("t")
        return [node.rows for node in status.nodes if node.left is None]


@pytest.mark.parametrize("leaves", [1, 2, 7, 16])
@pytest.mark.parametrize("kind", COLUMNS)
def test_each_leaf_gets_between_half_and_twice_the_mean_share(
    tmp_path: Path, kind: str, leaves: int
) -> None:
    type_, column = COLUMNS[kind]
    sample = tmp_path / "sample.parquet"
    pq.write_table(pa.table({"id": column, "more": column}), sample)
    points = lakebed.split_points_from(sample, schema(type_), leaves=leaves)
    found = shares(tmp_path, type_, column, points)
    assert len(found) == leaves
    mean = len(column) / leaves
    assert mean / 2 <= min(found) <= max(found) <= mean * 2


def test_a_value_with_most_of_the_rows_has_a_leaf_and_none_is_empty(tmp_path: Path) -> None:
    column = pa.array(["m"] * 900 + [f"{n:03d}" for n in range(60)] + ["z"] * 40)
    points = lakebed.split_points_from(pa.table({"id": column}), schema("string"), leaves=10)
    found = shares(tmp_path, "string", column, list(points))
    assert sum(found) == 1_000
    assert min(found) >= 50
    same = pa.table({"id": ["a"] * 10})
    assert lakebed.split_points_from(same, schema("string"), leaves=4) == []


@pytest.mark.parametrize(
    ("rows", "leaves", "says"),
    [
        (pa.table({"id": pa.array([], pa.string())}), 4, "no rows"),
        (pa.table({"id": ["a"]}), 0, "number of leaves"),
        (pa.table({"id": ["a"]}), 100_000, "number of leaves"),
        (pa.table({"idd": ["a"]}), 4, "missing"),
        (pa.table({"id": [5]}), 4, "does not fit"),
        (pa.table({"id": ["a", None]}), 4, "null"),
    ],
)
def test_a_sample_that_cannot_be_is_refused(rows: pa.Table, leaves: int, says: str) -> None:
    with pytest.raises(InvalidError, match=says) as raised:
        lakebed.split_points_from(rows, schema("string"), leaves=leaves)
    assert raised.value.hint
