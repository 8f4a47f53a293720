"""The two truthful ways on for a log that has lost entries: its tail is rebuilt from a state that
proves it, or the loss is accepted and reported (protocol H12, H33, H34).

Both write a snapshot of the state to go on from under a number above all that are known, and then
begin the log anew behind it, in one step. A process that knows the lost part reads that its entries
were truncated, or that they differ, and starts from the snapshot. Safe to kill anywhere: until that
step the log is what it was, and the command is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from lakebed.errors import ConflictError, CorruptError, InvalidError, LogTruncatedError
from lakebed.inspection.lost_history import KeepLost, LostHistory, NumberedBody, lost_history
from lakebed.inspection.replay import ReplayLog
from lakebed.model.names import (
    CommitId,
    TableId,
    TransactionNumber,
    digest_of,
    entry_checksum,
)
from lakebed.model.paths import lost_prefix, snapshot_of, snapshot_path
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_registry import TableEntry
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.format_gate import AskFormats, check_entry_format
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import Entry, decode_entry, encode_entry, format_of
from lakebed.statestore.log_entries.log_changes import ResumeLog
from lakebed.statestore.log_entries.transactions import Transaction, finish_entry
from lakebed.statestore.past_states import apply_entry
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.last_entry import last_checksum, remember_last
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import Moment, TableState

LogRepairAction = Literal["rebuild-log", "accept-loss"]

LOG_DOES: dict[LogRepairAction, str] = {
    "rebuild-log": "go on from the newest state that a cache or a snapshot proves, where it"
    " continues the log; no commit is lost",
    "accept-loss": "go on from the last entry that the log leads to, as a new generation; what came"
    " later is lost",
}

LOST_ENTRIES = frozenset({"log-behind", "log-damaged", "log-differs", "log-gap", "log-missing"})
"""Findings that one of the two ways mends."""

_BROKEN_ENTRY = (AssertionError, CorruptError, LookupError, TypeError, ValueError)
_UNREADABLE = (CorruptError, LogTruncatedError)
_RESTORE_HINT = "restore the log from a copy; --accept-loss goes on from the log's own end"


class Resumption(msgspec.Struct, frozen=True):
    """A way on.

    state: the log goes on from it.
    others: states that know what is lost, or were used.
    number: of the snapshot.
    newest: the greatest number that is taken now.
    """

    state: TableState
    others: tuple[TableState, ...]
    number: TransactionNumber
    oldest: TransactionNumber
    newest: TransactionNumber
    lost: LostHistory


class _Damaged(msgspec.Struct, frozen=True):
    """A log that has lost entries.

    replayed: what it leads to, up to the gap.
    last: the entry it ends with there.
    behind: entries that are not part of it.
    others: states of cache and snapshots that know anything else.
    heard_of: the greatest number of all.
    """

    replayed: TableState
    oldest: TransactionNumber
    newest: TransactionNumber
    last: NumberedBody | None
    behind: tuple[NumberedBody, ...]
    others: tuple[TableState, ...]
    heard_of: TransactionNumber


class LogRepair:
    """Repairs the log of one table. problem_of_cache: why the cache does not prove itself."""

    def __init__(
        self,
        table: TableEntry,
        *,
        log: TransactionLog,
        snapshots: Snapshots,
        objects: ObjectStore,
        open_head: Callable[[TableId], TableHead],
        problem_of_cache: Callable[[TableId], str],
        formats: AskFormats,
    ) -> None:
        self._table = table
        self._log = log
        self._snapshots = snapshots
        self._objects = objects
        self._open_head = open_head
        self._problem_of_cache = problem_of_cache
        self._formats = formats

    def plan(self, action: LogRepairAction) -> Resumption:
        """Return what would be done. Changes nothing.

        Raises:
            InvalidError: this way is not open, with the reason.
        """
        found = self._look()
        if action == "rebuild-log":
            state = self._rebuilt(found)
        elif found.last is None:
            raise InvalidError(
                "no entry of the log is left to go on from",
                table=self._table.name,
                hint="--rebuild-log goes on from a cache or a snapshot",
            )
        else:
            state = found.replayed
        state.require_table()
        lost = lost_history(state, found.others, found.behind)
        if action == "rebuild-log" and lost.commits:
            raise InvalidError(
                "the newest state lacks some of the commits that were found",
                table=self._table.name,
                unknown=len(lost.commits),
                hint="--accept-loss names them and goes on without them",
            )
        number = TransactionNumber(found.heard_of + 1)
        return Resumption(state, found.others, number, found.oldest, found.newest, lost)

    def run(self, action: LogRepairAction, lost: LostHistory) -> None:
        """Carry it out. lost: what was planned to be lost.

        Raises:
            ConflictError: the table is not what it was when this was planned; nothing was changed.
            InvalidError: this log cannot do so, or this way is not open; the same.
            FormatGateError: the lake does not allow the entry that records it; the same.
        """
        plan = self.plan(action)
        if plan.lost != lost:
            raise ConflictError(
                "the table has changed", table=self._table.name, hint="run it again"
            )
        after, id_ = plan.state.head().number, self._table.id
        snapshot = _renumbered(plan.state, plan.number)
        path = snapshot_path(id_, plan.number, snapshot.digest())
        change = ResumeLog(after, is_loss=action == "accept-loss")
        body = self._applied(resumed := _copy(snapshot), change)
        prefix = lost_prefix(id_, plan.number)
        keep = KeepLost(self._objects, self._snapshots, prefix)
        keep.run(self._log, plan.oldest, plan.others, plan.lost)
        self._write(snapshot, path)
        self._log.resume(TransactionNumber(plan.number + 1), body, newest=plan.newest)
        self._write(resumed, snapshot_path(id_, resumed.head().number, resumed.digest()))

    def _look(self) -> _Damaged:
        """Return what is left of the log, and what else is known."""
        name, newest = self._table.name, self._log.newest()
        replay = ReplayLog(name, self._log, self._snapshots).run(None)
        codes = {one.code for one in replay.findings}
        oldest = self._oldest()
        last, behind = self._entries(oldest)
        replayed = replay.state
        end = 0 if last is None else last[0]
        if replayed is None or replayed.head().number != end:
            codes_text = ", ".join(sorted(codes & LOST_ENTRIES)) or "no-base"
            hint = "restore log and snapshots from a copy"
            raise InvalidError(
                "the log cannot be replayed", table=name, found=codes_text, hint=hint
            )
        states = [*self._cached(), *self._snapshot_states()]
        others = tuple(one for one in states if not _is_known(replayed, one, self._log))
        numbers = [newest, *(number for number, _ in behind)]
        numbers += [one.head().number for one in others]
        numbers += [
            number
            for number, path in self._snapshots.newest_first()
            if not _is_echo(replayed, path)
        ]
        return _Damaged(
            replayed, oldest, newest, last, behind, others, TransactionNumber(max(numbers))
        )

    def _oldest(self) -> TransactionNumber:
        """Return the number from which on the log has entries."""
        try:
            next(iter(self._log.read_after(TransactionNumber(0))), None)
        except LogTruncatedError as error:
            return TransactionNumber(error.oldest)
        return TransactionNumber(1)

    def _entries(
        self, oldest: TransactionNumber
    ) -> tuple[NumberedBody | None, tuple[NumberedBody, ...]]:
        """Return the last entry before the first gap or damage, and all entries behind it."""
        last: NumberedBody | None = None
        try:
            for number, body in self._log.read_after(TransactionNumber(oldest - 1)):
                decode_entry(body, number)
                last = number, body
        except _UNREADABLE:
            pass
        end = TransactionNumber(0 if last is None else last[0])
        return last, tuple(self._log.read_scattered(end))

    def _cached(self) -> Iterator[TableState]:
        """Yield the state of the cache, if it proves itself."""
        if self._problem_of_cache(self._table.id):
            return
        with self._open_head(self._table.id).holding() as state, state.reading():
            state.prove()
            yield _copy(state)

    def _snapshot_states(self) -> Iterator[TableState]:
        """Yield the states of good snapshots, newest first."""
        for _, path in self._snapshots.newest_first():
            if self._snapshots.prove(path):
                state = TableState(open_memory())
                self._snapshots.load(path, state)
                yield state

    def _rebuilt(self, found: _Damaged) -> TableState:
        """Return the newest state that continues the log, with the entries that follow it.

        Raises:
            InvalidError: there is none, or it does not continue the log.
        """
        end = 0 if found.last is None else found.last[0]
        ahead = [one for one in found.others if one.head().number > end]
        name = self._table.name
        if not ahead:
            raise InvalidError(
                "no cache and no snapshot is ahead of the log",
                table=name,
                ends=end,
                hint=_RESTORE_HINT,
            )
        state = _copy(max(ahead, key=lambda one: one.head().number))
        if found.last is not None and not _has_applied(state, found.last):
            raise InvalidError(
                "the newest state is not known to continue the log",
                table=name,
                state=state.head().number,
                log_ends=end,
                hint=_RESTORE_HINT,
            )
        try:
            self._take_up(state, found.behind)
        except _BROKEN_ENTRY as error:
            problem = str(error) or type(error).__name__
            raise InvalidError(
                "an entry behind the newest state does not fit it",
                table=name,
                problem=problem,
                hint=_RESTORE_HINT,
            ) from None
        return state

    def _take_up(self, state: TableState, entries: Sequence[NumberedBody]) -> None:
        """Apply those entries that follow a state. Raises: InvalidError, and as `apply_entry`."""
        for number, body in entries:
            at = state.head().number
            if number == at and last_checksum(state) not in {None, entry_checksum(body)}:
                name = self._table.name
                raise InvalidError(
                    "the newest state is of another log",
                    table=name,
                    entry=number,
                    hint=_RESTORE_HINT,
                )
            if number == at + 1:
                with state.writing():
                    apply_entry(state, decode_entry(body, number), number, entry_checksum(body))

    def _applied(self, state: TableState, change: ResumeLog) -> bytes:
        """Apply the change to a state, and return the entry that records it."""
        head = state.head()
        digest = digest_of(f"{self._table.id} {head.number} {state.digest().hex()}".encode())
        id_ = CommitId(f"repair:{digest.hex()}")
        transaction = Transaction(id_, digest, head.number, head.generation, (change,))
        check_entry_format(format_of((transaction,)), self._formats)
        body = encode_entry(Entry(head.at, (transaction,)))
        moment = Moment(TransactionNumber(head.number + 1), head.at)
        with state.writing():
            transaction.check_and_apply(state, moment)
            finish_entry(state, moment, entry_checksum(body))
        return body

    def _write(self, state: TableState, path: str) -> None:
        """Write a snapshot and prove it; one that was damaged since an earlier try is replaced."""
        if self._objects.size_of(path) is not None and not self._snapshots.prove(path):
            self._objects.delete([path])
        self._snapshots.write(state)
        if not self._snapshots.prove(path):
            raise CorruptError("the snapshot that was written is damaged", path=path)


def _copy(state: TableState) -> TableState:
    copy = TableState(open_memory())
    state.connection.backup(copy.connection)
    copy.forget_proof()
    return copy


def _renumbered(state: TableState, number: TransactionNumber) -> TableState:
    """Return a copy under another number; it says of no entry that it ends with it."""
    copy = _copy(state)
    with copy.writing():
        copy.write("UPDATE head SET number = ?", (number,))
        remember_last(copy, number, None)
    return copy


def _is_echo(state: TableState, path: str) -> bool:
    """Return whether a snapshot is `state` under another number: an earlier try left it."""
    number, digest = snapshot_of(path) or (TransactionNumber(0), b"")
    is_later = number > state.head().number
    return is_later and _renumbered(state, number).digest() == digest


def _is_known(replayed: TableState, other: TableState, log: TransactionLog) -> bool:
    """Return whether a state knows nothing that the log does not lead to."""
    number, end = other.head().number, replayed.head().number
    if number > end:
        return _renumbered(replayed, number).digest() == other.digest()
    if number == end:
        return replayed.digest() == other.digest()
    checksum = last_checksum(other)
    behind = log.read_scattered(TransactionNumber(number - 1)) if number else iter(())
    there = next(behind, None)
    if there is None or there[0] != number or checksum is None:
        return True  # it ends before the log begins, or does not say with which entry
    return entry_checksum(there[1]) == checksum


def _has_applied(state: TableState, last: NumberedBody) -> bool:
    """Return whether a state remembers commits of an entry, each at the number of that entry."""
    number, body = last
    found: Sequence[tuple[int, bytes]] = []
    for transaction in decode_entry(body, number).transactions:
        query = "SELECT number, digest FROM commits WHERE id = ?"
        found = [*found, *state.connection.execute(query, (transaction.id,))]
        if any(one != (number, transaction.digest) for one in found[-1:]):
            return False
    return bool(found)
