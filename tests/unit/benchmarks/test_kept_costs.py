"""Figures that follow from others are kept as they follow from them now."""

from benchmarks.costs import ROW_BYTES, reckoned
from benchmarks.figure_pages.page import latest

AGAIN = "run `python -m benchmarks costs`, then `make docs`"


def test_costs_are_kept_as_they_are_reckoned_now() -> None:
    kept = {f.name: f.value for f in latest() if f.name.startswith("cost.")}
    now = {f.name: float(f"{f.value:.4g}") for f in reckoned(kept.pop(ROW_BYTES))}
    assert kept == now, AGAIN
