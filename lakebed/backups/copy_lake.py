"""Copy all tables of a lake, each alone, then give the copies the names that the tables have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lakebed.backups.copy_table import CopyTable, LogCopy, TableCopied
from lakebed.errors import LakebedError, TableMissingError
from lakebed.model.names import TableId, TableName
from lakebed.observe import events
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.open_table import OpenTable

NAME_CHARACTERS_KEPT, ID_CHARACTERS_SHOWN = 54, 8
"""Of a name and an id, where a table that was dropped gives its name up: 63 are allowed."""


class LakeCopied(msgspec.Struct, frozen=True, kw_only=True):
    """What was done.

    only_in_copy: tables that the source does not have any more.
    """

    tables: tuple[TableCopied, ...]
    only_in_copy: tuple[str, ...] = ()
    failure: LakebedError | None = None

    @property
    def problems(self) -> list[TableCopied]:
        """Tables whose copies stayed as they were."""
        return [table for table in self.tables if table.problem is not None]


class CopyLake:
    """Copies tables between two lakes, and their names.

    source_names, target_names: registries. opened: gives a table of the source by its entry.
    log_copy: gives the log of a copy.
    """

    def __init__(
        self,
        *,
        source_names: TableRegistry,
        source_logs: TransactionLogs,
        opened: Callable[[TableEntry], OpenTable],
        target_names: TableRegistry,
        log_copy: Callable[[TableId], LogCopy],
        copy_table: CopyTable,
    ) -> None:
        self._source_names = source_names
        self._source_logs = source_logs
        self._opened = opened
        self._target_names = target_names
        self._log_copy = log_copy
        self._copy_table = copy_table

    def run(self) -> LakeCopied:
        """Copy every table; one that cannot be copied is reported, and the others go on."""
        copied: list[TableCopied] = []
        whole: list[TableEntry] = []
        failure: LakebedError | None = None
        allowed = self._source_names.formats()
        if allowed is not None:  # else the copy, too, keeps to what lakes of all ages allow
            self._target_names.raise_formats(allowed)
        entries = self._source_names.list()
        for entry in entries:
            try:
                copied.append(
                    self._copy_table.run(
                        self._opened(entry),
                        self._source_logs.open(entry.id),
                        self._log_copy(entry.id),
                    )
                )
            except TableMissingError:  # dropped meanwhile
                continue
            except LakebedError as error:
                copied.append(TableCopied(table=entry.name, problem=f"{error.code()}: {error}"))
                failure = failure or error
                events.emit(events.TABLE_NOT_COPIED, table=entry.name, kind=error.code())
                continue
            whole.append(entry)
            events.emit(events.TABLE_COPIED, **msgspec.to_builtins(copied[-1]))
        self._give_names(whole)
        known = {entry.id for entry in entries}
        others = tuple(e.name for e in self._target_names.list() if e.id not in known)
        return LakeCopied(tables=tuple(copied), only_in_copy=others, failure=failure)

    def _give_names(self, entries: Sequence[TableEntry]) -> None:
        """Name the copies as their tables are named. A name that another copy holds is freed."""
        wanted = {entry.name: entry.id for entry in entries}
        for found in self._target_names.list():
            if wanted.get(found.name, found.id) != found.id:
                self._target_names.rename(found.name, _name_apart(found), found.id)
        now = {found.id: found for found in self._target_names.list()}
        for entry in entries:
            found_now = now.get(entry.id)
            if found_now is None:
                self._target_names.claim(entry.name, entry.id)
            elif found_now.name != entry.name:
                self._target_names.rename(found_now.name, entry.name, entry.id)
            if entry.declared and not (found_now is not None and found_now.declared):
                self._target_names.declare(entry.name, entry.id)
            if ("" if found_now is None else found_now.watched) != entry.watched:
                self._target_names.watch(entry.name, entry.id, entry.watched)
            if (True if found_now is None else found_now.online) != entry.online:
                self._target_names.set_online(entry.name, entry.id, online=entry.online)


def _name_apart(entry: TableEntry) -> TableName:
    return TableName(f"{entry.name[:NAME_CHARACTERS_KEPT]}-{entry.id[:ID_CHARACTERS_SHOWN]}")
