"""Copy all tables of a lake, each alone, then what it defines of feeds, then give the copies the
names that the tables have, all at once.

Before it has names a copy shows no new table. So a kill leaves one that lacks none of those that it
shows, nor a feed of theirs; the next run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from lakebed.backups.copy_definitions import CopyDefinitions
from lakebed.backups.copy_table import CopyTable, LogCopy, TableCopied
from lakebed.errors import LakebedError, TableMissingError, TableQuarantinedError
from lakebed.model.formats import Formats
from lakebed.model.names import TableId, TableName
from lakebed.observe import events
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.open_table import OpenTable

NAME_CHARACTERS_KEPT, ID_CHARACTERS_SHOWN = 54, 8
"""Characters of the name and of the id that remain in the name that a dropped table gets when it
gives its own up: 63 are allowed."""


class NamesOfCopy(Protocol):
    """The names of a copy's tables, and the forms that may be written to it."""

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        ...

    def assign(self, entries: Sequence[TableEntry]) -> None:
        """Let tables have these names and marks instead of their own, all or none.

        Raises:
            TableExistsError: a table that is not among these has one of the names.
        """
        ...

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms from now on, and what was allowed before."""
        ...


class LakeCopied(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of copying a lake.

    only_in_copy: tables that the source does not have any more.
    quarantined: tables that were left out: the source has set them aside. A copy that was made
        before stays as it was.
    """

    tables: tuple[TableCopied, ...]
    only_in_copy: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    failure: LakebedError | None = None

    @property
    def problems(self) -> list[TableCopied]:
        """Tables whose copies stayed as they were."""
        return [table for table in self.tables if table.problem is not None]


class CopyLake:
    """Copies tables between two lakes, their feeds, and their names.

    source_names, target_names: registries. opened: gives a table of the source by its entry.
    log_copy: gives the log of a copy.
    """

    def __init__(
        self,
        *,
        source_names: TableRegistry,
        source_logs: TransactionLogs,
        opened: Callable[[TableEntry], OpenTable],
        target_names: NamesOfCopy,
        log_copy: Callable[[TableId], LogCopy],
        copy_table: CopyTable,
        copy_definitions: CopyDefinitions,
    ) -> None:
        self._source_names = source_names
        self._source_logs = source_logs
        self._opened = opened
        self._target_names = target_names
        self._log_copy = log_copy
        self._copy_table = copy_table
        self._copy_definitions = copy_definitions

    def run(self) -> LakeCopied:
        """Copy every table but those in quarantine; one that cannot be copied is reported, and the
        others go on.

        Raises:
            UnavailableError: definitions of feeds change all the time; no name was given.
        """
        copied: list[TableCopied] = []
        whole: list[TableEntry] = []
        quarantined: list[str] = []
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
            except TableQuarantinedError:  # nothing is done with it, and its alarm rests
                quarantined.append(entry.name)
                continue
            except LakebedError as error:
                copied.append(TableCopied(table=entry.name, problem=f"{error.code()}: {error}"))
                failure = failure or error
                events.emit(events.TABLE_NOT_COPIED, table=entry.name, kind=error.code())
                continue
            whole.append(entry)
            events.emit(events.TABLE_COPIED, **msgspec.to_builtins(copied[-1]))
        self._copy_definitions.run()  # before names: who sees a table sees how far its feeds are
        self._give_names(whole)
        known = {entry.id for entry in entries}
        others = tuple(e.name for e in self._target_names.list() if e.id not in known)
        return LakeCopied(
            tables=tuple(copied),
            only_in_copy=others,
            quarantined=tuple(quarantined),
            failure=failure,
        )

    def _give_names(self, entries: Sequence[TableEntry]) -> None:
        """Name the copies as their tables are named. A name that another copy holds is freed."""
        ids = {entry.name: entry.id for entry in entries}
        held = self._target_names.list()
        freed = [
            msgspec.structs.replace(found, name=_name_apart(found))
            for found in held
            if ids.get(found.name, found.id) != found.id
        ]
        known = {entry.id for entry in entries}
        wanted = [*(found for found in freed if found.id not in known), *entries]
        changed = [entry for entry in wanted if entry not in held]
        if changed:
            self._target_names.assign(changed)


def _name_apart(entry: TableEntry) -> TableName:
    return TableName(f"{entry.name[:NAME_CHARACTERS_KEPT]}-{entry.id[:ID_CHARACTERS_SHOWN]}")
