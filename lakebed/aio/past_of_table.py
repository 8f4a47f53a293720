"""The async twin of `lakebed.face.past_of_table`.

Made by `make docs` from `lakebed/face/past_of_table.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.known_table import KnownTable
from lakebed.face.past_of_table import PastOfTable as SyncPastOfTable
from lakebed.tables.change_table import TableHistory

if TYPE_CHECKING:
    from lakebed.inspection.log_listing import LogListing
    from lakebed.inspection.past_state import StateShown


class PastOfTable(KnownTable):
    """A table whose past can be read."""

    _sync: SyncPastOfTable

    async def history(self) -> TableHistory:
        """Return creation, clears, changes of settings and fields, as far as the log is kept."""
        return await self._calls.run(self._sync.history)

    async def log(self, *, after: int | None = None, entries_max: int = 50) -> LogListing:
        """Return entries of the log, readable. after: the number before the first; None: the last.

        Raises:
            LogTruncatedError: entries that far back are gone: the hint says what is kept.
        """
        return await self._calls.run(lambda: self._sync.log(after=after, entries_max=entries_max))

    async def state(self, *, number: int | None = None, files_max: int = 0) -> StateShown:
        """Return what the state at an entry of the log holds.

        number: None for the newest.
        files_max: of references that are listed.

        Raises:
            InvalidError: no such entry, or no snapshot and log reach back to it.
        """
        return await self._calls.run(lambda: self._sync.state(number=number, files_max=files_max))

    async def write_snapshot(self) -> int:
        """Write a snapshot of the newest state, unless it is there. Returns the state's number."""
        return await self._calls.run(self._sync.write_snapshot)
