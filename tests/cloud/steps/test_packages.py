"""Wheels of users: built here, deployed, and at work in functions and tasks. A bad step harms its
own table alone, loudly."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed import IteratorUse, Processing
from lakebed.backends.system.clock import SystemClock
from lakebed.config.packages import ITERATORS, STRATEGIES
from lakebed.errors import InvalidError
from localcloud.cloud import LocalCloud
from localcloud.templates.synthesis import synthesize
from tests.cloud.conftest import ROOT
from tests.cloud.instance import INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put, send, stop_tasks, until, waiting
from tests.dsl.table_rows import SCHEMA, rows, same_rows
from tests.wheels import build_wheel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NAME = f"lakebed-{INSTANCE}"
STRATEGY = """
def newest_two(files, settings):
    return [[file.name for file in files[-2:]]] if len(files) > 2 else []

def liar(files, settings):
    return [[files[0].name, "no such file"]]

def raises(files, settings):
    raise RuntimeError("it went wrong")

def hangs(files, settings):
    while True:
        pass
"""
ITERATOR = """
import pyarrow.compute as pc

def without_first(columns, config):
    def run(batches):
        for batch in batches:
            yield batch.filter(pc.not_equal(batch.column(0), config["key"]))
    return run

def fails_later(columns, config):
    def run(batches):
        raise RuntimeError("the iterator went wrong")
    return run
"""
BAD = ("liar", "raises", "hangs")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    names = {name: name for name in ("newest_two", *BAD)}
    build_wheel(folder, "cloud_strategies", STRATEGY, {STRATEGIES: names})
    steps = {ITERATORS: {name: name for name in ("without_first", "fails_later")}}
    build_wheel(folder, "cloud_iterators", ITERATOR, steps, needs=("pyarrow",))
    return folder


@pytest.fixture(scope="module")
def assembly(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instance") / "assembly"
    settings = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
    synthesize(ROOT, folder, settings | {"packages": str(wheels)})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the cloud, in which its logs lie."""
    return tmp_path_factory.mktemp("cloud")


@pytest.fixture(scope="module")
def instance(assembly: Path, folder: Path) -> Iterator[RunningInstance]:
    with LocalCloud(assembly, folder, clock=SystemClock()) as cloud:
        running = RunningInstance(cloud, folder / "cache")
        with running.led_here():
            yield running
            stop_tasks(running)


def plan(instance: RunningInstance) -> None:
    instance.cloud.fire(f"{NAME}-compaction-creation")


def merge(instance: RunningInstance) -> None:
    instance.cloud.fire(f"{NAME}-compaction-tasks")
    until(instance, "jobs are done", lambda: not waiting(instance, "compaction"))


