"""Put into the ledger how many bytes a table keeps, once a day."""

from __future__ import annotations

from typing import Final, Literal

from lakebed.errors import LakebedError
from lakebed.observe import events, usage
from lakebed.ports.clock import Clock
from lakebed.ports.paying.usage_ledger import LedgerEntry, UsageLedger, hour_of
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.figures import file_figures, garbage_figures

STORED: Final = "stored"
"""The kind of what a table keeps, whatever is done on it."""
HOURS_OF_DAY: Final = 24


class KeepStoredBytes:
    """Adds a day of the bytes that a table has now: files, and garbage until it is deleted.

    counter: `local_byte_days` where bytes in a directory are counted, which cost nothing.
    """

    def __init__(
        self,
        ledger: UsageLedger,
        *,
        clock: Clock,
        counter: Literal["stored_byte_days", "local_byte_days"] = "stored_byte_days",
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._counter = counter

    def run(self, table: OpenTable) -> bool:
        """Add it, if it was not added today. False: it was, or the ledger cannot be reached: the
        sum of a day is missing then."""
        now = self._clock.now()
        with table.head.reading() as state:
            size = file_figures(state).size + garbage_figures(state, before=now, now=now).size
        day = hour_of(now) // HOURS_OF_DAY * HOURS_OF_DAY
        counts: dict[str, float] = {self._counter: size}
        entry = LedgerEntry(table=table.id, hour=day, kind=STORED, counts=counts)
        try:
            with usage.work(STORED, table.id):
                return self._ledger.add_once(entry)
        except LakebedError as error:
            events.emit(events.USAGE_LOST, table=table.id, kind=STORED, code=error.code())
            return False
