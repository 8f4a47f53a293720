"""`lakebed bulk-import` where Spark cannot run: refused, with a hint that helps."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from lakebed.cli.bulk_import import java_version
from tests.unit.cli.programs import Shell


@pytest.fixture
def trips(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "trips", "--row-key", "id:string")
    return shell


def given_java(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(folder / "jdk"))


def given_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))


def test_without_pyspark_it_says_what_to_install(
    trips: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    run = trips.run("bulk-import", "trips", trips.write("a.parquet", {"id": ["a"]}))
    assert run.exit_code == 2
    assert "pip install 'pyspark==4.0.2'" in run.stderr


def test_without_java_17_it_says_what_to_install(
    trips: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_pyspark(monkeypatch)
    given_java(tmp_path, monkeypatch, "11.0.2")
    run = trips.run("bulk-import", "trips", trips.write("a.parquet", {"id": ["a"]}))
    assert run.exit_code == 2
    assert "Java 17 or newer (found=11)" in run.stderr
    assert "JAVA_HOME" in run.stderr
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    run = trips.run("bulk-import", "trips", trips.write("a.parquet", {"id": ["a"]}))
    assert "found=none" in run.stderr


@pytest.mark.parametrize(
    ("version", "wanted"), [("1.8.0_392", 8), ("17.0.15", 17), ("21", 21), ("25-ea", 25)]
)
def test_a_version_of_java_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, wanted: int
) -> None:
    given_java(tmp_path, monkeypatch, version)
    assert java_version() == wanted


def test_what_is_no_setting_of_spark_is_refused(trips: Shell) -> None:
    run = trips.run("bulk-import", "trips", "a.parquet", "--conf", "memory=1g")
    assert run.exit_code == 2
    assert "spark.NAME=VALUE" in run.stderr
