"""Stages the rows of a round, and says which refusals of a table are about rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from lakebed.errors import IteratorError, SumTooLargeError
from lakebed.feed_errors import InvalidKeyError, RowsRefusedError
from lakebed.feeds.made_rows import MadeRows
from lakebed.ingest.stage_rows import StagedRows, StageRows, Writer
from lakebed.model.schema import Schema
from lakebed.processing.iterators import load_iterator
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.open_table import OpenTable

BatchT = TypeVar("BatchT")

ABOUT_ROWS = (InvalidKeyError, SumTooLargeError, IteratorError)
"""Errors of a table that other rows may not meet. All others refuse a round whatever its rows are,
as where a bucket is gone: no record is to blame for them."""
TRIED_MAX = 8
"""Most rows of a refused round that are tried alone."""


def stage_round(
    stage: StageRows[BatchT],
    table: OpenTable,
    schema: Schema,
    made: Sequence[MadeRows[BatchT]],
    *,
    writer: Writer,
    row: Callable[[BatchT, int], BatchT] | None,
) -> StagedRows:
    """Write the rows of a round to new files.

    row: returns one of some rows; where some are refused, a few are tried alone. None: none are.

    Raises:
        RowsRefusedError: the table refuses the rows for what they are.
        IteratorError: the table's iterator cannot be loaded or configured here.
        Others as `StageRows.run`.
    """
    _load_iterator(table, schema)
    filled = [(one.rows, one.rows_count) for one in made if one.rows is not None]

    def takes(rows: BatchT) -> bool:
        own = Writer(writer.base, writer.job, table.fresh_run())
        try:  # its file is never committed
            return bool(stage.run(table, schema, [rows], writer=own).references)
        except ABOUT_ROWS:
            return False

    try:
        return stage.run(table, schema, [rows for rows, _ in filled], writer=writer)
    except ABOUT_ROWS as error:
        tried = [] if row is None else _some_rows(filled, row)
        takes_others = any(map(takes, tried)) if tried else None
        raise RowsRefusedError(error, takes_others=takes_others) from error


def _load_iterator(table: OpenTable, schema: Schema) -> None:
    """Load the table's iterator, so that a package which is not there is no fault of rows."""
    with table.head.reading() as state:
        processing = state.processing()
    if processing is not None and processing.iterator is not None:
        load_iterator(processing.iterator, arrow_schema(schema))


def _some_rows(
    filled: Sequence[tuple[BatchT, int]], row: Callable[[BatchT, int], BatchT]
) -> list[BatchT]:
    """Return a few of some rows, each alone, from the last one to the first; none of a single one.
    filled: rows, and how many they are."""
    ends = list(accumulate(count for _, count in filled))
    if not ends or ends[-1] < 2:
        return []
    found = list[BatchT]()
    tried = {(ends[-1] - 1) * share // (TRIED_MAX - 1) for share in range(TRIED_MAX)}
    for index in sorted(tried, reverse=True):
        number = bisect_right(ends, index)
        rows, count = filled[number]
        found.append(row(rows, index - ends[number] + count))
    return found
