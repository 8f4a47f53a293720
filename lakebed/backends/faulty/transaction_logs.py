"""Logs whose requests are lost, late, unanswered, throttled, or answered "taken" because of their
own try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from lakebed.backends.faulty.crash_plan import CrashPlan
from lakebed.backends.faulty.faults import Fault, Faults
from lakebed.errors import (
    LogConflictError,
    LogRolledBackError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import EntryChecksum, Micros, TableId, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog, TransactionLogs


class FaultyTransactionLog:
    """A table's log as one worker meets it. crashes: that worker's."""

    def __init__(
        self, log: TransactionLog, faults: Faults, crashes: CrashPlan | None = None
    ) -> None:
        self._log = log
        self._faults = faults
        self._crashes = crashes or CrashPlan()

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write an entry, perhaps; another may run first."""
        self._crashes.check_alive()
        self._faults.before_append(number, body)
        self._faults.pass_door(Fault.ANOTHER_BEFORE_APPEND)
        with self._crashes.effect("log append"):
            self._append(number, body, after)

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries; perhaps not all."""
        self._crashes.check_alive()
        self._faults.pass_door()
        fault = self._faults.choose(Fault.LOG_READ_THROTTLED, Fault.LOG_READ_CUT)
        if fault is Fault.LOG_READ_THROTTLED:
            raise UnavailableError("read throttled", after=number)
        left = self._faults.rng.randrange(1, 4) if fault is Fault.LOG_READ_CUT else None
        for entry in self._log.read_after(number, checksum):
            self._crashes.check_alive()
            yield entry
            if left is not None:
                left -= 1
                if left == 0:
                    raise UnavailableError("read cut short", after=entry[0])

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number."""
        self._crashes.check_alive()
        return self._log.read_scattered(after)

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is taken."""
        self._crashes.check_alive()
        return self._log.newest()

    def truncate(self, below: TransactionNumber) -> None:
        """Empty bodies, perhaps not all of them."""
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect("log truncate"):
            match self._faults.choose(Fault.TRUNCATE_THROTTLED, Fault.TRUNCATE_PARTIAL):
                case None:
                    self._log.truncate(below)
                case Fault.TRUNCATE_PARTIAL:
                    some = self._faults.rng.randrange(1, below + 1)
                    self._log.truncate(TransactionNumber(some))
                    raise UnavailableError("truncation throttled", below=below)
                case _:
                    raise UnavailableError("truncation throttled", below=below)

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Begin the log anew."""
        self._crashes.check_alive()
        with self._crashes.effect("log resume"):
            self._log.resume(number, body, newest=newest)

    def store_time(self) -> Micros:
        """Return the store's clock."""
        self._crashes.check_alive()
        return self._log.store_time()

    def _append(self, number: TransactionNumber, body: bytes, after: EntryChecksum | None) -> None:
        match self._faults.choose(
            Fault.APPEND_THROTTLED,
            Fault.APPEND_LOST,
            Fault.APPEND_LATE,
            Fault.APPEND_UNANSWERED,
            Fault.APPEND_OWN_TRY,
        ):
            case None:
                self._log.append(number, body, after)
                return
            case Fault.APPEND_THROTTLED:
                raise UnavailableError("append throttled", number=number)
            case Fault.APPEND_LATE:
                self._faults.later(lambda: self._log.append(number, body, after))
            case Fault.APPEND_UNANSWERED:
                with suppress(LogConflictError, LogRolledBackError):  # that answer is lost too
                    self._log.append(number, body, after)
            case Fault.APPEND_OWN_TRY:
                self._log.append(number, body, after)
                raise LogConflictError(number)
            case _:
                pass
        raise UnknownOutcomeError("no answer", number=number)


class FaultyTransactionLogs:
    """The logs of all tables as one worker meets them."""

    def __init__(
        self, logs: TransactionLogs, faults: Faults, crashes: CrashPlan | None = None
    ) -> None:
        self._logs = logs
        self._faults = faults
        self._crashes = crashes or CrashPlan()

    def open(self, table: TableId) -> FaultyTransactionLog:
        """Return a table's log."""
        return FaultyTransactionLog(self._logs.open(table), self._faults, self._crashes)

    def tables(self) -> list[TableId]:
        """Return every table that has a log."""
        self._crashes.check_alive()
        return self._logs.tables()

    def remove(self, table: TableId) -> None:
        """Remove a log."""
        with self._crashes.effect("log removal"):
            self._logs.remove(table)
