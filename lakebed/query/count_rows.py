"""Counts rows: from the state where it knows exactly, from the files' keys where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.ports.sorted_files import Selection, SortedFiles
from lakebed.query.conditions import everything_of, keys_only
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.query.scan_caps import scan_cap
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.figures import inexact_leaves, rows_known_exactly
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import TableState

BatchT = TypeVar("BatchT")
OnProgress = Callable[[int], None]
"""Is called with how many rows were read and counted so far."""


class CountRows(Generic[BatchT]):
    """Counts rows of one version of a table."""

    def __init__(self, *, query: RunQuery[BatchT], files: SortedFiles[BatchT]) -> None:
        self._query = query
        self._files = files

    def all_rows(
        self,
        table: OpenTable,
        *,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
        on_progress: OnProgress = lambda _rows: None,
    ) -> int:
        """Return how many rows a query without a condition gives. as_of: None for now.

        The state knows it, but for parts of files that were cut by a split and not merged since:
        the keys of these are read. A table that processes rows is read whole.

        Raises:
            As `RunQuery.run`.
        """
        with self._query.version(table, as_of) as state:
            state.require_table()
            processed = state.processing() is not None
            known = 0 if processed else rows_known_exactly(state)
            rest = None if processed else _rest(state, table)
            cap = scan_cap(state.settings().scan_bytes_max, scan_bytes_max)
        if rest is None:
            return self.matching(
                table,
                lambda schema: Selection((everything_of(schema),)),
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
                on_progress=on_progress,
            )
        if as_of is not None:
            rest = self._query.check_kept(table, rest)
        rest = msgspec.structs.replace(rest, scan_bytes_max=cap)
        return known + self._counted(table, rest, on_progress)

    def matching(
        self,
        table: OpenTable,
        ask: Callable[[Schema], Selection],
        *,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
        on_progress: OnProgress = lambda _rows: None,
    ) -> int:
        """Return how many rows a condition keeps: it is a query of one column. as_of: None for now.

        Raises:
            As `RunQuery.run`.
        """
        plan = self._query.plan(
            table,
            lambda s: keys_only(s, ask(s)),
            scan_bytes_max=scan_bytes_max,
            as_of=as_of,
        )
        return self._counted(table, plan, on_progress)

    def _counted(self, table: OpenTable, plan: QueryPlan, on_progress: OnProgress) -> int:
        counted = 0
        for batch in self._query.scan(table, plan):
            counted += self._files.rows(batch)
            on_progress(counted)
        return counted


def _rest(state: TableState, table: OpenTable) -> QueryPlan:
    """Return what is to be read of a table to count the rows that the state only estimates."""
    schema = state.schema()
    leaves = []
    for leaf in sorted(inexact_leaves(state)):
        key_range = own_key_range(state, leaf)
        references = [reference for reference, _ in state.references(leaf)]
        leaves.append(tuple(table.part(r, key_range) for r in references if not r.exact))
    condition = keys_only(schema, Selection((everything_of(schema),)))
    return QueryPlan(state.head().number, schema, tuple(leaves), condition)
