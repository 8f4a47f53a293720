"""The benchmark of Spark's scans, with few rows."""

from pathlib import Path

import pytest

from benchmarks import inputs
from benchmarks.under_spark import spark_scan
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_small_benchmark_gives_figures_and_leaves_nothing_but_its_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_home("4")
    monkeypatch.setattr(inputs, "CACHE", tmp_path)
    names = [figure.name for figure in spark_scan.run(2_500, 1)]
    assert names == [
        "spark_scan.ratio_to_parquet",
        "spark_scan.format_ratio_to_parquet",
        "spark_scan.rows_per_core_second",
        "spark_scan.parquet_rows_per_core_second",
    ]
    assert len(list(tmp_path.iterdir())) == 1


def test_without_spark_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBED_SPARK", "nowhere")
    assert spark_scan.run(2_500, 1) == []
