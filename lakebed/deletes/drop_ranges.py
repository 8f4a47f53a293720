"""Deletes ranges of whole keys: their rows are counted, then one entry of the log drops what the
ranges hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.deletes.requests import Deleted, digest_of_delete
from lakebed.errors import ConflictError, LogConflictError
from lakebed.model.files import FilePart
from lakebed.model.names import CommitId, JobId, PartitionId, TransactionNumber
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import shares_of
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import Selection, SortedFiles
from lakebed.query.conditions import everything_of, keys_only
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.statestore.format_gate import check_entry_format
from lakebed.statestore.log_entries.range_deletes import DELETE_FORMAT, DeleteRanges, Shares
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.range_contents import (
    LeafInRanges,
    digest_of_files,
    leaves_in_ranges,
)
from lakebed.statestore.table_state.state import TableState

BatchT = TypeVar("BatchT")
COUNTED_TIMES_MAX = 4
"""Most times that rows are counted; then the ranges are deleted with whatever they hold, and `rows`
is what was counted last."""


class _Found(msgspec.Struct, frozen=True):
    """The rows that the ranges hold in one state.

    known: rows that this state knows exactly.
    rest: a query of one column that gives the others.
    """

    start: Start
    schema: Schema
    ranges: tuple[KeyRange, ...]
    leaves: tuple[LeafInRanges, ...]
    known: int
    rest: QueryPlan


class DropRanges(Generic[BatchT]):
    """Deletes ranges of whole keys at once. Safe to kill anywhere."""

    def __init__(self, *, query: RunQuery[BatchT], files: SortedFiles[BatchT]) -> None:
        self._query = query
        self._files = files

    def run(
        self,
        table: OpenTable,
        ranges: Sequence[KeyRange],
        selection: Selection,
        job: JobId | None = None,
    ) -> Deleted:
        """Delete the rows of some ranges that do not meet.

        selection: the same as it was asked for.
        job: a name of the request, which is done once.

        Raises:
            FormatGateError: the lake does not allow such entries yet; nothing was deleted.
            ConflictError, UnavailableError: nothing was deleted; call again.
            UnknownOutcomeError: call again; twice is as good as once.
        """
        check_entry_format(DELETE_FORMAT, table.head.formats)
        for tried in range(1, COUNTED_TIMES_MAX + 1):
            is_last = tried == COUNTED_TIMES_MAX
            with table.head.reading() as state:
                found = _found(state, table, ranges)
            try:
                rows = self._counted(table, found)
                if not rows and job is None:  # and no leaf is cut for nothing
                    return Deleted(rows=0, number=found.start.base)
                changes = [self._change(table, found, rows, whatever=is_last)] if rows else []
                number = self._commit(table, found.start, changes, selection, job)
            except LogConflictError:  # it has been tried for long enough
                raise
            except ConflictError:  # it holds other files by now, some of which were collected
                if is_last:
                    raise
            else:
                repeated = number <= found.start.base
                return Deleted(
                    rows=0 if repeated else rows,
                    number=number,
                    exact=not is_last,
                    repeated=repeated,
                    job=job,
                )
        raise AssertionError("the last try returns or raises")

    def _counted(self, table: OpenTable, found: _Found) -> int:
        batches = self._query.scan(table, found.rest)
        return found.known + sum(map(self._files.rows, batches))

    def _change(
        self, table: OpenTable, found: _Found, rows: int, *, whatever: bool
    ) -> DeleteRanges:
        """Return what deletes the ranges. whatever: they may hold others than were counted."""
        files = b"" if whatever else digest_of_files(found.leaves)
        ranges = tuple((r.min, r.max) for r in found.ranges)
        shares = self._shares(table, found.schema, found.leaves)
        return DeleteRanges(ranges, files, shares, rows)

    def _shares(
        self, table: OpenTable, schema: Schema, leaves: Sequence[LeafInRanges]
    ) -> tuple[tuple[PartitionId, Shares], ...]:
        """Return how the rows of each leaf that is cut are shared out, by the samples of its
        files."""
        cut = []
        for leaf in leaves:
            points = leaf.points
            if points:
                parts = [table.part(r, leaf.own) for r, _ in leaf.held]
                shares = tuple(
                    (part.file.name, shares_of(self._files.sample(schema, part), points))
                    for part in parts
                )
                cut.append((leaf.id, tuple(share for share in shares if share[1])))
        return tuple(cut)

    def _commit(
        self,
        table: OpenTable,
        start: Start,
        changes: Sequence[DeleteRanges],
        selection: Selection,
        job: JobId | None,
    ) -> TransactionNumber:
        if job is None:
            return table.head.commit(table.own(start, *changes))
        digest = digest_of_delete(selection)
        return table.head.commit(table.of_user(start, CommitId(job), digest, *changes))


def _found(state: TableState, table: OpenTable, ranges: Sequence[KeyRange]) -> _Found:
    state.require_table()
    schema = state.schema()
    processing = table.shown_until_gone(state)
    leaves = tuple(leaves_in_ranges(state, ranges))
    known = 0
    merges: list[tuple[FilePart, ...]] = []
    for leaf in leaves:
        references = [reference for reference, _ in leaf.held]
        if processing is None:
            whole = [r for r in references if r.exact and leaf.is_inside(r)]
            known += sum(r.rows for r in whole)
            references = [r for r in references if r not in whole]
        for inside in leaf.inside:
            met = [r for r in references if leaf.keys_of(r).overlaps(inside)]
            merges.append(tuple(table.part(r, inside) for r in met))
    condition = keys_only(schema, Selection((everything_of(schema),)))
    rest = QueryPlan(
        number=state.head().number,
        schema=schema,
        leaves=tuple(parts for parts in merges if parts),
        condition=condition,
        processing=processing,
    )
    return _Found(start_of(state), schema, tuple(ranges), leaves, known, rest)
