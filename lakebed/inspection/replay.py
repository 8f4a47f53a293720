"""The state that the log leads to, worked out anew, and what is wrong with the log on the way."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.errors import CorruptError, LogTruncatedError
from lakebed.inspection.check_kept import CheckKept
from lakebed.inspection.findings import Finding, finding
from lakebed.inspection.unreadable import BROKEN, UNREADABLE, problem_of
from lakebed.model.names import TableName, TransactionNumber, entry_checksum
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import Entry, decode_entry
from lakebed.statestore.log_entries.time_changes import SetTimeBack
from lakebed.statestore.past_states import apply_entry
from lakebed.statestore.snapshots import SNAPSHOTS_KEPT, Snapshots
from lakebed.statestore.table_state.kept_versions import versions_with_state
from lakebed.statestore.table_state.last_entry import last_checksum
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState

TRIES_MAX = 5
"""A truncation may interrupt the reading of a log: then it is read again, so often."""

DIFFERS = "snapshot-differs"


class Replay(msgspec.Struct, frozen=True):
    """The result of replaying a log.

    state: None when there is nothing to begin with.
    whole: the log was read up to the number that was wanted.
    """

    state: TableState | None
    number: TransactionNumber
    whole: bool
    findings: tuple[Finding, ...]


class _Snapshot(msgspec.Struct, frozen=True):
    number: TransactionNumber
    path: str
    digest: bytes


class ReplayLog:
    """Replays one table's log, from its beginning or from the oldest snapshot that it needs.

    deep: snapshots that only a tag or a pin needs are read, too.
    """

    def __init__(
        self, table: TableName, log: TransactionLog, snapshots: Snapshots, *, deep: bool = False
    ) -> None:
        self._table = table
        self._log = log
        self._snapshots = snapshots
        self._deep = deep
        self._found: list[Finding] = []
        self._emptied = 0

    def run(self, upto: TransactionNumber | None) -> Replay:
        """Read the log up to an entry, or to its end, and compare snapshots on the way."""
        for _ in range(TRIES_MAX):
            oldest = self._oldest()
            replay = self._run(oldest, upto)
            if replay is not None:
                return replay
            if self._oldest() == oldest:  # it was not truncated: a body is gone in its midst
                break
        self._add("log-gap", after=self._emptied - 1, heard_of=self._emptied)
        return Replay(None, TransactionNumber(0), whole=False, findings=tuple(self._found))

    def _run(self, oldest: int, upto: TransactionNumber | None) -> Replay | None:
        """Return what one reading leads to; None: entries that were there are truncated."""
        self._found = []
        good = self._good_snapshots(oldest)
        state = TableState(open_memory())
        if oldest > 1 and not self._begin(state, oldest, good):
            return Replay(None, TransactionNumber(0), whole=False, findings=tuple(self._found))
        digests = {s.number: s for s in good}
        try:
            readable = self._apply(state, oldest, upto, digests)
        except LogTruncatedError as error:
            self._emptied = error.oldest - 1
            return None
        self._check_kept(state, oldest, good)
        number = state.head().number
        wanted = max([upto or 0, *digests])
        if readable and number < wanted and (upto is None or number < upto):
            self._explain_end(number, heard_of=wanted)
        elif readable and (newest := self._log.newest()) > number and self._ends_at(number):
            self._explain_end(number, heard_of=newest)
        whole = readable and (upto is None or number == upto)
        return Replay(state, number, whole, tuple(self._found))

    def _check_kept(self, state: TableState, oldest: int, good: Sequence[_Snapshot]) -> None:
        """Snapshots of versions with a tag or a pin may be older than the log, and must be
        whole."""
        numbers = [one.number for one in good]
        check = CheckKept(
            self._table, self._snapshots, oldest=oldest, good=numbers, deep=self._deep
        )
        with state.reading():
            kept, lost = versions_with_state(state), list(check.run(state))
        self._found = [
            one
            for one in self._found
            if one.code != "snapshot-old" or one.facts["number"] not in kept
        ]
        self._found += lost

    def _add(self, code: str, **facts: str | int) -> None:
        self._found.append(finding(code, table=self._table, **facts))

    def _oldest(self) -> int:
        """Return the number from which on the log has bodies, whole or not."""
        oldest = 1
        while True:
            try:
                next(iter(self._log.read_after(TransactionNumber(oldest - 1))), None)
            except LogTruncatedError as error:
                oldest = max(error.oldest, oldest + 1)
            except CorruptError:
                return oldest
            else:
                return oldest

    def _good_snapshots(self, oldest: int) -> list[_Snapshot]:
        """Return those that are proven and that the log reaches back to, oldest first."""
        good = []
        for number, path in self._snapshots.newest_first():
            if number < oldest - 1:
                self._add("snapshot-old", path=path, number=number)
            elif self._is_proven(number, path):
                good.append(_Snapshot(number, path, bytes.fromhex(path.rpartition("-")[2])))
        if oldest > 1 and len(good) < SNAPSHOTS_KEPT:
            self._add("snapshot-lost", good=len(good), wanted=SNAPSHOTS_KEPT)
        return sorted(good, key=lambda s: s.number)

    def _is_proven(self, number: TransactionNumber, path: str) -> bool:
        """Return whether a snapshot is whole; what is wrong with it is a finding."""
        try:
            if self._snapshots.prove(path):
                return True
        except UNREADABLE as error:
            self._add("snapshot-unreadable", path=path, number=number, problem=problem_of(error))
            return False
        if (number, path) in self._snapshots.newest_first():  # and not deleted meanwhile
            self._add("snapshot-damaged", path=path, number=number)
        return False

    def _begin(self, state: TableState, oldest: int, good: Sequence[_Snapshot]) -> bool:
        for snapshot in good:
            self._snapshots.load(snapshot.path, state)
            return True
        self._add("no-base", oldest=oldest)
        return False

    def _apply(
        self,
        state: TableState,
        oldest: int,
        upto: TransactionNumber | None,
        snapshots: dict[TransactionNumber, _Snapshot],
    ) -> bool:
        """Apply entries in order; those that the state has are only read. False: one cannot be."""
        begin = state.head().number
        number = TransactionNumber(oldest - 1)
        try:
            for number, body in self._log.read_after(number):  # noqa: B020 - for the error's sake
                if upto is not None and number > upto:
                    break
                entry = decode_entry(body, number)
                if number <= begin:
                    continue
                if entry.at < state.head().at and not _sets_time_back(entry):
                    self._add("log-time-backwards", number=number)
                with state.writing():
                    apply_entry(state, entry, number, entry_checksum(body))
                snapshot = snapshots.get(number)
                if snapshot is not None and state.digest() != snapshot.digest:
                    code = "log-differs" if self._is_of_another_log(snapshot, body) else DIFFERS
                    self._add(code, path=snapshot.path, number=number)
        except BROKEN as error:  # no check has let the entry in
            self._add("log-damaged", number=number, problem=str(error) or type(error).__name__)
            return False
        return True

    def _is_of_another_log(self, snapshot: _Snapshot, body: bytes) -> bool:
        """Return whether a snapshot ends with another entry than the log has at its number."""
        copy = TableState(open_memory())
        self._snapshots.load(snapshot.path, copy)
        return last_checksum(copy) not in {None, entry_checksum(body)}

    def _ends_at(self, number: TransactionNumber) -> bool:
        """Return whether no entry follows: other processes may have added some meanwhile."""
        try:
            return next(iter(self._log.read_after(number)), None) is None
        except (CorruptError, LogTruncatedError):  # something is there
            return False

    def _explain_end(self, end: TransactionNumber, *, heard_of: int) -> None:
        """Tell why the log ends earlier than it should: entries are gone, in its midst or at its
        end."""
        behind = [number for number, _ in self._log.read_scattered(end)]
        if behind:
            newest = max(behind[-1], heard_of)
            self._add("log-gap", after=end, heard_of=newest, behind=len(behind), first=behind[0])
        elif not self._log.newest():
            self._add("log-missing", heard_of=heard_of)
        else:
            self._add("log-behind", ends=end, heard_of=heard_of)


def _sets_time_back(entry: Entry) -> bool:
    """Return whether an entry is older than the one before it on purpose."""
    return any(isinstance(c, SetTimeBack) for t in entry.transactions for c in t.changes)
