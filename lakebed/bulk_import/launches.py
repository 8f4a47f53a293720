"""Decides when machines are asked for again that a platform did not have. Pure."""

from __future__ import annotations

from typing import Literal

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.spark_runs import SparkRun

ROUNDS_MAX = 3
"""Most rounds in which all kinds of machines are tried, one after the other."""

PAUSE_SECONDS = 600
"""Seconds between two rounds."""


def next_launch(run: SparkRun, *, kinds: int, now: Micros) -> Literal["launch", "wait", "fail"]:
    """Return what to do for a run that got no machines. kinds: of machines it may have."""
    if run.launches >= ROUNDS_MAX * kinds:
        return "fail"
    is_round_over = run.launches % kinds == 0
    has_waited = now - run.ended_at >= PAUSE_SECONDS * MICROS_PER_SECOND
    return "launch" if has_waited or not is_round_over else "wait"
