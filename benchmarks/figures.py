"""What a benchmark gives: figures, each with its unit and the aim it is held to."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple


class Figure(NamedTuple):
    """One measured number. aim: the bound it is held to; None: it is told, not judged."""

    name: str
    value: float
    unit: str
    aim: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def is_reached(self) -> bool:
        """Whether the value keeps the aim."""
        if self.aim is None:
            return True
        return self.value <= self.aim if self.better == "lower" else self.value >= self.aim


def table(figures: Iterable[Figure]) -> str:
    """Return figures as lines for people."""
    rows = [("figure", "value", "unit", "aim", "")]
    for f in figures:
        sign = "<=" if f.better == "lower" else ">="
        aim = "" if f.aim is None else f"{sign} {f.aim:,.10g}"
        rows.append((f.name, rounded(f.value), f.unit, aim, "" if f.is_reached else "missed"))
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    return "\n".join(
        f"{n:<{widths[0]}}  {v:>{widths[1]}}  {u:<{widths[2]}}  {a:>{widths[3]}}  {m}".rstrip()
        for n, v, u, a, m in rows
    )


def medians(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each column of measurements that were taken in turn."""
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def quick(doc: str | None, run: Callable[..., list[Figure]]) -> None:
    """Print the figures of a benchmark, perhaps of few rows: the command line of its module."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("shapes", nargs="*", help="their names; none: all")
    parser.add_argument("--rows", type=int, help="of each of the files, instead of the shape's")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    print(table(run(given.rows, given.rounds, given.shapes)))


def rounded(value: float) -> str:
    """Return a value with as many digits as mean something."""
    digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}"
