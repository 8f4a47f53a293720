from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed

SCHEMA = lakebed.schema_of(
    row_keys={"city": "string", "day": "int64"}, values={"n": "int64", "note": "string?"}
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """A table of two leaves, cut at `m`, with 40 rows of four cities in two files of each."""
    made = lake.create_table("visits", SCHEMA, split_points=["m"])
    for first in (0, 1):
        days = range(first, 10, 2)
        rows = [{"city": c, "day": d, "n": d, "note": None} for c in "aemx" for d in days]
        made.ingest(rows)
    return made
