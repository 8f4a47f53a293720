"""A pin of a long reader: garbage collection keeps the files of its version (H24, H38)."""

from __future__ import annotations

from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.ports.clock import Clock
from lakebed.statestore.keep_versions import commit_kept
from lakebed.statestore.log_entries.table_changes import DropPin, PutPin
from lakebed.statestore.log_entries.version_changes import PinVersion
from lakebed.statestore.open_table import OpenTable, start_of

PIN_SECONDS = 86_400
"""After which a pin ends by itself: its reader may be dead."""
PIN_RENEWED_SECONDS = 3_600.0
"""A reader gives its pin a new end this often, and before half of the pin's time is over."""


class VersionPin:
    """Keeps one version of a table.

    id_: used by one reader only.
    number: of the version, which may be an older one; None: the version of the log entry that
        `put` writes first.
    seconds: of log time, after which it ends by itself; 1 or more.
    """

    def __init__(
        self,
        table: OpenTable,
        id_: str,
        clock: Clock,
        *,
        number: TransactionNumber | None = None,
        seconds: int = PIN_SECONDS,
    ) -> None:
        self._table = table
        self._id = id_
        self._clock = clock
        self._number = number
        self._seconds = seconds
        self._put_at = clock.monotonic()

    def put(self) -> None:
        """Commit the pin; again: give it a new end.

        Raises:
            As `TableHead.commit`. Where a number is given: VersionExpiredError: the version is not
            kept any more. InvalidError: it lies ahead. FormatGateError: older releases may still
            work on the lake. Nothing was changed.
        """
        until = Micros(self._table.head.log_time() + self._seconds * MICROS_PER_SECOND)
        if self._number is None:
            with self._table.head.reading() as state:
                state.require_table()
                start = start_of(state)
            self._table.head.commit(self._table.own(start, PutPin(self._id, until)))
        else:
            commit_kept(self._table, PinVersion(self._id, self._number, until))
        self._put_at = self._clock.monotonic()

    def renew(self) -> None:
        """Give it a new end, when it is time. Raises: as `put`."""
        after = min(PIN_RENEWED_SECONDS, self._seconds / 2)
        if self._clock.monotonic() >= self._put_at + after:
            self.put()

    def drop(self) -> None:
        """Let the version be collected. Raises: as `TableHead.commit`."""
        with self._table.head.reading() as state:
            start = start_of(state)
        self._table.head.commit(self._table.own(start, DropPin(self._id)))
