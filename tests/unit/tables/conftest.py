from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from tests.unit.tables.lakes import SCHEMA


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """An empty table of two leaves, cut at `m`."""
    return lake.create_table("trips", SCHEMA, split_points=["m"])
