"""Deletes rows of a table: by ranges of keys at once, by anything else leaf after leaf."""

from __future__ import annotations

from typing import Generic, TypeVar

from lakebed.deletes.delete_ranges import DeleteRanges
from lakebed.deletes.requests import AskDelete, Deleted, digest_of_delete, ranges_of
from lakebed.errors import InvalidError
from lakebed.model.names import JobId
from lakebed.observe import events
from lakebed.statestore.open_table import OpenTable

BatchT = TypeVar("BatchT")


class DeleteRows(Generic[BatchT]):
    """Deletes the rows that a selection holds. Safe to kill anywhere, and to call again."""

    def __init__(self, *, ranges: DeleteRanges[BatchT]) -> None:
        self._ranges = ranges

    def run(self, table: OpenTable, ask: AskDelete, job: JobId | None = None) -> Deleted:
        """Delete rows. job: a name of the request, which is done once.

        Raises:
            InvalidError: what is asked for cannot be; nothing was deleted.
            JobIdReusedError: the id stands for another request; nothing was deleted.
            What `DeleteRanges.run` and `RewriteLeaves.run` raise.
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
        if ranges is None:
            hint = "give at most 16 keys or ranges of leading key fields, and no predicate"
            raise InvalidError("only ranges of whole keys can be deleted", hint=hint)
        done = self._ranges.run(table, ranges, selection, job)
        if done.rows:
            events.emit(
                events.ROWS_DELETED, table=table.name, number=done.number, rows_count=done.rows
            )
        return done
