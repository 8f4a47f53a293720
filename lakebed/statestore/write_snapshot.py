"""Write down the state of a table where that is worth it, and empty its log (protocol H12, H13,
H38)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lakebed.errors import ConflictError, LogTruncatedError
from lakebed.model.names import TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.transaction_log import TransactionLog, TransactionLogs
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT, RaiseHorizon
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.past_states import past_state
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.kept_versions import (
    TABLES,
    followers_of,
    horizon_of,
    versions_with_state,
)
from lakebed.statestore.table_state.state import TableState


class WriteSnapshot:
    """Writes a snapshot of a table whose log has grown. Safe to kill anywhere, and to repeat."""

    def __init__(self, *, snapshots: Callable[[TableId], Snapshots], logs: TransactionLogs) -> None:
        self._snapshots = snapshots
        self._logs = logs

    def run(self, table: OpenTable) -> int:
        """Write one if it is due, and truncate the log. Returns how many were written."""
        snapshots, log = self._snapshots(table.id), self._logs.open(table.id)
        if not snapshots.is_due(log):
            return 0
        with table.head.reading() as state:
            number = snapshots.write(state)
        below = truncate_log(table, snapshots, log)
        events.emit(events.SNAPSHOT_WRITTEN, table=table.name, number=number, truncated_below=below)
        return 1


def truncate_log(table: OpenTable, snapshots: Snapshots, log: TransactionLog) -> TransactionNumber:
    """Empty the log as far as no follower needs it, and drop snapshots that neither the log nor a
    tag or a pin needs. Returns the number below which it was emptied; 0: it was not, or
    a snapshot could not be read back.

    First the horizon is raised in the log: else a version could get a tag while the part of the log
    that leads to it is emptied (H38).
    """
    with table.head.reading() as state:
        below = snapshots.proven_end(upto=_followed(state))
        start, horizon = start_of(state), horizon_of(state)
    if not below:
        return below
    if horizon is None and table.head.formats().entry < VERSION_FORMAT:
        return snapshots.truncate(log, below)
    if horizon is None or horizon < below:
        try:
            table.head.commit(table.own(start, RaiseHorizon(below)))
        except ConflictError:
            return TransactionNumber(0)  # the next tick tries again; without it the log stays
    with table.head.reading() as state:
        state.prove(*TABLES)
        followed, kept = _followed(state), versions_with_state(state)
    if followed is not None and followed < below:  # it began meanwhile
        below = snapshots.proven_end(upto=followed)
    if not _are_written(log, snapshots, sorted(n for n in kept if n < below)):
        return TransactionNumber(0)
    return snapshots.truncate(log, below, kept=kept)


def _are_written(
    log: TransactionLog, snapshots: Snapshots, numbers: Iterable[TransactionNumber]
) -> bool:
    """See that each of these versions has a proven snapshot of its own, while the log has it."""
    found = dict(snapshots.newest_first())
    for number in numbers:
        path = found.get(number)
        try:
            next(iter(log.read_after(TransactionNumber(number - 1))), None)
        except LogTruncatedError:  # it was proven before its part of the log was emptied
            continue
        is_proven = path is not None and snapshots.prove(path)
        if not (is_proven or snapshots.write_proven(past_state(log, snapshots, number))):
            return False
    return True


def _followed(state: TableState) -> TransactionNumber | None:
    """Return the number behind which followers need the log; None: there is no follower."""
    numbers = (one.number for one in followers_of(state) if not one.is_behind)
    return min(numbers, default=None)
