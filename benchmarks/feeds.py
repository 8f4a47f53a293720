"""Feeds: records of Kafka into a sorted table, by one process and by several."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.feeding import fleets, many_splits, one_core
from benchmarks.figures import Figure, quick


def run(rows: int | None = None, rounds: int = 3, _shapes: Sequence[str] = ()) -> list[Figure]:
    """Measure. rows: of each topic partition. rounds: of each, in turns. Takes five minutes."""
    return [*one_core.run(rows, rounds), *many_splits.run(), *fleets.run(rounds)]


if __name__ == "__main__":
    quick(__doc__, run)
