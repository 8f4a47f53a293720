"""A pin of a long reader: garbage collection keeps the files of its version (H24, H38)."""

from __future__ import annotations

from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.ports.clock import Clock
from lakebed.statestore.keep_versions import commit_kept
from lakebed.statestore.log_entries.table_changes import DropPin, PutPin
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT, PinVersion
from lakebed.statestore.open_table import OpenTable, start_of

PIN_SECONDS = 86_400
"""Seconds after which a pin ends by itself: its reader may be dead."""
BACKUP_PINS = "backup-"
"""Prefix of the pins of backups. A backup has the state of its version in its hands: it is read by
no other process, and is not part of the copy."""
PIN_RENEWED_SECONDS = 3_600.0
"""A reader gives its pin a new end this often, and before half of the pin's time is over."""


class VersionPin:
    """Keeps one version of a table.

    id_: used by one reader only.
    number: of the version, which may be an older one; None: the version of the log entry that
        `put` writes first.
    was_newest: the number is what an earlier pin of this id got, which was given none.
    seconds: of log time, after which it ends by itself; 1 or more.
    """

    def __init__(
        self,
        table: OpenTable,
        id_: str,
        clock: Clock,
        *,
        number: TransactionNumber | None = None,
        was_newest: bool = False,
        seconds: int = PIN_SECONDS,
    ) -> None:
        self._table = table
        self.id = id_
        self._clock = clock
        self._number = number
        self._was_newest = was_newest
        self._seconds = seconds
        self._put_at = clock.monotonic()

    @property
    def number(self) -> TransactionNumber:
        """Return the version that is kept, once `put` has returned."""
        assert self._number is not None, "it is put first"
        return self._number

    def put(self) -> None:
        """Commit the pin; again: give it a new end. One that has ended pins the same version again.
        Only where older releases may still work on the lake, a pin that was given no number gets
        the newest version then: they know no other pin.

        Raises:
            As `TableHead.commit`. VersionExpiredError: the version is not kept any more. Where a
            number is given: InvalidError: it lies ahead. FormatGateError: older releases may still
            work on the lake. Nothing was changed.
        """
        until = Micros(self._table.head.log_time() + self._seconds * MICROS_PER_SECOND)
        if self._number is None:
            self._number, self._was_newest = self._put_newest(until), True
        elif self._was_newest and self._table.head.formats().entry < VERSION_FORMAT:
            self._put_newest(until)
        else:
            commit_kept(self._table, PinVersion(self.id, self._number, until))
        self._put_at = self._clock.monotonic()

    def _put_newest(self, until: Micros) -> TransactionNumber:
        with self._table.head.reading() as state:
            state.require_table()
            start = start_of(state)
        return self._table.head.commit(self._table.own(start, PutPin(self.id, until)))

    def renew(self) -> None:
        """Give it a new end, when it is time. Raises: as `put`."""
        after = min(PIN_RENEWED_SECONDS, self._seconds / 2)
        if self._clock.monotonic() >= self._put_at + after:
            self.put()

    def drop(self) -> None:
        """Let the version be collected. Raises: as `TableHead.commit`."""
        with self._table.head.reading() as state:
            start = start_of(state)
        self._table.head.commit(self._table.own(start, DropPin(self.id)))
