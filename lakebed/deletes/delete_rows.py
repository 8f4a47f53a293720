"""Deletes rows of a table: by ranges of keys at once, by anything else leaf after leaf."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from lakebed.deletes.drop_ranges import DropRanges
from lakebed.deletes.requests import AskDelete, Deleted, digest_of_delete, ranges_of
from lakebed.deletes.rewrite_leaves import RewriteLeaves
from lakebed.model.names import CommitId, JobId
from lakebed.observe import events
from lakebed.observe.usage import counted_as
from lakebed.ports.sorted_files import Selection
from lakebed.statestore.open_table import OpenTable, start_of

BatchT = TypeVar("BatchT")


class DeleteRows(Generic[BatchT]):
    """Deletes the rows that a selection holds. Safe to kill anywhere, and to call again."""

    def __init__(self, *, ranges: DropRanges[BatchT], rewrite: RewriteLeaves[BatchT]) -> None:
        self._ranges = ranges
        self._rewrite = rewrite

    @counted_as("delete")
    def run(self, table: OpenTable, ask: AskDelete, job: JobId | None = None) -> Deleted:
        """Delete rows. job: a name of the request, which is done once.

        Raises:
            InvalidError: what is asked for cannot be; nothing was deleted.
            JobIdReusedError: the id stands for another request; nothing was deleted.
            What `DropRanges.run` and `RewriteLeaves.run` raise.
        """
        with table.head.reading() as state:
            state.require_table()
            schema = state.schema()
        selection = ask(schema)
        if job is not None:
            number = table.number_of(job, digest_of_delete(selection))
            if number is not None:
                return Deleted(rows=0, number=number, repeated=True, job=job)
        ranges = ranges_of(schema, selection)
        if ranges is not None:
            done = self._ranges.run(table, ranges, selection, job)
        else:
            done = self._rewrite.run(table, ask)
            if job is not None:
                done = _named(table, selection, job, done)
        if done.rows:
            events.emit(
                events.ROWS_DELETED, table=table.name, number=done.number, rows_count=done.rows
            )
        return done


def _named(table: OpenTable, selection: Selection, job: JobId, done: Deleted) -> Deleted:
    """Let the log know that a request was done, in an entry after those that did it."""
    with table.head.reading() as state:
        start = start_of(state)
    digest = digest_of_delete(selection)
    number = table.head.commit(table.of_user(start, CommitId(job), digest))
    return msgspec.structs.replace(done, number=number, job=job)