@pytest.fixture
def iterators_here(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterators are tried on the machine that names them, too."""
    for path in wheels.glob("cloud_iterators*.whl"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(wheels / "installed")
    monkeypatch.syspath_prepend(str(wheels / "installed"))


def ingest(instance: RunningInstance, table: str, name: str, part: pa.Table) -> None:
    message = {"id": name, "table": table, "files": [put(instance, f"{name}.parquet", part)]}
    send(instance, "ingest", json.dumps(message), message_group=name)


def failures(folder: Path) -> list[dict[str, str]]:
    """Return what functions said of work that failed, oldest first."""
    logs = sorted(folder.rglob(f"{NAME}-compaction-creation-handle*.log"))
    lines = [line for log in logs for line in log.read_text("utf-8").splitlines()]
    found = [json.loads(line) for line in lines if '"work_failed"' in line]
    return [one for one in found if one["event"] == "work_failed"]


@pytest.mark.usefixtures("iterators_here")
def test_a_strategy_and_an_iterator_of_a_wheel_are_deployed_and_used(
    instance: RunningInstance,
) -> None:
    first = rows(20, seed=0)["id"].to_pylist()[0]
    use = Processing(iterator=IteratorUse("without_first", {"key": first}))
    with instance.lake() as lake:
        table = lake.create_table("chosen", SCHEMA, settings={"compaction_strategy": "newest_two"})
        parts = [rows(20, seed=seed) for seed in range(3)]
        for part in parts:
            table.ingest(part)
        iterated = lake.create_table("iterated", SCHEMA, processing=use)
        ingest(instance, "iterated", "one", parts[0])
        instance.cloud.fire(f"{NAME}-ingest-tasks")
        plan(instance)
        merge(instance)
        until(instance, "rows are in", lambda: not waiting(instance, "ingest"))
        assert (lake.status("chosen")[0].files, lake.status("chosen")[0].rows) == (2, 60)
        assert same_rows(table, *parts)
        kept = [id_ for id_ in parts[0]["id"].to_pylist() if id_ != first]
        assert iterated.query().read_all()["id"].to_pylist() == sorted(kept)
        assert lake.status("iterated")[0].rows == len(kept)
    assert "cloud_strategies" not in sys.modules


def test_a_bad_strategy_is_told_and_other_tables_are_merged(
    instance: RunningInstance, folder: Path
) -> None:
    two = {"job_files_max": 2, "compaction_strategy": "basic"}
    with instance.lake() as lake:
        for name in BAD:
            lake.create_table(name, SCHEMA, settings={"compaction_strategy": name})
        lake.create_table("good", SCHEMA, settings=two)
        for name in (*BAD, "good"):
            for seed in range(2):
                lake.table(name).ingest(rows(10, seed=seed))
        plan(instance)
        merge(instance)
        told = {one["reason"].partition(" (")[0]: one for one in failures(folder)}
        assert set(told) == {
            "a strategy named a file that it was not asked about",
            "a strategy failed: RuntimeError: it went wrong",
            "a strategy takes too long",
        }
        assert all(one["code"] == "strategy" and one["kind"] == "refused" for one in told.values())
        assert all(f"table={name}" in str(told) for name in BAD)
        assert lake.status("good")[0].files == 1
        assert [lake.status(name)[0].files for name in BAD] == [2] * len(BAD)
        assert not any(lake.table(name).jobs(events=["created"]) for name in BAD)
        lake.table("raises").change_settings(**two)  # chosen anew, it is merged
        instance.cloud.failures.clear()


@pytest.mark.usefixtures("iterators_here")
def test_an_iterator_that_fails_refuses_what_its_table_gets_and_nothing_else(
    instance: RunningInstance,
) -> None:
    use = Processing(iterator=IteratorUse("fails_later"))
    with instance.lake() as lake:
        failing = lake.create_table("failing", SCHEMA, processing=use)
        ordinary = lake.create_table("ordinary", SCHEMA)
        for name in ("failing", "ordinary"):
            ingest(instance, name, name, rows(20))
        instance.cloud.fire(f"{NAME}-ingest-tasks")
        until(instance, "both are done", lambda: not waiting(instance, "ingest"))
        assert same_rows(ordinary, rows(20))
        told = [report for report in failing.jobs(job="failing") if report.event == "rejected"]
        assert told
        assert all("RuntimeError: the iterator went wrong" in report.reason for report in told)
        assert lake.status("failing")[0].files == 0


def test_a_table_that_names_what_was_not_deployed_is_refused(instance: RunningInstance) -> None:
    with instance.lake() as lake:
        with pytest.raises(InvalidError, match="no such strategy is in the instance") as raised:
            lake.create_table("x", SCHEMA, settings={"compaction_strategy": "newest_tow"})
        assert "did you mean 'newest_two'?" in str(raised.value.hint)
        assert raised.value.facts["known"] == "basic, hangs, liar, newest_two, raises, size_ratio"
        with pytest.raises(InvalidError, match="no such iterator is in the instance") as raised:
            lake.create_table("x", SCHEMA, processing=Processing(iterator=IteratorUse("y")))
        assert raised.value.facts["known"] == "fails_later, without_first"
        assert "x" not in lake.tables()


def test_spark_and_only_those_who_call_steps_have_the_packages(assembly: Path) -> None:
    bundles = [path for path in assembly.glob("asset.*") if (path / "lakebed").is_dir()]
    having = {path for path in bundles if (path / "cloud_strategies.py").exists()}
    spark = {path for path in bundles if (path / "spark_jobs").is_dir()}
    assert spark < having < set(bundles)
    images = [path for path in assembly.glob("asset.*") if (path / "Dockerfile").exists()]
    assert len(images) == 2
    assert all((path / "packages" / "cloud_iterators.py").exists() for path in images)
