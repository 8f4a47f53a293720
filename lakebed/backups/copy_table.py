"""Copy one table from a lake to another: objects first, then all new entries of its log at once.

Until the log of the copy has grown, the copy is what it was; then it is the newest version. So a
kill at any moment leaves a copy that opens, and the next run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Protocol

import anycrc
import msgspec

from lakebed.errors import (
    CorruptError,
    InvalidError,
    LogRolledBackError,
    LogTruncatedError,
    ObjectExistsError,
    TableMissingError,
    UnavailableError,
)
from lakebed.model.names import (
    CREATION,
    FileName,
    TableId,
    TransactionNumber,
)
from lakebed.model.paths import file_path, files_prefix, snapshot_of, snapshots_prefix
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.table_changes import DropPin, PutPin
from lakebed.statestore.log_entries.version_changes import PinVersion
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import KeptVersions, tags_of
from lakebed.statestore.version_pin import BACKUP_PINS, VersionPin

PIECE_BYTES = 8 << 20
TRIES_MAX = 3
"""A log may be truncated while it is copied: then the copy begins again at a newer version."""

DELETED_AT_ONCE = 1_000
_CRC64 = anycrc.Model("CRC64-NVME")

Progress = Callable[[str, int, int], None]
"""A function of a table's name, how many of its files are done, and of how many."""


class LogCopy(Protocol):
    """The log of a copy. No other process appends to it."""

    def last(self) -> tuple[TransactionNumber, bytes] | None:
        """Return the newest entry; None: there is no log yet."""
        ...

    def extend(
        self, entries: Iterable[tuple[TransactionNumber, bytes]], *, oldest: TransactionNumber
    ) -> None:
        """Add consecutive entries behind the newest, all or none. Entries below `oldest` go, and
        their numbers stay taken.

        Raises:
            CorruptError: the numbers are not consecutive; nothing was changed.
        """
        ...


