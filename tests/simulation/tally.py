"""How often each thing went wrong, summed over all worlds and all workers of a test run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakebed.backends.faulty import Fault, RegistryFault
from tests.simulation.faults.weather import Mishap
from tests.simulation.feeds.fed_rows import TimeMishap
from tests.simulation.feeds.model_source import SourceMishap

KILLED_AT = (
    "log append",
    "log truncate",
    "object put",
    "object delete",
    "queue send",
    "queue delete",
    "name claim",
    "name release",
)
KILLED_BY_FEEDS = ("log append", "object put")
KINDS = (
    *map(str, Fault),
    *map(str, Mishap),
    *(f"killed {moment} {effect}" for effect in KILLED_AT for moment in ("before", "after")),
)
"""What happens in whole lakes."""
KINDS_OF_SOURCES = (
    *map(str, SourceMishap),
    *map(str, RegistryFault),
    *(f"killed {at} {effect}" for effect in ("beat", "claim") for at in ("before", "after")),
    *map(str, TimeMishap),
)
"""What happens to sources, to leases of their splits, and in event time."""
KINDS_OF_FEEDS = (
    Fault.ANOTHER_BEFORE_APPEND,
    Fault.ANOTHER_ELSEWHERE,
    Fault.LATE_DELIVERED,
    *(fault for fault in Fault if fault.startswith(("append ", "log read ", "put "))),
    Fault.READ_THROTTLED,
    Mishap.STALL_SECONDS,
    Mishap.STALL_HOURS,
    Mishap.STALL_DAYS,
    Mishap.CLOCK_AHEAD,
    Mishap.CLOCK_BEHIND,
    Mishap.CLOCK_MONTHS_AHEAD,
    Mishap.CLOCK_MONTHS_BEHIND,
    Mishap.IDLE_MONTHS,
    Mishap.CACHE_LOST,
    Mishap.CACHE_KEPT,
    Mishap.SNAPSHOT_DAMAGED,
    Mishap.SNAPSHOT_SPOILED,
    Mishap.LATE_DROPPED,
    *(f"killed {at} {effect}" for effect in KILLED_BY_FEEDS for at in ("before", "after")),
    *KINDS_OF_SOURCES,
)
"""What happens to feeds in their worlds. They list, delete and truncate nothing, and have no queue:
that is for whole lakes."""


class Tally:
    """Counts of what happened, and of worlds."""

    def __init__(self) -> None:
        self.worlds = 0
        self.counts: Counter[str] = Counter()

    def add(self, counts: Counter[str]) -> None:
        """Count one world."""
        self.worlds += 1
        self.counts += counts

    def merge(self, worlds: int, counts: Mapping[str, int]) -> None:
        """Count those of another."""
        self.worlds += worlds
        self.counts += Counter(counts)

    def never(self, kinds: Iterable[str]) -> list[str]:
        """Return what of this did not happen once."""
        return [kind for kind in kinds if not self.counts[kind]]

    def table(self) -> str:
        """Return one line per kind, then what users were told. Kinds of sources: if a world had
        one."""
        told = sorted(kind for kind in self.counts if kind.startswith("told "))
        has_source = any(self.counts[kind] for kind in KINDS_OF_SOURCES)
        shown = (*KINDS, *(KINDS_OF_SOURCES if has_source else ()), *told)
        width = max(map(len, shown))
        lines = [f"{kind:<{width}} {self.counts[kind]:>9}" for kind in shown]
        return "\n".join((f"{self.worlds} worlds", *lines))


def gathered(folder: Path, name: str, tally: Tally, *, of: int) -> Tally | None:
    """Leave a tally in a folder that all workers share. Returns the sum once all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{name}.draft"
    draft.write_text(json.dumps([tally.worlds, tally.counts]))
    draft.rename(folder / f"{name}.json")
    found = list(folder.glob("*.json"))
    if len(found) < of:
        return None
    total = Tally()
    for path in found:
        total.merge(*json.loads(path.read_text()))
    return total
