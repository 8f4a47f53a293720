"""The benchmark of bulk imports, with few rows: both sides run, and their outputs are the same."""

from pathlib import Path

import pytest

from benchmarks import bulk_import, inputs
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_small_benchmark_gives_figures_and_leaves_nothing_but_its_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_home("4")
    monkeypatch.setattr(inputs, "CACHE", tmp_path)
    names = [figure.name for figure in bulk_import.run(2_500, 1, ["sys"])]
    assert names == [
        "bulk_import.sys.rows_per_core_second",
        "bulk_import.sys.ratio_to_native",
        "bulk_import.sys.native_rows_per_core_second",
    ]
    assert len(list(tmp_path.iterdir())) == 1


def test_without_spark_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBED_SPARK", "nowhere")
    assert bulk_import.run(2_500, 1, ["sys"]) == []