class TableCopied(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of copying one table.

    number: the version that the copy holds now.
    files_kept: those that the copy had before.
    problem: why the copy stayed as it was.
    """

    table: str
    number: int = 0
    files_copied: int = 0
    files_kept: int = 0
    bytes_copied: int = 0
    files_deleted: int = 0
    problem: str | None = None


class _Version(msgspec.Struct, frozen=True):
    """One version of a table: the number of its newest entry, and size and CRC-64 of its files, and
    of those that its tags need. None: the object itself tells its CRC-64."""

    number: TransactionNumber
    files: dict[FileName, tuple[int, int | None]]


class CopyTable:
    """Copies tables between two lakes. clock: decides when a pin must be renewed.

    pinned: whether others may collect garbage in the source meanwhile. on_progress: called after
    each file.
    """

    def __init__(
        self,
        *,
        source: ObjectStore,
        target: ObjectStore,
        clock: Clock,
        pinned: bool,
        on_progress: Progress,
    ) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._pinned = pinned
        self._on_progress = on_progress

    def run(self, table: OpenTable, log: TransactionLog, copy: LogCopy) -> TableCopied:
        """Bring the copy of a table to its newest version.

        Raises:
            InvalidError: the copy has a history that the table's log does not have.
            CorruptError, ObjectMissingError: a file of the table is damaged or gone.
            TableMissingError: the table was dropped. The copy stayed as it was.
        """
        last = copy.last()
        if last is not None:
            refuse_other_history(log, last, table.name)
            if not _changed_behind(log, last[0]):
                return TableCopied(table=table.name, number=last[0])
        with self._pin(table) as renew:
            for _ in range(TRIES_MAX):
                version = _version_of(table)
                try:
                    return self._copy(table, version, log, copy, renew)
                except LogTruncatedError:
                    continue
        hint = "run the backup again"
        raise UnavailableError("the log is truncated again and again", table=table.name, hint=hint)

    def _copy(
        self,
        table: OpenTable,
        version: _Version,
        log: TransactionLog,
        copy: LogCopy,
        renew: Callable[[], None],
    ) -> TableCopied:
        copied = size_copied = 0
        for done, (file, (size, checksum)) in enumerate(sorted(version.files.items()), start=1):
            if self._copy_object(file_path(table.id, file), size, checksum):
                copied, size_copied = copied + 1, size_copied + size
            self._on_progress(table.name, done, len(version.files))
            renew()
        snapshots = self._copy_log(table.id, log, copy, version.number)
        deleted = self._delete_unknown(table.id, version, snapshots)
        return TableCopied(
            table=table.name,
            number=version.number,
            files_copied=copied,
            files_kept=len(version.files) - copied,
            bytes_copied=size_copied,
            files_deleted=deleted,
        )

    def _copy_object(self, path: str, size: int, checksum: int | None) -> bool:
        """Copy an object unless it is there: paths are used once. Returns whether it was copied.
        checksum: None for that of the object; then it may be gone, as its tag was dropped.

        Raises:
            CorruptError: the source's bytes contradict size or checksum; nothing became visible.
        """
        found = self._target.size_of(path)
        if found == size:
            return False
        if found is not None:
            hint = "delete this object of the copy, then copy again"
            raise CorruptError("an object of the copy has another size", path=path, hint=hint)
        if checksum is None:
            facts = self._source.look(path)
            if facts is None:
                return False
            checksum = facts.checksum
        writer = self._target.create(path)
        try:
            summed = _CRC64.calc(b"")
            for start in range(0, size, PIECE_BYTES):
                end = min(start + PIECE_BYTES, size)
                (piece,) = self._source.read(path, [(start, end)])
                summed = _CRC64.calc(piece, summed)
                writer.write(piece)
            if summed != checksum:
                hint = "run `lakebed fsck --deep`; the copy stays the version before"
                raise CorruptError("a file contradicts its checksum", path=path, hint=hint)
            writer.finish()
        except ObjectExistsError:
            return False  # an earlier try of this very write
        finally:
            writer.abort()
        return True

    def _copy_snapshots(self, table: TableId, upto: TransactionNumber) -> set[str]:
        """Copy the snapshots that the log may need to start from. Returns their paths."""
        copied = set()
        for path in list(self._source.list(snapshots_prefix(table))):
            parsed = snapshot_of(path)
            facts = self._source.look(path) if parsed is not None and parsed[0] <= upto else None
            if facts is not None:
                self._copy_object(path, facts.size, facts.checksum)
                copied.add(path)
        return copied

    def _copy_log(
        self, table: TableId, log: TransactionLog, copy: LogCopy, upto: TransactionNumber
    ) -> set[str]:
        """Bring the copy's log to entry `upto`, with the snapshots that it starts from. Returns
        their paths.

        A snapshot is never ahead of the copy's log, unless the log was emptied behind the copy's
        last entry: then it must be there first.

        Raises:
            LogTruncatedError: entries that were there are truncated: begin again.
        """
        oldest, last = oldest_kept(log), copy.last()
        if oldest > upto:
            raise LogTruncatedError(oldest)
        reached = TransactionNumber(0) if last is None else last[0]
        if reached < oldest - 1:
            snapshots = self._copy_snapshots(table, upto)
            _extend(log, copy, upto, after=TransactionNumber(oldest - 1), oldest=oldest)
            return snapshots
        _extend(log, copy, upto, after=reached, oldest=CREATION)
        snapshots = self._copy_snapshots(table, upto)
        copy.extend((), oldest=oldest)
        return snapshots

    def _delete_unknown(self, table: TableId, version: _Version, snapshots: set[str]) -> int:
        """Delete objects of the copy that its version does not need. Returns how many."""
        known = {file_path(table, file) for file in version.files} | snapshots
        deleted = 0
        for prefix in (files_prefix(table), snapshots_prefix(table)):
            unknown = [path for path in self._target.list(prefix) if path not in known]
            for at in range(0, len(unknown), DELETED_AT_ONCE):
                self._target.delete(unknown[at : at + DELETED_AT_ONCE])
            deleted += len(unknown)
        return deleted

    @contextmanager
    def _pin(self, table: OpenTable) -> Iterator[Callable[[], None]]:
        """Keep the files of this version from being collected. Yields what renews that."""
        if not self._pinned:
            yield lambda: None
            return
        pin = VersionPin(table, BACKUP_PINS + table.fresh_id(), self._clock)
        pin.put()
        try:
            yield pin.renew
        finally:
            pin.drop()


def oldest_kept(log: TransactionLog) -> TransactionNumber:
    """Return the number of the oldest entry whose body the log keeps."""
    try:
        next(iter(log.read_after(TransactionNumber(0))), None)
    except LogTruncatedError as error:
        return TransactionNumber(error.oldest)
    return TransactionNumber(1)


def _extend(
    log: TransactionLog,
    copy: LogCopy,
    upto: TransactionNumber,
    *,
    after: TransactionNumber,
    oldest: TransactionNumber,
) -> None:
    copy.extend(takewhile(lambda entry: entry[0] <= upto, log.read_after(after)), oldest=oldest)
    reached = copy.last()
    if reached is None or reached[0] < upto:
        raise CorruptError("the log ends before the state does", number=upto)


def refuse_other_history(
    log: TransactionLog, last: tuple[TransactionNumber, bytes], name: str
) -> None:
    """Compare a copy's newest entry with the log it should be from; one that the log does not keep
    any more proves nothing.

    Raises:
        InvalidError: the log does not hold this entry.
    """
    number, body = last
    try:
        found = next(iter(log.read_after(TransactionNumber(number - 1))), None)
    except LogTruncatedError:
        return
    except LogRolledBackError:  # it ends before the copy does
        found = None
    if found != (number, body):
        raise InvalidError(
            "the copy holds another history of this table",
            table=name,
            entry=number,
            hint="one of the two was restored, cut or written to: copy to a new directory",
        )


def _changed_behind(log: TransactionLog, number: TransactionNumber) -> bool:
    """Return whether the log holds more behind an entry than pins, which change no row."""
    try:
        return any(
            not isinstance(change, PutPin | PinVersion | DropPin)
            for at, body in log.read_after(number)
            for transaction in decode_entry(body, at).transactions
            for change in transaction.changes
        )
    except LogTruncatedError:
        return True


def _version_of(table: OpenTable) -> _Version:
    with table.head.reading() as state:
        head = state.head()
        if head.dropped:
            raise TableMissingError("the table was dropped", table=table.name)
        files: dict[FileName, tuple[int, int | None]]
        files = {r.file.name: (r.file.size, r.file.checksum) for r in state.all_references()}
        tagged = KeptVersions(tag.number for tag in tags_of(state))
        for garbage in state.garbage() if tagged else ():
            if tagged.need(garbage.file, garbage.number):
                files[garbage.file] = garbage.size, None
    return _Version(head.number, files)
