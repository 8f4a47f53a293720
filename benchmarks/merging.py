"""Merges of the same files by several engines in turn, each output checked, medians taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.checking import Check, Contents, contents
from benchmarks.figures import medians
from benchmarks.inputs import files_in, scratch
from benchmarks.processes import Used, measured
from benchmarks.shapes import Shape


class Engine(NamedTuple):
    """A module that is measured. It is given the store, then its arguments."""

    module: str
    arguments: tuple[str, ...]
    cpus: int = 1
    sorts: bool = True


class Taken(NamedTuple):
    """Medians of an engine's runs. size: of its output, in bytes."""

    rows: int
    used: Used
    size: float

    @property
    def rate(self) -> float:
        """Rows a second of processor time."""
        return self.rows / self.used.cpu_seconds


def merges(shape: Shape, root: Path, engines: Sequence[Engine], rounds: int) -> list[Taken]:
    """Return what each engine took to merge the files of a store into one."""
    wanted = _wanted(root)
    check = Check(wanted, shape.keys)
    taken: list[list[tuple[float, ...]]] = [[] for _ in engines]
    with scratch(root) as store:
        inputs = set(store.rglob("*.parquet"))
        for _ in range(rounds):
            for engine, runs in zip(engines, taken, strict=True):
                used = measured(engine.module, str(store), *engine.arguments, cpus=engine.cpus)
                (output,) = set(store.rglob("*.parquet")) - inputs
                check([output], engine.module, sorts=engine.sorts)
                runs.append((*used, output.stat().st_size))
                output.unlink()
    return [_median(wanted.rows, runs) for runs in taken]


@cache
def _wanted(root: Path) -> Contents:
    return contents(files_in(root))


def _median(rows: int, runs: Sequence[Sequence[float]]) -> Taken:
    *used, size = medians(runs)
    return Taken(rows, Used(*used), size)
