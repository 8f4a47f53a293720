"""Each figure that is promised of work on many tables has a benchmark that makes it."""

import pytest

from benchmarks.__main__ import found
from benchmarks.processes import ROOT
from tests.unit.benchmarks.test_aims import held_in

SOAK = ROOT / "tests/simulation/soak/__main__.py"
"""`make soak DAYS=5` takes hours: it is no benchmark, and keeps its figures if it is told to."""
PROMISED = {
    "batch.files_per_second.submitted.sqlite": "batching",
    "batch.files_per_second.batched.sqlite": "batching",
    "batch.files_per_second.submitted.ministack": "batching",
    "batch.files_per_second.batched.ministack": "batching",
    "declared.200_tables_seconds": "declared",
    "presplit.first_import.leaves_ratio": "presplit",
    "bulk_import.presplit.ratio_to_split_table": "presplit",
    "ledger.extra_requests_per_unit": "ledger",
    "ledger.difference": "ledger",
    "cost.per_billion_rows.ingest": "ledger",
    "cost.per_billion_rows.merge": "ledger",
    "cost.per_billion_rows.read": "ledger",
    "doctor.seconds": "doctor",
    "doctor.planted_found": "doctor",
    "upgrade.jobs_lost": "upgrade",
}
"""Names of benchmarks, by figure."""


@pytest.mark.parametrize(("figure", "benchmark"), PROMISED.items())
def test_a_benchmark_that_is_found_makes_each_promised_figure(figure: str, benchmark: str) -> None:
    module = found()[benchmark].__module__
    source = ROOT / (module.replace(".", "/") + ".py")
    assert any(one.name.fullmatch(figure) for one in held_in(source))


@pytest.mark.parametrize("figure", ["soak.compactions", "soak.lost"])
def test_the_simulated_soak_makes_its_figures(figure: str) -> None:
    assert any(one.name.fullmatch(figure) for one in held_in(SOAK))
