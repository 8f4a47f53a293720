"""Opens older versions of a table by number, by time or by tag."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakebed.errors import InvalidError, LogTruncatedError, UnavailableError, did_you_mean
from lakebed.model.names import FileName, TableId, TransactionNumber
from lakebed.model.versions import AsOf, AsOfTag, AsOfTime, Version, time_of, version_of
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.log_entries.version_changes import expired
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.past_states import number_at, past_state
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.figures import state_bytes
from lakebed.statestore.table_state.kept_versions import (
    is_kept,
    tag_of,
    tags_of,
    versions_with_state,
)
from lakebed.statestore.table_state.state import TableState

LOOKS_MAX = 3
STATES_BYTES_MAX = 64 << 20
"""Most bytes of past states that a process keeps in memory: tables of 300,000 files together."""


class PastVersions:
    """Gives states of older versions. A few stay in memory. Thread-safe."""

    def __init__(
        self,
        *,
        logs: TransactionLogs,
        snapshots: Callable[[TableId], Snapshots],
        states_bytes_max: int = STATES_BYTES_MAX,
    ) -> None:
        self._logs = logs
        self._snapshots = snapshots
        self._bytes_max = states_bytes_max
        self._lock = threading.RLock()
        self._states: OrderedDict[tuple[TableId, TransactionNumber], TableState] = OrderedDict()

    @contextmanager
    def reading(self, table: OpenTable, as_of: AsOf) -> Iterator[TableState]:
        """Give the state of a version. Close it soon: others wait.

        Raises:
            InvalidError: not a version, it lies ahead, or there is no such tag.
            VersionExpiredError: it is not kept any more; the hint says which one is.
        """
        version = version_of(as_of)
        with self._lock:
            number = self._number(table, version)
            with table.head.reading() as newest:
                if newest.head().number == number:
                    yield newest
                    return
            state = self._state(table, number)
            with state.reading():
                yield state

    def check_files(
        self, table: OpenTable, number: TransactionNumber, files: Iterator[FileName]
    ) -> None:
        """Refuse a version of which files may be gone. files: names of those that are to be read.

        Raises:
            VersionExpiredError: one of them was collected.
        """
        with table.head.reading() as newest:
            if is_kept(newest, number):
                return
            if not all(newest.knows_file(file) for file in files):
                raise expired(newest, number)

    def number_of(self, table: OpenTable, as_of: AsOf) -> TransactionNumber:
        """Return the number of a version. Raises: as `reading`."""
        return self._number(table, version_of(as_of))

    def _number(self, table: OpenTable, version: Version) -> TransactionNumber:
        with table.head.reading() as newest:
            newest.require_table()
            head = newest.head()
            match version:
                case AsOfTag(name=name):
                    tag = tag_of(newest, name)
                    if tag is None:
                        known = (one.name for one in tags_of(newest))
                        hint = did_you_mean(name, known, what="tag")
                        facts = {"tag": name, "table": table.name}
                        raise InvalidError("no such tag", **facts, hint=hint)
                    return tag.number
                case AsOfTime(at=at):
                    if at > max(head.at, table.head.times.now()):
                        hint = f"it is {time_of(table.head.times.now()).isoformat()}"
                        raise InvalidError("the time lies ahead", as_of=time_of(at), hint=hint)
                    return self._number_at(table, newest, version)
            if version > head.number:
                hint = f"the newest version is {head.number}"
                raise InvalidError(
                    "the version lies ahead", as_of=version, table=table.name, hint=hint
                )
            return version

    def _number_at(
        self, table: OpenTable, newest: TableState, version: AsOfTime
    ) -> TransactionNumber:
        try:
            number = number_at(newest, self._logs.open(table.id), version.at)
        except LogTruncatedError:
            raise expired(newest, 0) from None
        if not number:
            as_of, hint = time_of(version.at), "name a later time"
            raise InvalidError("the table is younger", as_of=as_of, table=table.name, hint=hint)
        return number

    def _state(self, table: OpenTable, number: TransactionNumber) -> TableState:
        key = table.id, number
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._past_state(table, number)
        self._states.move_to_end(key)
        while (
            len(self._states) > 1 and sum(map(state_bytes, self._states.values())) > self._bytes_max
        ):
            self._states.popitem(last=False)[1].connection.close()
        return state

    def _past_state(self, table: OpenTable, number: TransactionNumber) -> TableState:
        """Make a state. The log may be emptied between a look at the snapshots and a look at the
        log: then the snapshot of a version that is kept was put before, and is there now."""
        log, snapshots = self._logs.open(table.id), self._snapshots(table.id)
        for _ in range(LOOKS_MAX):
            try:
                return past_state(log, snapshots, number)
            except LogTruncatedError:
                with table.head.reading() as newest:
                    if not is_kept(newest, number) and number not in versions_with_state(newest):
                        raise expired(newest, number) from None
        hint = f"try again; if it stays so, run `lakebed fsck --deep {table.name}`"
        raise UnavailableError("the state of a version is not found", number=number, hint=hint)
