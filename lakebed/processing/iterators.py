"""Iterators: steps that users write, found by name in installed packages.

An entry point of the group `lakebed.iterators` names a callable. It is called with the columns (a
`pyarrow.Schema`) and the configuration (a dict), and returns a callable that takes an iterator of
sorted record batches and gives record batches of the same columns, in the order of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakebed.config.packages import ITERATORS, installed_steps
from lakebed.errors import IteratorError, LakebedError, did_you_mean
from lakebed.model.processing import IteratorUse

Batches = Iterator[pa.RecordBatch]
RowIterator = Callable[[Batches], Iterable[pa.RecordBatch]]


def load_iterator(use: IteratorUse, columns: pa.Schema) -> RowIterator:
    """Return the iterator, made ready for a table's columns.

    Raises:
        IteratorError: no installed package has it, or it cannot be loaded or configured.
    """
    installed = installed_steps(ITERATORS)
    found = installed.get(use.name)
    if found is None:
        hint = did_you_mean(use.name, installed, what="iterator")
        raise IteratorError("no installed package has this iterator", iterator=use.name, hint=hint)
    with IteratorGuard(use.name):
        made: Any = found.load()(columns, dict(use.config))
        if not callable(made):
            raise IteratorError("an iterator's entry point gave nothing to call", iterator=use.name)
        ready: RowIterator = made
        return ready
    raise AssertionError("the guard lets nothing out but errors")


class IteratorGuard:
    """Around calls of a user's code; lets out only our own errors, those of its input first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._problem: BaseException | None = None

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._problem is not None and error is not None and error is not self._problem:
            raise self._problem from error
        if isinstance(error, Exception) and not isinstance(error, LakebedError):
            raise IteratorError(
                "an iterator failed",
                iterator=self._name,
                problem=f"{type(error).__name__}: {error}"[:500],
                hint="mend it, then run the same again",
            ) from error

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """Yield the batches, and remember what they raise: the user's code may swallow it."""
        try:
            yield from batches
        except BaseException as problem:
            if not isinstance(problem, GeneratorExit):
                self._problem = problem
            raise

    def next_of(self, batches: Batches) -> pa.RecordBatch | None:
        """Return what the iterator gives next; None at its end."""
        with self:
            batch = next(batches, None)
            if self._problem is not None:
                raise self._problem
            if batch is not None and not isinstance(batch, pa.RecordBatch):
                raise IteratorError(
                    "an iterator gave something else than record batches",
                    iterator=self._name,
                    got=type(batch).__name__,
                )
            return batch
        raise AssertionError("the guard lets nothing out but errors")

    def iter_of(self, made: RowIterator, batches: Iterable[pa.RecordBatch]) -> Batches:
        """Return what the iterator gives for these batches."""
        with self:
            return iter(made(self.watched(batches)))
        raise AssertionError("the guard lets nothing out but errors")
