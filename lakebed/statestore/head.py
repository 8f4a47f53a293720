"""The head: the newest state one process knows, and the only way to commit.

A commit: read the log to its end, ask the state for the commit's id, check against the state,
append at the next number. A try without an answer may land later, but only at the number it was
sent for, and only while that number is free; so the log is read after every try, and the id, not
the bytes, says what landed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol, TypeVar

from lakebed.errors import (
    CacheDamagedError,
    JobIdReusedError,
    LakebedError,
    LogConflictError,
    LogRolledBackError,
    LogTruncatedError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import (
    CommitId,
    EntryChecksum,
    Micros,
    TransactionNumber,
    entry_checksum,
)
from lakebed.ports.clock import Clock
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.answers import (
    NOTHING_WRITTEN,
    PendingCommit,
    Retry,
    answer_in_log,
    last_answer,
)
from lakebed.statestore.format_gate import AskFormats, check_entry_format, newest_formats
from lakebed.statestore.log_clock import LogClock
from lakebed.statestore.log_entries.codec import (
    Entry,
    check_number,
    decode_entry,
    encode_entry,
    format_of,
)
from lakebed.statestore.log_entries.tombstone import take_tombstone
from lakebed.statestore.log_entries.transactions import Transaction, check_bases, finish_entry
from lakebed.statestore.table_state.closable_state import ClosableState
from lakebed.statestore.table_state.last_entry import known, last_checksum
from lakebed.statestore.table_state.state import Moment, TableState, TableVersion

FOLLOWED_AT_ONCE_MAX = 1_000
FOLLOWED_BYTES_MAX = 1 << 20
"""Entries applied in one SQLite transaction: bounds memory, what a crash repeats and how long
others wait."""


T = TypeVar("T")
_Read = tuple[Entry, EntryChecksum]


class SnapshotSource(Protocol):
    """The source of a head's state when the log no longer reaches back to its own."""

    def load_newest(self, state: TableState) -> bool:
        """Replace `state` by the newest good snapshot that is newer; False when there is none."""
        ...


