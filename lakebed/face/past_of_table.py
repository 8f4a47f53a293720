"""Reads what became of a table: its log, and its state at an entry of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.face.known_table import KnownTable
from lakebed.model.names import TransactionNumber
from lakebed.statestore.snapshots import Snapshots
from lakebed.tables.change_table import (
    TableHistory,
    history,
)

if TYPE_CHECKING:
    from lakebed.inspection.log_listing import LogListing
    from lakebed.inspection.past_state import StateShown


class PastOfTable(KnownTable):
    """A table whose past can be read."""

    def history(self) -> TableHistory:
        """Return creation, clears, changes of settings and fields, as far as the log is kept."""
        return history(self._app.logs.open(self._opened.id))

    def log(self, *, after: int | None = None, entries_max: int = 50) -> LogListing:
        """Return entries of the log, readable. after: the number before the first; None: the last.

        Raises:
            LogTruncatedError: entries that far back are gone: the hint says what is kept.
        """
        from lakebed.inspection.log_listing import list_log

        number = None if after is None else TransactionNumber(after)
        return list_log(self._app.logs.open(self._opened.id), after=number, entries_max=entries_max)

    def state(self, *, number: int | None = None, files_max: int = 0) -> StateShown:
        """Return what the state at an entry of the log holds.

        number: None for the newest.
        files_max: of references that are listed.

        Raises:
            InvalidError: no such entry, or no snapshot and log reach back to it.
        """
        from lakebed.inspection.past_state import (
            show_state,
            state_at,
        )

        log, snapshots = self._app.logs.open(self._opened.id), self._snapshots()
        wanted = None if number is None else TransactionNumber(number)
        return show_state(state_at(log, snapshots, wanted), self.name, files_max=files_max)

    def write_snapshot(self) -> int:
        """Write a snapshot of the newest state, unless it is there. Returns the state's number."""
        with self._opened.head.reading() as state:
            return self._snapshots().write(state)

    def _snapshots(self) -> Snapshots:
        return self._app.heads.snapshots(self._opened.id)
