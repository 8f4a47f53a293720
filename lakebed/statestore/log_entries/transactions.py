"""A transaction: one commit, all or none. The log holds transactions of these changes and nothing
else.

Every reader of the log arrives at the same state: whatever is in the log was checked before it got
there. Changes know only the state and the transaction; time is a field of the entry (protocol H4,
H15).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lakebed.errors import ConflictError, FencedError, GenerationError, InvalidError
from lakebed.feed_errors import OwnerFencedError, PositionMovedError
from lakebed.model.feeds.positions import NAME_BYTES_MAX, decode_position
from lakebed.model.files import StoredFile
from lakebed.model.names import (
    CommitId,
    EntryChecksum,
    Generation,
    RequestDigest,
    TransactionNumber,
    base_of,
)
from lakebed.statestore.log_entries.commit_ledger import check_ledger
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
from lakebed.statestore.log_entries.position_changes import (
    DropPosition,
    ResetPosition,
    sent_revision,
)
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
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropFollower,
    DropTag,
    MoveFollower,
    PinVersion,
    PutTag,
    RaiseHorizon,
)
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.table_state.last_entry import remember_last
from lakebed.statestore.table_state.no_table import no_table
from lakebed.statestore.table_state.state import ENTRY_TIME_SPACING, LogEnd, Moment, TableState
from lakebed.statestore.table_state.time_records import OWN_NAMES, is_time_recorded_since

Change = (
    CreateTable
    | AddFiles
    | ClaimFiles
    | ReplaceFiles
    | ReleaseClaim
    | Split
    | MarkUnsplittable
    | RemoveGarbage
    | RaiseFloor
    | Clear
    | ChangeSettings
    | ChangeSchema
    | PutPin
    | DropPin
    | DropTable
    | SetProcessing
    | ChangeProcessing
    | ReportTime
    | LeapTime
    | SetTimeBack
    | ResumeLog
    | Define
    | Count
    | TakeItems
    | ForgetItems
    | ForgetOldItems
    | RecordGap
    | ForgetConnection
    | Advance
    | ResetPosition
    | DropPosition
    | BeginAgain
    | DeleteRanges
    | RecordDeleted
    | RaiseHorizon
    | PutTag
    | DropTag
    | PinVersion
    | BeginFollowing
    | MoveFollower
    | DropFollower
)


class PositionChange(msgspec.Struct, frozen=True, array_like=True):
    """The change of a source's position, committed with its rows (R1).

    name: of the position, see `model.positions`.
    expected: the position from which this commit starts; None: the source is new (R2).
    value: the position behind its records, one revision later.
    owner: number of the source's owner; one lower than the state's is fenced (R3).
    """

    name: str
    expected: bytes | None
    value: bytes
    owner: int = 0

    def check(self, state: TableState) -> None:
        if self.name.startswith(OWN_NAMES) or not 0 < len(self.name.encode()) <= NAME_BYTES_MAX:
            raise InvalidError(
                "the name is not one of a position",
                position=ascii(self.name)[:80],
                hint=f"give 1 to {NAME_BYTES_MAX} bytes that do not begin with `{OWN_NAMES}`",
            )
        begins = 0 if self.expected is None else sent_revision(self.expected)
        if sent_revision(self.value) != begins + 1:
            hint = "a position's revision rises by one with each commit"
            raise InvalidError("not the next position", position=self.name, hint=hint)
        found, owner = state.position(self.name) or (None, 0)
        if self.owner < owner:
            raise OwnerFencedError(
                "the source has a newer owner", position=self.name, owner=self.owner, newest=owner
            )
        if found == self.expected:
            return
        reached = 0 if found is None else decode_position(found).revision
        if reached < begins:
            raise ConflictError("the source is not there yet", position=self.name, reached=reached)
        raise PositionMovedError("the source was taken on", position=self.name, reached=reached)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", (self.name, self.value, self.owner)
        )


class Transaction(msgspec.Struct, frozen=True, array_like=True):
    """One commit: what its sender asked for, and the changes that do it, all or none.

    base: the log number its worker had read before its first effect.
    user: the id is a user's.
    """

    id: CommitId
    digest: RequestDigest
    base: TransactionNumber
    generation: Generation
    changes: tuple[Change, ...]
    positions: tuple[PositionChange, ...] = ()
    user: bool = False

    def check_and_apply(self, state: TableState, moment: Moment) -> None:
        """Check each change after those before it and apply it, all or none.

        Raises:
            InvalidError, ConflictError, FencedError: it does not fit the state; it wrote nothing.
            LogMissingError: the log has no entry; nothing was written.
        """
        head = state.head()
        creates = bool(self.changes) and isinstance(self.changes[0], CreateTable)
        if head.dropped or not (head.root or creates):
            raise no_table(head.number, dropped=head.dropped)
        if self.base < head.floor:
            hint = "it took longer than pending_seconds_max: run the job again"
            raise FencedError("its base lies below the write floor", base=self.base, hint=hint)
        if self.generation != head.generation:
            raise GenerationError("the table was cleared", hint="plan again")
        if ForgetOldItems in map(type, self.changes) and is_time_recorded_since(state, self.base):
            raise ConflictError("log time may have leapt since it was planned", hint="plan again")
        if len(self.changes) + len(self.positions) > 1:
            with state.tentative("member"):
                self._check_parts(state, moment)
        else:  # what is refused was refused before it wrote
            self._check_parts(state, moment)
        self.remember(state, moment)

    def _check_ledger(self, state: TableState) -> None:
        if any(isinstance(change, Count | RecordGap | Advance) for change in self.changes):
            processing = state.processing()
            added = (change.files for change in self.changes if isinstance(change, AddFiles))
            check_ledger(
                self.changes,
                moved=(position.name for position in self.positions),
                rows=sum(reference.rows for files in added for reference in files),
                merges_rows=processing is not None and processing.merges_rows,
            )

    def _check_parts(self, state: TableState, moment: Moment) -> None:
        self._check_ledger(state)
        for part in (*self.changes, *self.positions):
            part.check(state)
            if isinstance(part, Advance):
                part.check_time(moment)
            part.apply(state, moment)

    def apply(self, state: TableState, moment: Moment) -> None:
        """Do what the log says was done."""
        for part in (*self.changes, *self.positions):
            part.apply(state, moment)
        self.remember(state, moment)

    def remember(self, state: TableState, moment: Moment) -> None:
        """Keep the id, so that the same commit is done once (H1)."""
        state.put_commit(self.id, self.digest, moment.number, self.base, int(self.user))


def new_files(change: Change) -> Iterator[StoredFile]:
    """Yield the files that a change brings."""
    match change:
        case AddFiles():
            yield from (reference.file for reference in change.files)
        case ReplaceFiles() if change.output is not None:
            yield change.output.file
        case RecordDeleted():
            yield change.file


def new_files_begin_at(transaction: Transaction) -> bool:
    """Return whether each new file's name holds the base of the transaction, as the floor relies
    on."""
    files = (file for change in transaction.changes for file in new_files(change))
    return all(base_of(file.name) == transaction.base for file in files)


def check_bases(transactions: Sequence[Transaction]) -> None:
    """Raise AssertionError for new files that the sweeper could take for another commit's."""
    if not all(map(new_files_begin_at, transactions)):
        raise AssertionError("new files carry their commit's base")


def finish_entry(state: TableState, moment: Moment, checksum: EntryChecksum | None) -> None:
    """Write down that the entry has been applied: its number, time and checksum. None: unknown."""
    last = state.log_end().time
    state.write("UPDATE head SET number = ?, at = ?", (moment.number, moment.at))
    remember_last(state, moment.number, checksum)
    if last is None or moment.at >= last + ENTRY_TIME_SPACING:
        state.write("INSERT INTO entry_times VALUES (?, ?)", (moment.number, moment.at))
        last = moment.at
    state.log_ends(LogEnd(checksum, last))