class TableHead:
    """The newest state of one table that a process knows. Thread-safe. formats: may be written."""

    def __init__(
        self,
        log: TransactionLog,
        state: TableState | ClosableState,
        *,
        clock: Clock,
        rng: random.Random,
        snapshots: SnapshotSource | None = None,
        retry: Retry | None = None,
        formats: AskFormats = newest_formats,
    ) -> None:
        self._state = ClosableState(lambda: state) if isinstance(state, TableState) else state
        self._log = log
        self._clock = clock
        self.times = LogClock(clock, log.store_time, rng, formats)
        self._rng = rng
        self._snapshots = snapshots
        self._retry = retry or Retry()
        self.formats = formats

    @property
    def state(self) -> TableState:
        """Return the state. Read it inside of `holding` or `reading`: else it may be closed."""
        return self._state.state

    @contextmanager
    def holding(self) -> Iterator[TableState]:
        """Give the state as it is, without reading the log; it stays open until the end."""
        with self._state.held() as state:
            yield state

    def close(self) -> None:
        """Close the state; the next use opens it again."""
        self._state.close()

    def follow(self) -> None:
        """Read the log to its end. Strongly consistent.

        Raises:
            UnavailableError: the log or the snapshots cannot be read; what was read is kept.
            NewerFormatError: a newer Lakebed wrote an entry; it and what follows was not applied.
            LogRolledBackError: the log does not hold what this state was read from (H34).
        """
        with self._state.held():
            self._proven(self._follow)

    @contextmanager
    def reading(self, *, at_least: TransactionNumber | None = None) -> Iterator[TableState]:
        """Follow, then give one version of the state; inside of another reading, the same one.
        Close it soon (H27). at_least: the log is not read where the state has that number.
        Raises: CacheDamagedError: it did not prove itself; the next is of a state made anew."""
        with self._state.held():
            if self.state.connection.in_transaction:
                yield self.state
                return
            try:
                with ExitStack() as stack:
                    self._proven(lambda: self._begin_reading(stack, at_least))
                    yield self.state
            except CacheDamagedError:
                self._state.renew()
                raise

    def _begin_reading(self, stack: ExitStack, at_least: TransactionNumber | None) -> None:
        if at_least is None or self.state.head().number < at_least:
            self._follow()
        stack.enter_context(self.state.reading())

    def _proven(self, act: Callable[[], T]) -> T:
        """Act on the state; once more on one made anew, if this one does not prove itself (H37)."""
        try:
            return act()
        except CacheDamagedError:
            if not self._state.renew():
                raise
            return act()

    def log_time(self) -> Micros:
        """Return the log time that an entry would get now, if log time does not leap (H15, H35).
        Raises: ClockAheadError: this machine's clock is ten minutes ahead of the store's."""
        with self._state.held():
            return self._proven(self._log_time)

    def _log_time(self) -> Micros:
        with self.state.reading():
            time = self.times.next_time(self.state)
            return self.state.head().at if time.changes else time.at

    def record_time(self, *, back: bool = False) -> bool:
        """Record this machine's clock in the log, if log time does not follow it. back: set log
        time back, if it is ahead. Returns whether it was recorded; another may have done so."""
        choose = self.times.time_back if back else self.times.next_time
        with suppress(LogConflictError, UnavailableError, UnknownOutcomeError):
            with self._state.held() as state, state.writing():
                if (time := choose(state)).changes:
                    self.times.append(state, time, self._append)
            return bool(time.changes)
        return False

    def commit(self, transaction: Transaction) -> TransactionNumber:
        """Put `transaction` into the log once, however often this is called with its id.

        Raises:
            InvalidError: it contradicts the state; no try of this call is in the log or will be.
            ConflictError: what it was planned on is gone, or it lost every commit race before the
            deadline (LogConflictError); the same. FencedError: its base is below the write floor.
            UnavailableError: the log refused or did not answer until the deadline; the same holds.
            DeniedError: the log may not be read or written; the same holds.
            FormatGateError: it has a change that the lake does not allow yet; the same.
            UnknownOutcomeError: a try may still land; call again with the same id.
            LogRolledBackError: the log does not hold what this state was read from (H33).
        """
        (answer,) = self.commit_group((transaction,))
        if isinstance(answer, LakebedError):
            raise answer
        return answer

    def commit_group(
        self, transactions: Sequence[Transaction]
    ) -> list[TransactionNumber | LakebedError]:
        """Commit many in as few entries as can be; answer each as `commit` would, in order.

        A refused member does no harm to its neighbours (H7). Members are answered only when
        the entry that the answer rests on is in the log.
        """
        members = [PendingCommit(t) for t in transactions]
        check_bases(transactions)
        with self._state.held():
            self._commit_members(members)
        return [m.answer for m in members if m.answer is not None]

    def _commit_members(self, members: Sequence[PendingCommit]) -> None:
        """Try until everybody is answered or time is up.

        The first try does not read: if the state is behind, its number is taken. Every later try,
        and every refusal, rests on a log that was read to its end.
        """
        deadline = self._clock.monotonic() + self._retry.seconds_max
        failure: LakebedError | None = None
        reading = renewed = False
        while True:
            time_is_up = failure is not None and self._clock.monotonic() >= deadline
            try:
                with self.state.translating():
                    if reading:
                        self._follow()
                    lost = self._attempt(members, current=reading, last=time_is_up)
                failure = lost or failure
            except CacheDamagedError as error:
                time_is_up = time_is_up or renewed or not self._state.renew()
                failure, renewed = error, True
            except UnavailableError as error:  # not sent; what was unresolved stays so
                failure = error
            except LakebedError as error:  # a newer format, damage: no try will mend it
                failure, time_is_up = error, True
            waiting = [m for m in members if m.answer is None]
            if not waiting:
                return
            if time_is_up and failure is not None:  # a failure ends the tries
                for member in waiting:
                    member.answer = last_answer(member, failure)
                return
            if reading and failure is not None:
                self._clock.sleep(self._retry.wait_seconds(failure, self._rng))
            reading = True

    def _attempt(
        self, members: Sequence[PendingCommit], *, current: bool, last: bool
    ) -> LakebedError | None:
        """Answer the members that can be answered, and append the rest once. Returns what went
        wrong.

        current: the state was read from the log just now. last: do not append any more.
        """
        try:
            with self.state.writing():
                head = self.state.head()
                lost = self._settle(members, head)
                waiting = [m for m in members if m.answer is None]
                if waiting and not last and (current or head.number):  # what is new knows nothing
                    time = self.times.next_time(self.state)
                    if time.changes and current:  # then come the members
                        self.times.append(self.state, time, self._append)
                    elif not time.changes:
                        moment = Moment(TransactionNumber(head.number + 1), time.at)
                        self._check_and_append(waiting, moment, current=current)
                return lost
        except (LogConflictError, LogRolledBackError, UnknownOutcomeError) as error:
            return error

    def _settle(self, members: Sequence[PendingCommit], head: TableVersion) -> LakebedError | None:
        """Answer members that the state knows (H1); notice numbers that other writers have taken
        (H3)."""
        lost: LakebedError | None = None
        waiting = [member for member in members if member.answer is None]
        landed = self.state.landed([member.transaction.id for member in waiting])
        for member in waiting:
            transaction = member.transaction
            try:
                member.answer = landed.number_of(transaction.id, transaction.digest)
            except JobIdReusedError as error:
                member.answer = error
            tried = member.unresolved
            if member.answer is None and tried is not None and head.number >= tried:
                if transaction.base < head.floor:
                    member.answer = self._looked_up(transaction, tried)
                lost, member.unresolved = LogConflictError(tried), None
        return lost

    def _looked_up(
        self, transaction: Transaction, tried: TransactionNumber
    ) -> TransactionNumber | LakebedError | None:
        """Return the answer from the log: the state may have forgotten the transaction."""
        return answer_in_log(self._log, transaction, tried)

    def _check_and_append(
        self, waiting: Sequence[PendingCommit], moment: Moment, *, current: bool
    ) -> None:
        """Check members in order, append those that fit, then answer. Raises: as `append`."""
        accepted: dict[CommitId, Transaction] = {}
        riders: list[PendingCommit] = []  # whose outcome is that of the append
        refused: list[tuple[PendingCommit, LakebedError]] = []
        for member in waiting:
            transaction, id_ = member.transaction, member.transaction.id
            try:
                if id_ in accepted:  # the same commit, or another under its id
                    self.state.landed((id_,)).number_of(id_, transaction.digest)
                else:
                    check_entry_format(format_of((transaction,)), self.formats)
                    transaction.check_and_apply(self.state, moment)
                    accepted[id_] = transaction
                riders.append(member)
            except LakebedError as error:
                if current and member.unresolved is None:
                    refused.append((member, error))
                    if not accepted:  # it rests on the log alone
                        member.answer = error
        if accepted:
            self._append(moment, tuple(accepted.values()), riders)
        for member, refusal in refused:
            member.answer = refusal

    def _append(
        self, moment: Moment, accepted: tuple[Transaction, ...], riders: Sequence[PendingCommit]
    ) -> None:
        body = encode_entry(Entry(moment.at, accepted))
        after = last_checksum(self.state)
        finish_entry(self.state, moment, entry_checksum(body))
        before = [member.unresolved for member in riders]
        for member in riders:  # another process may have set the state back behind an earlier try
            member.unresolved = max(moment.number, member.unresolved or moment.number)
        try:
            self._log.append(moment.number, body, after)
            self.times.see(moment)
        except NOTHING_WRITTEN:  # an earlier try may still land
            for member, unresolved in zip(riders, before, strict=True):
                member.unresolved = unresolved
            raise
        for member in riders:
            member.answer, member.unresolved = moment.number, None

    def _follow(self) -> None:
        with self.state.translating():
            if self._snapshots is not None and self.state.head().number == 0:
                self._snapshots.load_newest(self.state)
            at_end = False
            while not at_end:
                number, checksum = known(self.state)
                try:
                    entries, at_end = self._read_some(number, checksum)
                except LogTruncatedError as error:
                    self._start_from_snapshot(error.oldest)
                    continue
                except LogRolledBackError:
                    with self.state.reading():  # a damaged cache may say so, too
                        self.state.prove("head", "last_entry")
                    raise
                if entries:
                    at_end = self._apply(entries, number) and at_end
            self.times.see(self.state.head())

    def _read_some(
        self, number: TransactionNumber, checksum: EntryChecksum | None
    ) -> tuple[list[_Read], bool]:
        """Return entries after `number`, and whether the log ends with them. No lock of the state's
        is held while the log is read."""
        entries: list[_Read] = []
        size = 0
        try:
            for at, body in self._log.read_after(number, checksum):
                check_number(at, wanted=number + len(entries) + 1)
                entries.append((decode_entry(body, at), entry_checksum(body)))
                size += len(body)
                if len(entries) >= FOLLOWED_AT_ONCE_MAX or size >= FOLLOWED_BYTES_MAX:
                    return entries, False
        except LakebedError:
            if not entries:
                raise
            return entries, False  # what was read is right; the error comes again
        return entries, True

    def _apply(self, entries: Sequence[_Read], after: TransactionNumber) -> bool:
        """Apply entries; False if another process has done so with some of them."""
        with self.state.writing():
            if self.state.head().number != after:
                return False
            for number, (entry, checksum) in enumerate(entries, after + 1):
                moment = Moment(TransactionNumber(number), entry.at)
                for transaction in entry.transactions:
                    transaction.apply(self.state, moment)
                finish_entry(self.state, moment, checksum)
        return True

    def _start_from_snapshot(self, oldest: int) -> None:
        """Take a snapshot that the log reaches back to; each call makes the state newer, or
        raises."""
        if self._snapshots is not None and self._snapshots.load_newest(self.state):
            return
        if not take_tombstone(self._log, self.state, TransactionNumber(oldest - 1)):
            # a listing may lag: whether the snapshot is late or lost is for fsck to find out
            hint = "try again; if it stays so, run `lakebed fsck`"
            late = "no good snapshot is in sight, and the log starts later"
            raise UnavailableError(late, oldest=oldest, hint=hint)
