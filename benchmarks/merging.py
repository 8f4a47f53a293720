"""Merges of the same files by several engines in turn, each output checked, medians taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from benchmarks.figures import medians
from benchmarks.inputs import files_in, parts_in, scratch
from benchmarks.peers.checking import Check, Contents, contents, contents_of
from benchmarks.processes import Used, measured
from benchmarks.shapes import SHAPES, Shape


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
    wanted = _wanted(root, shape.name)
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
    rows = sum(part.rows for part in parts_in(root))
    return [_median(rows, runs) for runs in taken]


@cache
def _wanted(root: Path, shape: str) -> Contents:
    files = files_in(root)
    given = SHAPES[shape]
    return contents(files) if given.folds is None else contents_of([_folded(files, given)])


def _folded(files: Sequence[Path], shape: Shape) -> pl.DataFrame:
    """Return what a merge has to give, by Polars."""
    assert shape.folds is not None
    assert shape.since is not None
    column, least = shape.since
    folds = [getattr(pl.col(name), fold)() for name, fold in shape.folds.items()]
    rows = pl.scan_parquet(list(files)).filter(pl.col(column) >= least)
    return (
        rows.group_by(shape.keys)
        .agg(folds)
        .select([field.name for field in shape.schema.fields])
        .collect()
    )


def _median(rows: int, runs: Sequence[Sequence[float]]) -> Taken:
    *used, size = medians(runs)
    return Taken(rows, Used(*used), size)
