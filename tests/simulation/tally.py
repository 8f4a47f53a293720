"""How often each thing went wrong, summed over all worlds and all workers of a test run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lakebed.backends.faulty import Fault
from tests.simulation.faults.weather import Mishap

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
KINDS = (
    *map(str, Fault),
    *map(str, Mishap),
    *(f"killed {moment} {effect}" for effect in KILLED_AT for moment in ("before", "after")),
)


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

    @property
    def never(self) -> list[str]:
        """What did not happen once."""
        return [kind for kind in KINDS if not self.counts[kind]]

    def table(self) -> str:
        """Return one line per kind, then what users were told."""
        told = sorted(kind for kind in self.counts if kind.startswith("told "))
        width = max(map(len, (*KINDS, *told)))
        lines = [f"{kind:<{width}} {self.counts[kind]:>9}" for kind in (*KINDS, *told)]
        return "\n".join((f"{self.worlds} worlds", *lines))


def gathered(folder: Path, name: str, tally: Tally, *, of: int) -> Tally | None:
    """Leave a tally in a folder that all workers share. Returns the sum once all are there."""
    folder.mkdir(exist_ok=True)
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
