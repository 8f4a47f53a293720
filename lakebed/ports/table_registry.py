"""The door to the names of tables. A name points to an id; ids are never used twice."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from lakebed.errors import TableQuarantinedError
from lakebed.model.formats import Formats
from lakebed.model.names import TableId, TableName

TableCondition = Literal["online", "offline", "quarantined"]


NAMES_GONE = "the names of all tables are gone"
"""Message of a CorruptError if tables are there, and nothing is left of their names."""


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the registry knows it.

    online: whether scheduled work is done on it.
    quarantined: it was set aside: nothing is done on it or with it, and it is not online.
    declared: it was made, or adopted, by `apply`, which may remove it once no file declares it.
    watched: the folder whose files become its rows as they arrive, `s3://BUCKET/FOLDER/`; "": none.
    """

    id: TableId
    name: TableName
    online: bool = True
    quarantined: bool = False
    declared: bool = False
    watched: str = ""

    @property
    def condition(self) -> TableCondition:
        """Return the table's condition in a word."""
        if self.quarantined:
            return "quarantined"
        return "online" if self.online else "offline"

    def require_use(self) -> None:
        """Raise TableQuarantinedError if the table was set aside."""
        if self.quarantined:
            hint = f"`lakebed table online {self.name}` brings it back"
            raise TableQuarantinedError("the table is in quarantine", table=self.name, hint=hint)


class TableRegistry(Protocol):
    """Names of tables, and the forms that may be written to the lake.

    Every implementation passes `tests/contracts/test_table_registry.py`.

    Any of its methods raises UnavailableError when the store is busy; one that writes raises
    UnknownOutcomeError when no answer came: call it again.
    """

    def claim(self, name: TableName, table: TableId, *, declared: bool = False) -> None:
        """Give a free name to a table, which is online. Again with the same id does nothing.
        declared: it is, in the same step.

        Raises:
            TableExistsError: another table has the name, or the table has another name.
        """
        ...

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`. Strongly consistent."""
        ...

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        ...

    def rename(self, old: TableName, new: TableName, table: TableId) -> None:
        """Give a table another name, in one step: no reader sees it with both names, or with none.

        Again does nothing. It stays online, offline or in quarantine, declared, and its folder
        stays watched.

        Raises:
            TableExistsError: another table has the new name; nothing was changed.
            TableMissingError: the table has neither name; nothing was changed.
        """
        ...

    def set_online(self, name: TableName, table: TableId, *, online: bool) -> None:
        """Take a table offline or put it online, out of quarantine too. Safe to repeat.

        Raises:
            TableMissingError: the table does not have the name; nothing was changed.
        """
        ...

    def quarantine(self, name: TableName, table: TableId) -> None:
        """Set a table aside; it is offline, too. Safe to repeat.

        Raises:
            TableMissingError: the table does not have the name; nothing was changed.
        """
        ...

    def declare(self, name: TableName, table: TableId) -> None:
        """Note that a table is declared. Safe to repeat.

        Raises:
            TableMissingError: the table does not have the name; nothing was changed.
        """
        ...

    def watch(self, name: TableName, table: TableId, folder: str) -> None:
        """Note which folder's files become rows of a table; "": none. Safe to repeat.

        Raises:
            TableMissingError: the table does not have the name; nothing was changed.
        """
        ...

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        ...

    def formats(self) -> Formats | None:
        """Return the newest forms that may be written; None: they are not recorded. Strongly
        consistent."""
        ...

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms from now on, and what was allowed before. Safe to repeat and to race:
        nothing that was allowed is ever forbidden again."""
        ...
