"""A table's log, readable: each entry with its transactions, each change as a phrase of counts and
ids. Never rows or keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from lakebed.errors import CorruptError, LogTruncatedError
from lakebed.model.feeds.endings import ENDED_VERSION
from lakebed.model.feeds.positions import decode_position
from lakebed.model.files import FileReference
from lakebed.model.names import Micros, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.commit_ledger import FeedChange
from lakebed.statestore.log_entries.feed_changes import (
    BeginAgain,
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    ForgetOldItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import (
    AddFiles,
    ClaimFiles,
    RaiseFloor,
    ReleaseClaim,
    RemoveGarbage,
    ReplaceFiles,
)
from lakebed.statestore.log_entries.log_changes import ResumeLog
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.range_deletes import DeleteRanges, RecordDeleted
from lakebed.statestore.log_entries.table_changes import (
    ChangeProcessing,
    ChangeSchema,
    ChangeSettings,
    Clear,
    CreateTable,
    DropPin,
    DropTable,
    MarkUnsplittable,
    PutPin,
    SetProcessing,
    Split,
)
from lakebed.statestore.log_entries.time_changes import LeapTime, ReportTime, SetTimeBack
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropFollower,
    DropTag,
    MoveFollower,
    PinVersion,
    PutTag,
    RaiseHorizon,
    VersionChange,
)
from lakebed.statestore.log_entries.window_changes import Advance

JOB_LETTERS = 12
"""Characters of a job's id that are shown: enough to distinguish jobs of one log."""


class LoggedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A commit.

    base: the log number that its worker had read.
    does: its changes, in order.
    """

    id: str
    base: int
    generation: int
    does: tuple[str, ...]


class LoggedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the log.

    bytes: as it is stored.
    """

    number: TransactionNumber
    at: Micros
    bytes: int
    transactions: tuple[LoggedTransaction, ...]


class LogListing(msgspec.Struct, frozen=True, kw_only=True):
    """Entries, ascending.

    oldest: the first number whose entry the log still keeps.
    """

    oldest: TransactionNumber
    entries: tuple[LoggedEntry, ...]


def list_log(
    log: TransactionLog, *, after: TransactionNumber | None = None, entries_max: int
) -> LogListing:
    """Return some entries. after: the number before the first; None: the last ones of the log.

    Raises:
        LogTruncatedError: entries that far back are gone.
        CorruptError: an entry is damaged. NewerFormatError: a newer Lakebed wrote it.
    """
    oldest = _oldest(log)
    bodies = log.read_after(TransactionNumber(oldest - 1) if after is None else after)
    kept: Iterable[tuple[TransactionNumber, bytes]] = (
        deque(bodies, maxlen=entries_max) if after is None else islice(bodies, entries_max)
    )
    entries = tuple(_entry(number, body) for number, body in kept)
    return LogListing(oldest=oldest, entries=entries)


def _oldest(log: TransactionLog) -> TransactionNumber:
    try:
        next(iter(log.read_after(TransactionNumber(0))), None)
    except LogTruncatedError as error:
        return TransactionNumber(error.oldest)
    return TransactionNumber(1)


def _entry(number: TransactionNumber, body: bytes) -> LoggedEntry:
    entry = decode_entry(body, number)
    transactions = tuple(_transaction(one) for one in entry.transactions)
    return LoggedEntry(number=number, at=entry.at, bytes=len(body), transactions=transactions)


def _transaction(one: Transaction) -> LoggedTransaction:
    positions = map(_position_text, one.positions)
    return LoggedTransaction(
        id=one.id,
        base=one.base,
        generation=one.generation,
        does=(*map(change_text, one.changes), *positions),
    )


def change_text(change: Change) -> str:
    """Return a change as a phrase."""
    match change:
        case (
            AddFiles()
            | ClaimFiles()
            | ReplaceFiles()
            | ReleaseClaim()
            | RemoveGarbage()
            | RaiseFloor()
            | DeleteRanges()
            | RecordDeleted()
        ):
            return _file_change_text(change)
        case CreateTable():
            return f"create the table with {_counted(len(change.points) + 1, 'leaf', 'leaves')}"
        case SetProcessing() | ChangeProcessing():
            return f"processing: {', '.join(sorted(change.processing or ['none']))}"
        case Split():
            leaves = len(change.points) + 1
            return f"split leaf {change.partition} into {leaves}"
        case MarkUnsplittable():
            return f"leaf {change.partition} of {change.rows:,} rows has no split point"
        case Clear():
            anew = "" if change.points is None else f", {len(change.points) + 1} leaves anew"
            return f"clear the table{anew}"
        case ChangeSettings():
            return "settings " + ", ".join(f"{k}={v}" for k, v in change.changes.items())
        case ChangeSchema():
            return "fields: " + "; ".join(map(str, change.changes))
        case DropTable():
            return "drop the table"
        case ResumeLog():
            does = "give up what came after" if change.is_loss else "go on from"
            return f"repair of the log: {does} entry {change.after}"
        case PutPin() | DropPin() | ReportTime() | LeapTime() | SetTimeBack():
            return _time_change_text(change)
        case _:
            return _other_change_text(change)


def _position_text(change: PositionChange) -> str:
    try:
        return f"position of {change.name} at {_next_text(change.value)}"
    except CorruptError:  # of releases whose positions had no form
        return f"position of {change.name}"


def _other_change_text(change: FeedChange | VersionChange) -> str:
    if isinstance(change, VersionChange):
        return _version_change_text(change)
    return _feed_change_text(change)


