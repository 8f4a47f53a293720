"""The state of a table at an older number, made from a snapshot and the entries behind it."""

from __future__ import annotations

from itertools import takewhile

from lakebed.errors import (
    CorruptError,
    InvalidError,
    LogTruncatedError,
    ObjectMissingError,
)
from lakebed.model.names import EntryChecksum, Micros, TransactionNumber, entry_checksum
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import Entry, decode_entry
from lakebed.statestore.log_entries.transactions import finish_entry
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import Moment, TableState


def past_state(
    log: TransactionLog, snapshots: Snapshots, number: TransactionNumber | None
) -> TableState:
    """Return a state in memory. number: of the last entry that it knows; None: the newest.

    Raises:
        InvalidError: the log ends earlier.
        LogTruncatedError: no snapshot and log reach back to it.
        CorruptError: an entry is damaged.
    """
    state = TableState(open_memory())
    for found, path in snapshots.newest_first():
        if number is None or found <= number:
            try:
                snapshots.load(path, state)
                break
            except (CorruptError, ObjectMissingError):  # an older one will do
                continue
    if state.head().number == number:  # of a tag: the log may be gone
        return state
    entries = log.read_after(state.head().number)
    with state.writing():
        for at, body in takewhile(lambda entry: number is None or entry[0] <= number, entries):
            apply_entry(state, decode_entry(body, at), at, entry_checksum(body))
    reached = state.head().number
    if number is not None and reached < number:
        raise InvalidError(
            "the log has no such entry", number=number, hint=f"its last is {reached}"
        )
    return state


def apply_entry(
    state: TableState, entry: Entry, number: TransactionNumber, checksum: EntryChecksum
) -> None:
    """Do to a state what an entry of the log says was done. Inside of `writing`."""
    moment = Moment(number, entry.at)
    for transaction in entry.transactions:
        transaction.apply(state, moment)
    finish_entry(state, moment, checksum)


def number_at(state: TableState, log: TransactionLog, at: Micros) -> TransactionNumber:
    """Return the number of the newest entry that was written by then, in log time; 0: none was, or
    it is not known any more. state: the newest.

    Raises:
        LogTruncatedError: the log does not reach back so far.
    """
    head = state.head()
    if head.at <= at:
        return head.number
    query = "SELECT max(number) FROM entry_times WHERE at <= ?"
    known = TransactionNumber(state.connection.execute(query, (at,)).fetchone()[0] or 0)
    try:  # of a minute one entry's time is remembered
        return _last_by(log, at, known) or known
    except LogTruncatedError as error:
        found = _last_by(log, at, TransactionNumber(error.oldest - 1))
        if not found:  # it is one of those that were emptied
            raise
        return found


def _last_by(log: TransactionLog, at: Micros, after: TransactionNumber) -> TransactionNumber | None:
    """Return the last of the entries behind a number that were written by then, one after another;
    None: the first of them came later."""
    last = None
    for number, body in log.read_after(after):
        if decode_entry(body, number).at > at:
            break
        last = number
    return last
