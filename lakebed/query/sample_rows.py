"""Draws rows of a table by lot: each has the same chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidError, QueryTooLargeError
from lakebed.model.files import FilePart
from lakebed.model.processing import ProcessingPass
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.ports.sorted_files import ReadFigures, Selection
from lakebed.query.conditions import everything_of
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.open_table import OpenTable

DRAWS_MAX = 128
"""Row groups that rows are taken from. Of more rows several come from each."""
READ_WHOLE_ROWS = 100_000
"""Most rows of a table that is read whole; ten times as many as are asked for, if that is more."""
HELD_ROWS_MIN = 4_096
DRAWS_AGAIN = (1, 8)
"""Multiples of the row groups to draw, one for each draw: processing may leave out too much of what
was drawn first."""


class RowDrawer(Protocol):
    """A sampler that draws stored rows of files."""

    def draw(
        self,
        schema: Schema,
        part: FilePart,
        *,
        draws: int,
        each: int,
        rng: np.random.Generator,
        figures: ReadFigures,
        processing: ProcessingPass | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a part that processing keeps: `each` from each row group for each time that
        it is drawn, or all that it has; `draws` times one is drawn, with a chance like its rows.
        figures: where it counts what it reads.

        Raises:
            QueryTooLargeError: it is more than `figures` allows.
        """
        ...


class SampleRows:
    """Draws rows of one version of a table."""

    def __init__(self, *, query: RunQuery[pa.RecordBatch], files: RowDrawer) -> None:
        self._query = query
        self._files = files

    def run(self, table: OpenTable, rows: int, seed: int, *, as_of: AsOf | None = None) -> pa.Table:
        """Return so many rows, or all where there are fewer, in no order. as_of: the version; None:
        the newest.

        Raises:
            InvalidError: `rows` is no number of rows; there is no such version.
            QueryTooLargeError: it reads more bytes than the table's `scan_bytes_max`.
            VersionExpiredError: the version was collected; call again. CorruptError,
            UnavailableError: as queries.
        """
        if type(rows) is not int or rows < 0:
            hint = "give a number of rows, 0 or more"
            raise InvalidError("not a number of rows", rows=rows, hint=hint)
        if type(seed) is not int or seed < 0:
            raise InvalidError("not a seed", seed=seed, hint="give a whole number, 0 or more")
        rng = np.random.default_rng(seed)
        plan = self._query.plan(
            table, lambda schema: Selection((everything_of(schema),)), as_of=as_of
        )
        if not rows:
            return arrow_schema(plan.schema).empty_table()
        figures = ReadFigures(bytes_max=plan.scan_bytes_max)
        for times in DRAWS_AGAIN if _can_be_drawn(plan, rows) else ():
            with self._query.explained_errors(table, plan), _fewer_rows(table):
                found = self._drawn(plan, rows, times, rng, figures)
            if len(found) >= rows:
                return found.take(rng.choice(len(found), rows, replace=False))
        return _lots(self._query.read(table, plan), arrow_schema(plan.schema), rows, rng)

    def _drawn(
        self,
        plan: QueryPlan,
        rows: int,
        times: int,
        rng: np.random.Generator,
        figures: ReadFigures,
    ) -> pa.Table:
        """Return at least so many rows, if processing leaves enough of what is drawn."""
        parts = _parts(plan)
        weights = np.array([part.rows for part in parts], np.float64)
        draws = min(rows, DRAWS_MAX) * times
        each = -(-rows // min(rows, DRAWS_MAX))
        found: list[pa.RecordBatch] = []
        of_parts = rng.multinomial(draws, weights / weights.sum())
        for index in np.flatnonzero(of_parts):
            found += self._files.draw(
                plan.schema,
                parts[index],
                draws=int(of_parts[index]),
                each=each,
                rng=rng,
                figures=figures,
                processing=plan.processing,
            )
        return pa.Table.from_batches(found, arrow_schema(plan.schema))


@contextmanager
def _fewer_rows(table: OpenTable) -> Iterator[None]:
    """Say of a sample that reads more than it may what a sample can be asked for."""
    try:
        yield
    except QueryTooLargeError as error:
        hint = "draw fewer rows, or raise the table's scan_bytes_max"
        facts = {"table": table.name, **error.facts}
        raise QueryTooLargeError(error.message, hint=hint, **facts) from error


def _can_be_drawn(plan: QueryPlan, rows: int) -> bool:
    """Return whether each row that a query gives is stored as it is, in more rows than are soon
    read."""
    if plan.processing is not None and plan.processing.processing.merges_rows:
        return False
    return sum(part.rows for part in _parts(plan)) > max(READ_WHOLE_ROWS, 10 * rows)


def _parts(plan: QueryPlan) -> list[FilePart]:
    return [part for of_leaf in plan.leaves for part in of_leaf]


def _lots(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, rng: np.random.Generator
) -> pa.Table:
    """Return the rows that drew the least lots, reading all. Holds at most three times as many, or
    a few thousand."""
    held: list[pa.RecordBatch] = []
    lots: list[npt.NDArray[np.float64]] = []
    waiting, highest = 0, 1.0
    for batch in batches:
        drawn = rng.random(len(batch))
        low = np.flatnonzero(drawn < highest)
        held.append(batch.take(pa.array(low)))
        lots.append(drawn[low])
        waiting += len(low)
        if waiting >= max(3 * rows, HELD_ROWS_MIN):
            kept, least = _least(held, lots, schema, rows)
            held, lots = kept.to_batches(), [least]
            waiting, highest = len(least), float(least.max())
    return _least(held, lots, schema, rows)[0]


def _least(
    held: list[pa.RecordBatch], lots: list[npt.NDArray[np.float64]], schema: pa.Schema, rows: int
) -> tuple[pa.Table, npt.NDArray[np.float64]]:
    """Return the rows with the least lots, and these."""
    table = pa.Table.from_batches(held, schema)
    all_lots = np.concatenate(lots) if lots else np.empty(0)
    if len(all_lots) <= rows:
        return table, all_lots
    chosen = np.argpartition(all_lots, rows)[:rows]
    return table.take(chosen).combine_chunks(), all_lots[chosen]
