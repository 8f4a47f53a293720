"""The benchmark of first imports, with few rows: both ways run, and both give figures."""

from pathlib import Path

import pytest

from benchmarks import inputs
from benchmarks.under_spark import presplit
from tests.spark.shell import spark_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_small_benchmark_gives_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark_home("4")
    monkeypatch.setattr(inputs, "CACHE", tmp_path)
    figures = {figure.name: figure for figure in presplit.run(20_000, 1)}
    assert list(figures) == [
        "presplit.first_import.leaves_ratio",
        "presplit.first_import.leaves_ratio_of_even_points",
        "bulk_import.presplit.ratio_to_split_table",
        "bulk_import.presplit.rows_per_core_second",
    ]
    assert figures["presplit.first_import.leaves_ratio"].is_reached
