"""Steps of users' packages that a table names: refused by name where nobody would find them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed import IteratorUse, Processing
from lakebed.bootstrap.local import open_local
from lakebed.config.packages import ITERATORS, STRATEGIES, DeployedPackage, DeployedSteps
from lakebed.errors import InvalidError, IteratorError, StrategyError
from lakebed.lake import Lake
from tests.unit.packages_of_tests import Install, installing
from tests.unit.tables.lakes import SCHEMA, ids, rows

MODULE = """
def all_rows(columns, config):
    return lambda batches: batches

def pairs(files, settings):
    return [[file.name for file in files[:2]]]
"""
BOTH = {ITERATORS: {"all_rows": "all_rows"}, STRATEGIES: {"pairs": "pairs"}}
STEPS = {ITERATORS: ("all_rows",), STRATEGIES: ("pairs", "other")}
DEPLOYED = DeployedPackage("steps", "1.0", ("0" * 64,), STEPS)
HERE = Processing(iterator=IteratorUse("all_rows"))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    return installing(tmp_path, monkeypatch)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(open_local(tmp_path / "lake")) as opened:
        yield opened


def with_packages(lake: Lake, *packages: DeployedPackage) -> Lake:
    """Return the lake as that of an instance which was deployed with these."""
    steps = DeployedSteps("dev", packages)
    return Lake(dataclasses.replace(lake._app, steps=steps))


def test_an_instance_is_asked_for_what_it_was_deployed_with(lake: Lake, install: Install) -> None:
    install("steps_here", MODULE, BOTH)
    without = with_packages(lake)
    with pytest.raises(InvalidError, match="no such strategy is in the instance dev") as raised:
        without.create_table("t", SCHEMA, settings={"compaction_strategy": "pairs"})
    assert raised.value.facts["known"] == "basic, size_ratio"
    assert "-c packages=" in str(raised.value.hint)
    with pytest.raises(InvalidError, match="no such iterator is in the instance dev") as raised:
        without.create_table("t", SCHEMA, processing=HERE)
    assert raised.value.facts["known"] == "none"
    assert lake.tables() == []
    deployed = with_packages(lake, DEPLOYED)
    table = deployed.create_table(
        "t", SCHEMA, settings={"compaction_strategy": "other"}, processing=HERE
    )
    assert table.settings.compaction_strategy == "other"  # installed there, and not here


def test_a_change_is_held_to_the_same(lake: Lake, install: Install) -> None:
    install("steps_here", MODULE, BOTH)
    lake.create_table("t", SCHEMA)
    table = with_packages(lake).table("t")
    for change in (
        lambda: table.change_settings(compaction_strategy="pairs"),
        lambda: table.change_processing(HERE),
    ):
        with pytest.raises(InvalidError, match="in the instance dev"):
            change()
    assert (table.settings.compaction_strategy, table.processing) == ("size_ratio", None)
    table = with_packages(lake, DEPLOYED).table("t")
    table.change_settings(compaction_strategy="pairs")
    table.change_processing(HERE)


def test_a_restored_table_is_held_to_the_same(lake: Lake, install: Install, tmp_path: Path) -> None:
    install("steps_here", MODULE, BOTH)
    table = lake.create_table("t", SCHEMA, settings={"compaction_strategy": "pairs"})
    table.ingest(rows(["a", "b"]))
    table.export(tmp_path / "out")
    with pytest.raises(InvalidError, match="no such strategy is in the instance dev"):
        with_packages(lake).restore_table("again", tmp_path / "out")
    with_packages(lake, DEPLOYED).restore_table("again", tmp_path / "out")
    assert ids(lake.table("again")) == ["a", "b"]


def test_an_iterator_has_to_be_here_too_where_its_configuration_is_tried(lake: Lake) -> None:
    with pytest.raises(IteratorError, match="no installed package has this iterator"):
        with_packages(lake, DEPLOYED).create_table("t", SCHEMA, processing=HERE)
    assert lake.tables() == []


def test_tables_whose_package_went_away_fail_alone_and_loudly(
    lake: Lake, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("steps_here", MODULE, BOTH)
    two = {"job_files_max": 2, "compaction_strategy": "basic"}
    whole = {
        "ordinary": lake.create_table("ordinary", SCHEMA, settings=two),
        "iterated": lake.create_table("iterated", SCHEMA, settings=two, processing=HERE),
        "chosen": lake.create_table("chosen", SCHEMA, settings={"compaction_strategy": "pairs"}),
    }
    for table in whole.values():
        for n in range(2):
            table.ingest(rows([f"{n}"]))
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-steps_here" not in p])
    monkeypatch.delitem(sys.modules, "steps_here")
    with pytest.raises(StrategyError, match=r"no such strategy is installed.*table=chosen"):
        lake.run()
    assert [lake.status(name)[0].files for name in whole] == [1, 2, 2]
    (job,) = whole["iterated"].jobs(events=["rejected"])
    assert "no installed package has this iterator" in job.reason
    with pytest.raises(IteratorError):
        whole["iterated"].ingest(rows(["x"]))
    with pytest.raises(IteratorError):
        ids(whole["iterated"])
    assert ids(whole["chosen"]) == ["0", "1"]
