"""Defines how a connection works: what its definition and its policy say of its pipeline."""

from __future__ import annotations

import msgspec

from lakebed.feeds.pacing.congestion import CongestionRules
from lakebed.feeds.rotation import RotationLimits


class PipelineRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which a connection works.

    limits: of its rounds.
    records_gaps: whether it goes on behind records that the source has no longer; else it stops.
    idle_seconds: of a connection with event time: how long a source split says nothing until it
        is idle; None: event time does not count.
    records_per_second: that this process reads at the most; 0: all.
    congestion: what is done while the source is too fast.
    stops_when_lagging: whether it stops then.
    """

    limits: RotationLimits = RotationLimits()
    records_gaps: bool = False
    idle_seconds: float | None = None
    records_per_second: int = 0
    congestion: CongestionRules = CongestionRules()
    stops_when_lagging: bool = False
