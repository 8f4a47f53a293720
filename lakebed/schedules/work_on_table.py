"""Do one kind of scheduled work on one table, and mark how far it is done."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.errors import CorruptError, InvalidError, LakebedError, NewerFormatError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TransactionNumber
from lakebed.observe import events, usage
from lakebed.ports.clock import Clock
from lakebed.ports.table_marks import (
    HANDLED_SECONDS_MAX,
    Failed,
    Handled,
    TableMark,
    TableMarks,
)
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.failed_work import explain, wait_seconds

ENTRIES_SECONDS_MAX = 5.0
"""Greatest age of a list of names, in seconds: messages of one batch share it."""

WAIT_SECONDS = (900.0, 21_600.0)
"""Seconds that a table gets no tick after its work failed once, and at the most: its message comes
back sooner, and is given up after some tries."""

Work = Callable[[OpenTable], int]
"""Does what is due on a table; returns how much that was."""

Due = Callable[[OpenTable], Micros | None]
"""Returns when a table is to be looked at again although nothing changes; None: it need not be."""


def never_due(table: OpenTable) -> None:
    """Work that only changes of a table make."""


class WorkOnTable:
    """Does one kind of work on tables that messages name. Safe to kill anywhere, and to repeat.

    name: of the work. opened: opens a table.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        due: Due = never_due,
        opened: Callable[[TableEntry], OpenTable],
        registry: TableRegistry,
        marks: TableMarks,
        clock: Clock,
    ) -> None:
        self._name = name
        self._work = work
        self._due = due
        self._opened = opened
        self._registry = registry
        self._marks = marks
        self._clock = clock
        self._entries: tuple[float, dict[TableId, TableEntry]] | None = None

    def run(self, table: TableId) -> int:
        """Work on a table. One that was dropped, or is offline, is left alone.

        Returns how much was done. Raises: what the work raises, with the table's name; where no try
        can help, schedules have to wait, longer after each failure, up to six hours.
        """
        entry = self._entry(table)
        if entry is None or not entry.online:
            return 0
        try:
            with usage.work(self._name, table):
                return self._run(entry)
        except (CorruptError, InvalidError, NewerFormatError) as error:
            explain(error, table=entry.name, id_=entry.id)
            self._put_off(entry)
            raise

    def _run(self, entry: TableEntry) -> int:
        opened = self._opened(entry)
        with opened.head.reading() as state:
            head = state.head()
        if head.dropped or not head.number:
            return 0
        begun = self._clock.monotonic()
        done = self._work(opened)
        self._mark(opened, head.number)
        seconds = round(self._clock.monotonic() - begun, 3)
        events.emit(
            events.TABLE_HANDLED,
            table=entry.name,
            work=self._name,
            done_count=done,
            seconds=seconds,
        )
        return done

    def _put_off(self, entry: TableEntry) -> None:
        """Tell schedules that the work failed, so that not each tick sends another message."""
        try:
            before = self._marks.list().get(entry.id, TableMark()).failed.get(self._name)
            tries = 1 if before is None else before.tries + 1
            wait = round(wait_seconds(tries, *WAIT_SECONDS) * MICROS_PER_SECOND)
            failed = Failed(tries, Micros(self._clock.now() + wait))
            self._marks.failed(entry.id, self._name, failed)
        except LakebedError as error:  # the next tick sends the table again
            events.emit(events.MARK_LOST, table=entry.name, code=error.code())

    def _mark(self, table: OpenTable, number: TransactionNumber) -> None:
        """Mark that entries up to a number, which was read before the work, are handled."""
        latest = Micros(self._clock.now() + HANDLED_SECONDS_MAX * MICROS_PER_SECOND)
        due = self._due(table)
        try:
            self._marks.handled(table.id, self._name, Handled(number, min(due or latest, latest)))
        except LakebedError as error:  # the next tick does it again, and finds nothing
            events.emit(events.MARK_LOST, table=table.name, code=error.code())

    def _entry(self, table: TableId) -> TableEntry | None:
        now = self._clock.monotonic()
        known = self._entries
        if known is None or now - known[0] > ENTRIES_SECONDS_MAX or table not in known[1]:
            known = now, {entry.id: entry for entry in self._registry.list()}
            self._entries = known
        return known[1].get(table)
