"""Runs of Spark on this machine: what of a request is taken, and what is refused."""

import importlib.util
from pathlib import Path

import pytest

from lakebed.errors import InvalidError
from localcloud.runner import spark_clusters, spark_runs
from localcloud.templates.running import SparkSpec


def test_settings_are_read_as_spark_submit_reads_them() -> None:
    told = "--conf spark.a=1 --conf spark.b=x=y --conf spark.empty="
    assert spark_runs.conf_in(told.split()) == {"spark.a": "1", "spark.b": "x=y", "spark.empty": ""}


@pytest.mark.parametrize("parameters", ["--jars x.jar", "--conf", "spark.a=1"])
def test_other_parameters_are_refused(parameters: str) -> None:
    with pytest.raises(InvalidError, match="--conf NAME=VALUE"):
        spark_runs.conf_in(parameters.split())


def test_only_assets_of_the_stack_are_run(tmp_path: Path) -> None:
    spec = SparkSpec(name="bulk", assets={"abc": tmp_path})
    assert spark_runs._asset(spec, "s3://assets/abc.zip") == tmp_path
    with pytest.raises(InvalidError, match="no asset of its stack"):
        spark_runs._asset(spec, "s3://assets/other.zip")


def test_without_spark_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InvalidError, match="pip install 'pyspark"):
        spark_runs._pyspark()


def test_a_run_begins_in_an_empty_folder_though_an_earlier_session_had_its_id(
    tmp_path: Path,
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "code.py").touch()
    folder = tmp_path / "private" / "bulk-1"
    for _ in range(2):
        spark_runs._make_empty(folder)
        (folder / "environment").symlink_to(bundle, target_is_directory=True)
    assert [path.name for path in folder.iterdir()] == ["environment"]
    assert (bundle / "code.py").exists()


def test_a_step_says_what_is_run_and_with_which_role() -> None:
    words = ["spark-submit", "--deploy-mode", "cluster", "--conf", "spark.a=b=c"]
    step = {"Name": "n", "HadoopJarStep": {"Args": [*words, "s3://assets/main.py", "n"]}}
    asked = spark_clusters.request_of(step, "j-1-s-1", "arn:role")
    assert (asked.program, asked.arguments, asked.role) == (
        "s3://assets/main.py",
        ["n"],
        "arn:role",
    )
    assert asked.conf == {"spark.a": "b=c"}


@pytest.mark.parametrize(
    "words", [[], ["hadoop", "distcp"], ["spark-submit", "--deploy-mode", "client", "main.py"]]
)
def test_steps_that_submit_otherwise_are_refused(words: list[str]) -> None:
    with pytest.raises(InvalidError, match="spark-submit only"):
        spark_clusters.request_of({"Name": "n", "HadoopJarStep": {"Args": words}}, "x", "r")
