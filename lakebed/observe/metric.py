"""Defines a metric, and its alarm."""

from __future__ import annotations

from typing import Literal

import msgspec

Section = Literal[
    "ingest",
    "feeds",
    "commits",
    "compaction",
    "splitting",
    "garbage",
    "schedules",
    "tasks",
    "errors",
    "costs",
]
"""A section of the dashboard."""

FOLLOWS = "it follows from what users do; none of it is wrong"
"""The reason for which many metrics have no alarm."""


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """Goes off when the metric's sum, or its maximum, over some minutes reaches a threshold.

    page: of `docs/operate`.
    command: of `lakebed`, without that word: what an operator types first.
    """

    threshold: float
    minutes: int
    page: str
    command: str = "status"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric.

    event, fact: where its value is found; no fact: each event counts 1.
    where: facts that the event must have.
    without_alarm: why it has none.
    by_table: whether it is also kept for each table, which costs as much for each.
    of_trouble: whether it has values only where something did not go as it should.
    """

    name: str
    unit: Literal["Count", "Seconds", "Bytes", "Percent"]
    section: Section
    meaning: str
    event: str
    fact: str = ""
    where: tuple[tuple[str, str], ...] = ()
    statistic: Literal["Sum", "Maximum"] = "Sum"
    alarm: Alarm | None = None
    without_alarm: str = ""
    by_table: bool = False
    of_trouble: bool = False

    def value(self, event: str, facts: dict[str, object]) -> float | None:
        """Return what an event says of it; None: nothing."""
        if event != self.event or any(facts.get(name) != value for name, value in self.where):
            return None
        value = facts.get(self.fact, 0) if self.fact else 1
        return value if isinstance(value, int | float) else None
