"""The door to marks: what tells schedules which tables have something to do, without opening them.

Marks are hints. One that is lost is mended by the next: work that was handled is due again after
`HANDLED_SECONDS_MAX` at the latest (protocol H31).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from lakebed.model.names import Micros, TableId, TransactionNumber

HANDLED_SECONDS_MAX = 86_400


class Handled(msgspec.Struct, frozen=True):
    """The progress of one kind of work.

    number: of the state that it saw.
    due: when it is to look again although nothing changed.
    """

    number: TransactionNumber
    due: Micros


class Failed(msgspec.Struct, frozen=True):
    """That one kind of work failed.

    tries: how often in a row.
    until: before then it is not tried again.
    """

    tries: int
    until: Micros


class TableMark(msgspec.Struct, frozen=True):
    """A hint of how new a table is, and how far each kind of work on it has come.

    number: of the table's newest entry, as far as was reported.
    handled, failed: by kind of work.
    """

    number: TransactionNumber = TransactionNumber(0)
    handled: Mapping[str, Handled] = {}
    failed: Mapping[str, Failed] = {}

    def is_due(self, work: str, now: Micros) -> bool:
        """Return whether a kind of work may have something to do, and did not fail just before."""
        failed = self.failed.get(work)
        if failed is not None and now < failed.until:
            return False
        done = self.handled.get(work)
        return done is None or self.number > done.number or now >= done.due


class TableMarks(Protocol):
    """Marks of tables. Every implementation passes `tests/contracts/test_table_marks.py`.

    Any of its methods raises UnavailableError or UnknownOutcomeError when the store is busy: the
    mark is lost, perhaps.
    """

    def changed(self, table: TableId, number: TransactionNumber) -> None:
        """Tell that a log has an entry. A lower number than was told before does nothing."""
        ...

    def handled(self, table: TableId, work: str, done: Handled) -> None:
        """Tell how far a kind of work is done. A lower number than was told before does nothing. It
        ends what `failed` told."""
        ...

    def failed(self, table: TableId, work: str, failed: Failed) -> None:
        """Tell that a kind of work failed, and until when it is not to be tried."""
        ...

    def list(self) -> dict[TableId, TableMark]:
        """Return all marks, of dropped tables too."""
        ...
