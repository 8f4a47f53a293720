"""The door to the ledger: what work used of what is paid for, by table, hour and kind of work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from lakebed.model.names import MICROS_PER_SECOND, Micros

KEPT_SECONDS: Final = 400 * 86_400
"""A year can be compared with the month before it."""
HOUR_SECONDS: Final = 3_600
_HOUR: Final = HOUR_SECONDS * MICROS_PER_SECOND


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one kind of work on one table in one hour.

    table: its id, or `observe.usage.NO_TABLE`.
    hour: since 1970.
    counts: by counter (`observe.usage.Counter`); releases may add counters.
    """

    table: str
    hour: int
    kind: str
    counts: dict[str, float]


class UsageLedger(Protocol):
    """Sums of what was used. Hints: what a lost answer repeats is added twice, what a dying process
    did not add is missing. Entries are forgotten `KEPT_SECONDS` after their hour.

    Every implementation passes `tests/contracts/costs/test_usage_ledger.py`.

    Methods raise UnavailableError when the store is busy, DeniedError when it refuses us,
    UnknownOutcomeError when it may have been written.
    """

    @property
    def taken_by_add(self) -> Mapping[str, float]:
        """Return what one call of `add` uses itself, by counter."""
        ...

    def add(self, entry: LedgerEntry) -> None:
        """Add counts to those of the entry's table, hour and kind: one request."""
        ...

    def add_once(self, entry: LedgerEntry) -> bool:
        """Add counts where there are none of the entry's table, hour and kind. False: there are."""
        ...

    def read(self, table: str, *, since: int, until: int) -> list[LedgerEntry]:
        """Return the sums of a table from hour `since` on and before hour `until`, by hour and
        kind."""
        ...

    def tables(self) -> list[str]:
        """Return the tables that may have entries, those that were dropped too, in order."""
        ...


def hour_of(time: Micros) -> int:
    """Return the hour of a time, counted from 1970."""
    return time // _HOUR


def time_of(hour: int) -> Micros:
    """Return when an hour begins."""
    return Micros(hour * _HOUR)
