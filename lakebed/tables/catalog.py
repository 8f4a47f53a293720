"""Create, find, list, rename and drop tables.

Create: the log first, under a fresh id, then the name; a log that never got its name is swept.
Drop: a tombstone first, so that no worker commits any more, then the objects, then the name
(protocol H10, H32).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from lakebed.errors import (
    CorruptError,
    LakebedError,
    LogMissingError,
    TableExistsError,
    TableMissingError,
    did_you_mean,
)
from lakebed.model.formats import NEWEST
from lakebed.model.names import (
    MICROS_PER_SECOND,
    CommitId,
    Generation,
    Micros,
    TableId,
    TableName,
    TransactionNumber,
    digest_of,
    table_name,
)
from lakebed.model.partitions import split_points_of
from lakebed.model.processing import Processing
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.table_changes import DropTable, create_table, set_processing
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT, RaiseHorizon
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.no_table import LOG_MISSING_HINT
from lakebed.statestore.table_state.time_records import created_at
from lakebed.tasks.watched_folders import (
    IN_A_DIRECTORY,
    WatchableFolders,
    check_alone,
    watched_folder,
)

NAMELESS_SECONDS_MAX = 48 * 3_600
NAMELESS = TableName("(nameless)")


class HeadOpener(Protocol):
    """Opens the head of a table, the same one each time."""

    def __call__(self, table: TableId) -> TableHead:
        """Return it."""
        ...


class TableObjects(Protocol):
    """Deletes every object of a table."""

    def run(self, table: TableId) -> int:
        """Delete them; safe to repeat. Returns how many."""
        ...


class TableCatalog:
    """The tables of a lake.

    buries: whether a log that was made for nothing is buried at once; if not, which takes no
        permission to delete, the sweep finds it.
    watchable: where folders may lie that tables watch.
    """

    def __init__(
        self,
        *,
        registry: TableRegistry,
        logs: TransactionLogs,
        open_head: HeadOpener,
        delete_objects: TableObjects,
        rng: random.Random,
        buries: bool = True,
        watchable: WatchableFolders = IN_A_DIRECTORY,
    ) -> None:
        self.watchable = watchable
        self._buries = buries
        self._registry = registry
        self._logs = logs
        self._open_head = open_head
        self._delete_objects = delete_objects
        self._rng = rng

    def create(
        self,
        name: str,
        schema: Schema,
        *,
        split_points: Sequence[object] = (),
        settings: Mapping[str, Any] | None = None,
        processing: Processing | None = None,
        declared: bool = False,
    ) -> OpenTable:
        """Create an empty table.

        split_points: values of the first row key, ascending.
        declared: a file declares it.

        Raises:
            InvalidError: name, split points, settings or processing are not allowed; nothing was
                changed.
            TableExistsError: the name is taken; that table is untouched.
        """
        valid = table_name(name)
        points = split_points_of(schema, split_points)
        created = create_table(schema, settings or {}, points)
        changes: tuple[Change, ...] = (created, *set_processing(schema, processing))
        if self._registry.find(valid) is not None:
            raise _exists(valid)
        self._begin_formats()
        id_ = TableId(f"{self._rng.getrandbits(128):032x}")
        table = self._opened(TableEntry(id=id_, name=valid))
        if table.head.formats().entry >= VERSION_FORMAT:  # then all of its versions can be kept
            changes = (*changes, RaiseHorizon(TransactionNumber(0)))
        digest = digest_of(id_.encode())
        table.head.commit(
            Transaction(CommitId(id_), digest, TransactionNumber(0), Generation(0), changes)
        )
        try:
            self._registry.claim(valid, id_, declared=declared)
        except TableExistsError:
            if self._buries:
                self._bury(table)
            raise _exists(valid) from None
        events.emit(events.TABLE_CREATED, table=valid, id=id_, leaves_count=len(points) + 1)
        return table

    def _begin_formats(self) -> None:
        """Allow every format in a lake without tables: no older release has work there."""
        if self._registry.formats() is None and not self._registry.list():
            self._registry.raise_formats(NEWEST)

    def find(self, name: str) -> OpenTable:
        """Return the table called `name`.

        Raises:
            InvalidError: it is no table name. TableMissingError: no table has it.
            LogMissingError: the table has no log any more.
        """
        entry = self.entry(name)
        table = self.opened(entry)
        with table.head.reading() as state:
            if not state.head().number:  # a log is begun before its table gets a name (H32)
                message = f"the log of table {entry.name} is missing"
                raise LogMissingError(message, id=entry.id, hint=LOG_MISSING_HINT)
            if not state.head().dropped:
                return table
        raise _missing(self._registry, entry.name)

    def entry(self, name: str, *, id_: TableId | None = None) -> TableEntry:
        """Return what the registry knows of a name. Opens no log: it may be damaged. id_: of the
        table that is meant; None: whichever has the name.

        Raises:
            InvalidError: it is no table name. TableMissingError: no table has it, or another one.
        """
        found = entry_named(self._registry, name)
        if id_ not in (None, found.id):
            raise _missing(self._registry, found.name)
        return found

    def find_id(self, id_: TableId) -> OpenTable | None:
        """Return the table with an id; None: it was dropped. Raises: TableQuarantinedError."""
        for entry in self._registry.list():
            if entry.id == id_:
                return self.opened(entry)
        return None

    def with_id(self, id_: TableId) -> OpenTable:
        """Return a table, whatever its name is now. Raises: TableMissingError: it was dropped."""
        table = self.find_id(id_)
        if table is not None:
            with table.head.reading() as state:
                state.require_table()
            return table
        hint = "create it again, then send the request again under a new id"
        raise TableMissingError("the table was dropped", table=id_, hint=hint)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        return self._registry.list()

    def entries(self, name: str | None) -> Sequence[TableEntry]:
        """Return what the registry knows of one table, None: of each. Raises: as `entry`."""
        return self.list() if name is None else [self.entry(name)]

    def opened(self, entry: TableEntry) -> OpenTable:
        """Return a table of the list. Raises: TableQuarantinedError."""
        entry.require_use()
        return self._opened(entry)

    def rename(self, old: str, new: str, *, id_: TableId | None = None) -> OpenTable:
        """Give a table another name; nothing of it is copied or moved. id_: as `entry`.

        Raises:
            InvalidError: the new one is no table name. TableMissingError: no table has the old
            name. TableExistsError: another table has the new one. Nothing was changed.
        """
        wanted, table = table_name(new), self.find(old)
        if id_ not in (None, table.id):
            raise _missing(self._registry, table.name)
        try:
            self._registry.rename(table.name, wanted, table.id)
        except TableExistsError:
            raise _exists(wanted) from None
        events.emit(events.TABLE_RENAMED, table=wanted, id=table.id, before=table.name)
        return self._opened(TableEntry(id=table.id, name=wanted))

    def set_online(self, name: str, *, online: bool, id_: TableId | None = None) -> None:
        """Take a table offline, so that no scheduled work is done on it, or put it online, out of
        quarantine too. Its log is not opened. id_: as `entry`.

        Raises:
            TableMissingError: no table has the name.
        """
        table = self.entry(name, id_=id_)
        self._registry.set_online(table.name, table.id, online=online)
        if online:
            events.emit(events.TABLE_ONLINE, table=table.name, id=table.id)
        else:
            events.emit(events.TABLE_OFFLINE, table=table.name, id=table.id)

    def quarantine(self, name: str) -> None:
        """Set a table aside: nothing is done on it or with it, and all of its bytes stay, until it
        is put online or dropped. Its log is not opened.

        Raises:
            TableMissingError: no table has the name.
        """
        table = self.entry(name)
        self._registry.quarantine(table.name, table.id)
        events.emit(events.TABLE_QUARANTINED, table=table.name, id=table.id)

    def adopt(self, name: str, id_: TableId) -> None:
        """Let a table that was made otherwise be declared by a file. Safe to repeat.

        Raises:
            TableMissingError: no table has the name, or another one.
        """
        table = self.entry(name, id_=id_)
        self._registry.declare(table.name, table.id)
        events.emit(events.TABLE_ADOPTED, table=table.name, id=table.id)

    def watch(
        self, name: str, folder: str, *, id_: TableId | None = None, alone: bool = True
    ) -> None:
        """Let files of a folder become rows of a table as they arrive, and of no folder before.
        Those that lie there are not told again. Safe to repeat.

        folder: of S3; "": none.
        id_: as `entry`.
        alone: whether a folder that another table watches is refused.

        Raises:
            TableMissingError: no table has the name.
            InvalidError: it is no folder, or one of which nothing is told. Nothing was changed.
        """
        table, wanted = self.entry(name, id_=id_), watched_folder(folder)
        self.watchable.check(wanted)
        if alone:
            check_alone(wanted, table.id, self.list())
        self._registry.watch(table.name, table.id, wanted)
        events.emit(events.FOLDER_WATCHED, table=table.name, id=table.id, folder=wanted or None)

    def drop(self, name: str, *, id_: TableId | None = None) -> None:
        """Remove a table, its rows and its name; of its log one tombstone stays. Safe to repeat.
        id_: as `entry`.

        One in quarantine is dropped although its log cannot be read; then that goes, too.

        Raises:
            TableMissingError: no table has the name.
            CorruptError: its log or state is damaged; nothing was changed.
        """
        entry = self.entry(name, id_=id_)
        valid = entry.name
        try:
            self._bury(self._opened(entry))
        except CorruptError as error:
            if not entry.quarantined:
                error.hint = f"`lakebed table quarantine {valid}` first: then it can be dropped"
                raise
            self._delete_objects.run(entry.id)
            self._logs.remove(entry.id)
        self._registry.release(valid, entry.id)
        for other in self._registry.list():
            if other.id == entry.id:  # it was renamed meanwhile
                self._registry.release(other.name, other.id)
        events.emit(events.TABLE_DROPPED, table=valid, id=entry.id)

    def sweep_nameless(self, failed: Callable[[TableId, LakebedError], None] | None = None) -> int:
        """Bury logs that never got a name, and delete what late workers left of dropped tables.

        A log with more than its creation had a name and lost it: it is left for `fsck`. failed:
        called with each log that cannot be read, while the rest go on; None: the first such
        error is raised in the end.
        """
        first: LakebedError | None = None
        named = {entry.id for entry in self._registry.list()}
        swept = 0
        for id_ in self._logs.tables():
            if id_ in named:
                continue
            try:
                swept += self._sweep_log(TableEntry(id=id_, name=NAMELESS))
            except LakebedError as error:
                error.facts.setdefault("id", id_)
                if failed is not None:
                    failed(id_, error)
                first = first or error
        if first is not None and failed is None:
            raise first
        return swept

    def _sweep_log(self, entry: TableEntry) -> int:
        table = self._opened(entry)
        now = table.due_time(partial(_is_old, table))
        with table.head.reading() as state:
            dropped = state.head().dropped
        return self._bury(table) if dropped or _is_old(table, now) else 0

    def _bury(self, table: OpenTable) -> int:
        """Write the tombstone, delete the objects, empty the log below the tombstone."""
        with table.head.reading() as state:
            head, start = state.head(), start_of(state)
        if head.number and not head.dropped:
            with suppress(TableMissingError):  # another process dropped it just now
                table.head.commit(table.own(start, DropTable()))
        deleted = self._delete_objects.run(table.id)
        with table.head.reading() as state:
            self._logs.open(table.id).truncate(state.head().number)
        return deleted

    def _opened(self, entry: TableEntry) -> OpenTable:
        return OpenTable(
            id_=entry.id, name=entry.name, head=self._open_head(entry.id), rng=self._rng
        )


def entry_named(registry: TableRegistry, name: str) -> TableEntry:
    """Return what a registry knows of a name. Raises: as `TableCatalog.entry`."""
    valid = table_name(name)
    entry = registry.find(valid)
    if entry is None:
        raise _missing(registry, valid)
    return entry


def _missing(registry: TableRegistry, name: TableName) -> TableMissingError:
    hint = did_you_mean(name, (e.name for e in registry.list()), what="table")
    return TableMissingError("no such table", table=name, hint=hint)


def _is_old(table: OpenTable, now: Micros) -> bool:
    """Return whether a table has nothing but its creation, and that for long."""
    with table.head.reading() as state:
        at = created_at(state)
    return at is not None and now - at >= NAMELESS_SECONDS_MAX * MICROS_PER_SECOND


def _exists(name: TableName) -> TableExistsError:
    hint = "choose another name, or drop that table first"
    return TableExistsError("a table of this name exists", table=name, hint=hint)
