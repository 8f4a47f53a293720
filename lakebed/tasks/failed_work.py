"""Work that failed on one table: it is reported, tried again later, and delays no other table.

After each failure in a row the work waits twice as long, up to an hour. Kept in memory: a process
that starts tries everything.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec

from lakebed.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    FencedError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableId, TableName
from lakebed.observe import events
from lakebed.ports.clock import Clock

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 10.0, 3_600.0

ALL_TABLES, ALL_TABLES_ID = TableName("(all)"), TableId("(all)")
"""Stand for work that belongs to no one table. No table's name begins with a parenthesis."""

T = TypeVar("T")

GRAVEST_FIRST: tuple[type[LakebedError], ...] = (
    CorruptError,
    InvalidError,
    NewerFormatError,
    DeniedError,
    FencedError,
    UnknownOutcomeError,
    UnavailableError,
    ConflictError,
)


class FailedWork(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of work that failed on a table.

    table: `ALL_TABLES` for work on what they share.
    tries: how often in a row.
    again_at: by the monotonic clock; None: when its message comes back, or, for what was rejected,
        when the table changes.
    """

    table: TableName
    work: str
    error: Exception
    tries: int = 1
    again_at: float | None = None

    @property
    def code(self) -> str:
        """Return the error's code; of a bug, the name of its class."""
        return code_of(self.error)


class FailedTables:
    """The work of tables that failed and waits for its next try."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[tuple[TableId, str], FailedWork] = {}

    def attempt(self, table: TableId, name: TableName, work: str, act: Callable[[], T]) -> T | None:
        """Do a kind of work on a table; None: it failed, now or just before. The caller hears of
        it by `of`, when the other tables were worked on."""
        if self.is_waiting(table, work):
            return None
        try:
            done = act()
        except ConflictError as error:  # a lost race: the next round plans anew
            events.emit(events.JOB_FAILED, table=name, code=error.code(), reason=error)
            return None
        except Exception as error:  # bugs too: they are raised in the end
            self.add(table, name, work, error)
            return None
        self.forget(table, work)
        return done

    def is_waiting(self, table: TableId, work: str) -> bool:
        """Return whether a kind of work failed so lately that it is not tried now."""
        failed = self._failed.get((table, work))
        again_at = None if failed is None else failed.again_at
        return again_at is not None and self._clock.monotonic() < again_at

    def add(self, table: TableId, name: TableName, work: str, error: Exception) -> FailedWork:
        """Tell a failure, and when the work is tried again."""
        before = self._failed.get((table, work))
        tries = 1 if before is None else before.tries + 1
        wait = wait_seconds(tries)
        explain(error, table=name, id_=table)
        report_failed(name, work, error, tries=tries, again_seconds=wait)
        again_at = self._clock.monotonic() + wait
        failed = FailedWork(table=name, work=work, error=error, tries=tries, again_at=again_at)
        self._failed[table, work] = failed
        return failed

    def forget(self, table: TableId, work: str | None = None) -> None:
        """Forget failures of a table: the work was done, or a user asks for it now."""
        for key in [k for k in self._failed if k[0] == table and work in {None, k[1]}]:
            self._failed.pop(key, None)

    def of(self, tables: Collection[TableId]) -> list[FailedWork]:
        """Return what stands of some tables."""
        return [failed for (table, _), failed in self._failed.items() if table in tables]


def wait_seconds(
    tries: int, first: float = FIRST_WAIT_SECONDS, longest: float = LONGEST_WAIT_SECONDS
) -> float:
    """Return how long work waits that failed so often in a row: twice as long each time."""
    return min(longest, first * 2.0 ** min(tries - 1, 30))


def by_gravity(failures: Sequence[FailedWork]) -> list[FailedWork]:
    """Return failures, the gravest first: bugs, damage, what can never work, what may pass."""

    def rank(failed: FailedWork) -> tuple[int, TableName]:
        if not isinstance(failed.error, LakebedError):
            return -1, failed.table
        ranks = (n for n, kind in enumerate(GRAVEST_FIRST) if isinstance(failed.error, kind))
        return next(ranks, len(GRAVEST_FIRST)), failed.table

    return sorted(failures, key=rank)


def raise_gravest(failures: Sequence[FailedWork]) -> None:
    """Raise the gravest error of work that failed, with a note for each other error."""
    if not failures:
        return
    first, *others = by_gravity(failures)
    error = first.error.with_traceback(None)
    notes = [f"{other.work} of table {other.table} failed, too: {other.error}" for other in others]
    error.__notes__ = notes
    raise error


def explain(error: Exception, *, table: TableName, id_: TableId) -> None:
    """Let an error name the table and, where it is about damage, the command that finds it."""
    if table.startswith("("):
        return
    if isinstance(error, LakebedError):
        error.facts.setdefault("table", table)
    if isinstance(error, CorruptError):
        error.facts.setdefault("id", id_)
        error.hint = (
            f"`lakebed fsck {table} --deep` finds what is damaged; until it is restored,"
            f" `lakebed table quarantine {table}` sets the table aside"
        )


def report_failed(name: TableName, work: str, error: Exception, **facts: object) -> None:
    """Report that work failed on a table."""
    grave = not isinstance(error, LakebedError) or isinstance(error, CorruptError | InvalidError)
    if not isinstance(error, LakebedError):
        facts["where"] = "".join(traceback.format_exception(error))
    level = logging.ERROR if grave else logging.WARNING
    code = code_of(error)
    events.emit(
        events.TABLE_FAILED, level=level, table=name, work=work, code=code, reason=error, **facts
    )


def code_of(error: Exception) -> str:
    """Return an error's code; of a bug, the name of its class."""
    return error.code() if isinstance(error, LakebedError) else type(error).__name__