def _feed_change_text(change: FeedChange) -> str:
    match change:
        case Define():
            waits = _counted(len(change.source_splits), "source split")
            begins = f", begins with {waits}" if change.source_splits else ""
            says = f"version {change.version} of its definition"
            if change.version >= ENDED_VERSION:
                says = "it was dropped, and makes no rows any more"
            return f"connection {change.connection}: {says}{begins}"
        case Count():
            errors = f", the last {change.errors_in_row:,} are errors"
            last = errors if change.errors_in_row else ""
            return f"records of {change.connection}/{change.source_split}: {change.tally}{last}"
        case TakeItems():
            return f"take {_counted(len(change.items), 'item')} for {change.connection}"
        case ForgetItems():
            return f"forget items below entry {change.below}"
        case ForgetOldItems():
            return f"forget items of {change.connection} older than {change.seconds:,} s"
        case RecordGap():
            name = f"{change.connection}/{change.source_split}"
            return f"gap in {name}: {one_line(change.reason)}"
        case ForgetConnection():
            return f"forget connection {change.connection}"
        case BeginAgain():
            return "let all feeds begin their sources again"
        case Advance():
            return _advance_text(change)
        case ResetPosition() | DropPosition():
            return _operator_text(change)


def _operator_text(change: ResetPosition | DropPosition) -> str:
    """Return what an operator did. Who it was and why is any text: it is shown in one line."""
    name = f"{change.connection}/{change.source_split}"
    does = f"delete the position of {name}"
    if isinstance(change, ResetPosition):
        does = f"reset the position of {name} to {_next_text(change.value)}"
    return f"{does}, by {one_line(change.who)}: {one_line(change.why)}"


def one_line(text: str) -> str:
    """Return a text with all that is not printable escaped, as a terminal may obey it."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _next_text(value: bytes) -> str:
    position = decode_position(value)
    at = position.next if isinstance(position.next, int) else position.next.hex()
    return f"{at}, revision {position.revision}"


def _advance_text(change: Advance) -> str:
    splits = _counted(len(change.splits), "source split")
    windows = _counted(len(change.windows), "window")
    rows = sum(window.rows for window in change.windows)
    late = sum(window.late for window in change.windows)
    left_out = f", {late:,} late and left out" if late else ""
    counted = f"{_counted(rows, 'row')} in {windows}{left_out}"
    return f"event time of {change.connection} from {splits}, {counted}"


def _time_change_text(change: PutPin | DropPin | ReportTime | LeapTime | SetTimeBack) -> str:
    match change:
        case PutPin():
            return f"pin {change.id}"
        case DropPin():
            return f"drop pin {change.id}"
        case ReportTime():
            return f"the clock of machine {change.machine[:JOB_LETTERS]} says {change.at}"
        case LeapTime():
            return f"log time leaps, what was done below entry {change.upto} ages from here"
        case SetTimeBack():
            return "set log time back"


def _version_change_text(change: VersionChange) -> str:
    match change:
        case RaiseHorizon():
            below = f"versions below entry {change.horizon} may lose files"
            return below if change.horizon else "keep versions from here on"
        case PutTag():
            return f"tag {change.name} on {_version(change.number)}"
        case DropTag():
            return f"drop tag {change.name}"
        case PinVersion():
            return f"pin {change.id} on {_version(change.number)}"
        case BeginFollowing():
            return f"follower {change.name} begins behind {_version(change.number)}"
        case MoveFollower():
            return f"follower {change.name} has read up to entry {change.number}"
        case DropFollower():
            return f"drop follower {change.name}"


def _version(number: int | None) -> str:
    return "this entry" if number is None else f"entry {number}"


def _file_change_text(
    change: AddFiles
    | ClaimFiles
    | ReplaceFiles
    | ReleaseClaim
    | RemoveGarbage
    | RaiseFloor
    | DeleteRanges
    | RecordDeleted,
) -> str:
    match change:
        case AddFiles():
            return f"add {_files_text(change.files)}"
        case ClaimFiles():
            inputs = _counted(len(change.inputs), "file")
            return f"claim {inputs} of leaf {change.partition} for job {change.job[:JOB_LETTERS]}"
        case ReplaceFiles():
            by = "nothing" if change.output is None else _files_text((change.output,))
            inputs = _counted(len(change.inputs), "file")
            return f"replace {inputs} by {by}, job {change.job[:JOB_LETTERS]}"
        case ReleaseClaim():
            return f"give up job {change.job[:JOB_LETTERS]}"
        case RemoveGarbage():
            return f"remove {_counted(len(change.files), 'file')} of garbage"
        case DeleteRanges():
            ranges = _counted(len(change.ranges), "range")
            return f"delete {_counted(change.rows, 'row')} in {ranges} of keys"
        case RecordDeleted():
            return f"keep {_counted(change.rows, 'deleted row')} for followers"
        case RaiseFloor():
            return f"raise the floor to {change.floor}"


def _files_text(references: tuple[FileReference, ...]) -> str:
    files = {reference.file.name for reference in references}
    leaves = {reference.partition for reference in references}
    rows = sum(reference.rows for reference in references)
    where = f"leaf {min(leaves)}" if len(leaves) == 1 else f"{len(leaves)} leaves"
    return f"{_counted(len(files), 'file')}, {_counted(rows, 'row')} in {where}"


def entry_lines(entry: LoggedEntry, when: str) -> Iterator[str]:
    """Yield an entry as lines. when: its time as text."""
    yield f"{entry.number}  {when}  {entry.bytes:,} bytes"
    for transaction in entry.transactions:
        for does in transaction.does:
            yield f"    {does}"
        yield f"      commit {transaction.id[:JOB_LETTERS]}, base {transaction.base}"


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
