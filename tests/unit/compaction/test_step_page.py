"""The package that the page shows is short, and does what the page says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import IteratorError
from lakebed.lake import Lake
from tests.tidy.source import ROOT
from tests.unit.packages_of_tests import installing

PAGE = (ROOT / "docs" / "change" / "step.md").read_text("utf-8")
PACKAGE, USE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(PROJECT,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
LINES_MAX = 30
SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"fare": "int64"})


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tomllib.loads(PROJECT)["project"]
    module = said["name"].replace("-", "_")
    groups = {
        group: {name: what.removeprefix(f"{module}:") for name, what in names.items()}
        for group, names in said["entry-points"].items()
    }
    installing(tmp_path, monkeypatch)(module, PACKAGE, groups)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        yield opened


def fares(*values: int) -> pa.Table:
    return pa.table({"id": [f"{value}" for value in values], "fare": values})


def test_the_package_is_short() -> None:
    assert len([line for line in PACKAGE.splitlines() if line.strip()]) <= LINES_MAX


def test_its_strategy_waits_an_hour_and_then_fills_jobs(lake: Lake, clock: VirtualClock) -> None:
    table = lake.create_table("trips", SCHEMA, settings={"job_files_max": 4, "leaf_files_max": 12})
    table.change_settings(compaction_strategy="settled")
    for n in range(5):
        table.ingest(fares(n))
    lake.run()
    assert lake.status("trips")[0].files == 5
    clock.advance(3_600)
    table.ingest(fares(9))
    lake.run()
    assert lake.status("trips")[0].files == 3
    for n in range(9):
        table.ingest(fares(n))
    lake.run()  # a leaf that is full does not wait
    assert lake.status("trips")[0].files == 9


def test_its_iterator_keeps_what_is_large_enough(lake: Lake) -> None:
    lake.create_table("trips", SCHEMA)
    lake.table("trips").ingest(fares(-1, 0, 1))
    exec(USE, {"lake": lake})
    assert lake.table("trips").query().read_all()["fare"].to_pylist() == [0, 1]
    other = lakebed.IteratorUse("at_least", {"field": "price", "least": 0})
    with pytest.raises(IteratorError, match="KeyError"):
        lake.create_table("t", SCHEMA, processing=lakebed.Processing(iterator=other))
