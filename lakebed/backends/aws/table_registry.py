"""Names of tables in one table of DynamoDB.

pk: "names". sk: a name. id: of its table. online: whether scheduled work is done on it.
quarantined: there, and true, while the table is set aside. declared: there, and true, once it is
declared. watched: there, if a folder's files become its rows. A rename by a release that does not
know the last two loses them.
pk: "ids". sk: a table's id. name: its name, while it has one. It stays for ever, so that no late
request brings a table back (protocol H32).
pk: "formats". sk: a form, such as "entry". number: the newest that may be written.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.errors import TableExistsError, TableMissingError, UnavailableError
from lakebed.model.formats import Formats, formats_of
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import TableEntry

RENAMES_MAX = 20
"""A rename begins again when the names change under its hands; so often, then it gives up."""

_NAMES, _IDS, _FORMATS = "names", "ids", "formats"
_HINT = "choose another name"
_OF_TABLE = "id = :id"
_ONLINE = {"#online": "online"}  # a word that DynamoDB keeps for itself
_TRUE, _FALSE = {"BOOL": True}, {"BOOL": False}


class DynamoTableRegistry:
    """Names of tables. A change with several parts is one transaction of DynamoDB."""

    def __init__(self, clients: AmazonClients, table: str) -> None:
        self._items = Items(clients, table)

    def claim(self, name: TableName, table: TableId, *, declared: bool = False) -> None:
        """Give a free name to a table."""
        named = _named(TableEntry(id=table, name=name, declared=declared))
        known = {**_id_key(table), "name": {"S": name}}
        # what its id says that it is called it may be called again
        own = WriteCondition(
            f"{IS_NEW} OR #name = :name", {":name": {"S": name}}, {"#name": "name"}
        )
        free = WriteCondition(IS_NEW).arguments()
        puts = [{"Put": {"Item": named, **free}}, {"Put": {"Item": known, **own.arguments()}}]
        try:
            self._items.transact(puts)
        except ConditionError:
            found = self.find(name)
            if found is not None and found.id == table:
                return  # by an earlier call, or an earlier try of this one
            if found is None and self._is_named_anew(name, table):
                return
            if found is None:
                raise TableExistsError("the table has or had another name", table=table) from None
            raise TableExistsError("a table has this name", name=name, hint=_HINT) from None

    def _is_named_anew(self, name: TableName, table: TableId) -> bool:
        """Give a name to a table whose own was lost, not released: `fsck --repair` finds it so.
        False: it has its name, or was dropped."""
        lost = self._items.get(_id_key(table)).get("name", {}).get("S")
        if lost is None or lost == name:
            return False
        is_lost = WriteCondition(f"{IS_NEW} OR id <> :id", {":id": {"S": table}})
        as_read = WriteCondition("#name = :lost", {":lost": {"S": lost}}, {"#name": "name"})
        named = _named(TableEntry(id=table, name=name))
        known = {**_id_key(table), "name": {"S": name}}
        try:
            self._items.transact(
                [
                    {"Put": {"Item": named, **WriteCondition(IS_NEW).arguments()}},
                    {"Put": {"Item": known, **as_read.arguments()}},
                    {"ConditionCheck": {"Key": _name_key(lost), **is_lost.arguments()}},
                ]
            )
        except ConditionError:
            return False
        return True

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        item = self._items.get(_name_key(name))
        return _entry(item) if item else None

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        return [_entry(item) for item in self._items.all(_NAMES)]

    def rename(self, old: TableName, new: TableName, table: TableId) -> None:
        """Give a table another name.

        Raises:
            TableExistsError, TableMissingError: as the port says.
            UnavailableError: both names change all the time; nothing was changed.
        """
        for _ in range(RENAMES_MAX):
            found, taken = self.find(old), self.find(new)
            if taken is not None and taken.id != table:
                raise TableExistsError("a table has this name", name=new, hint=_HINT)
            if taken is None and (found is None or found.id != table):
                raise TableMissingError("the table does not have this name", name=old)
            if taken is not None or found is None:
                return
            try:
                self._items.transact(_moved(found, new))
            except ConditionError:  # an earlier try did it, or another process was faster
                continue
            return
        raise UnavailableError(
            "the registry of names changes too often", name=old, hint="try again"
        )

    def set_online(self, name: TableName, table: TableId, *, online: bool) -> None:
        """Take a table offline or put it online."""
        values = {":id": {"S": table}, ":online": {"BOOL": online}}
        change = "SET #online = :online" + (" REMOVE quarantined" if online else "")
        self._change(name, change, WriteCondition(_OF_TABLE, values, _ONLINE))

    def quarantine(self, name: TableName, table: TableId) -> None:
        """Set a table aside."""
        values = {":id": {"S": table}, ":false": _FALSE, ":true": _TRUE}
        change = "SET #online = :false, quarantined = :true"
        self._change(name, change, WriteCondition(_OF_TABLE, values, _ONLINE))

    def declare(self, name: TableName, table: TableId) -> None:
        """Note that a table is declared."""
        values = {":id": {"S": table}, ":true": _TRUE}
        self._change(name, "SET declared = :true", WriteCondition(_OF_TABLE, values))

    def watch(self, name: TableName, table: TableId, folder: str) -> None:
        """Note which folder's files become rows of a table."""
        values = {":id": {"S": table}} | ({":folder": {"S": folder}} if folder else {})
        change = "SET watched = :folder" if folder else "REMOVE watched"
        self._change(name, change, WriteCondition(_OF_TABLE, values))

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it. The id is never claimed again."""
        condition = WriteCondition(_OF_TABLE, {":id": {"S": table}}).arguments()
        forget = {"UpdateExpression": "REMOVE #name", "ExpressionAttributeNames": {"#name": "name"}}
        try:
            self._items.transact(
                [
                    {"Delete": {"Key": _name_key(name), **condition}},
                    {"Update": {"Key": _id_key(table), **forget}},
                ]
            )
        except ConditionError:
            return

    def formats(self) -> Formats | None:
        """Return the newest forms that may be written."""
        return formats_of(
            {item[SORT_KEY]["S"]: int(item["number"]["N"]) for item in self._items.all(_FORMATS)}
        )

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms, one after the other."""
        for name, number in msgspec.structs.asdict(formats).items():
            key = {PARTITION_KEY: {"S": _FORMATS}, SORT_KEY: {"S": name}}
            lower = "attribute_not_exists(#number) OR #number < :number"
            values = {":number": {"N": str(number)}}
            with suppress(ConditionError):  # it is as high already
                condition = WriteCondition(lower, values, {"#number": "number"})
                self._items.update(key, "SET #number = :number", condition)

    def _change(self, name: TableName, change: str, condition: WriteCondition) -> None:
        try:
            self._items.update(_name_key(name), change, condition)
        except ConditionError:
            raise TableMissingError("the table does not have this name", name=name) from None


def _name_key(name: str) -> Item:
    return {PARTITION_KEY: {"S": _NAMES}, SORT_KEY: {"S": name}}


def _id_key(table: TableId) -> Item:
    return {PARTITION_KEY: {"S": _IDS}, SORT_KEY: {"S": table}}


def _entry(item: Item) -> TableEntry:
    return TableEntry(
        id=TableId(item["id"]["S"]),
        name=TableName(item[SORT_KEY]["S"]),
        online=item["online"]["BOOL"],
        quarantined=item.get("quarantined", _FALSE)["BOOL"],
        declared=item.get("declared", _FALSE)["BOOL"],
        watched=item.get("watched", {"S": ""})["S"],
    )


def _named(entry: TableEntry) -> Item:
    """Return the item of a name. What is false but `online` is left out, and what is empty."""
    item = {**_name_key(entry.name), "id": {"S": entry.id}, "online": {"BOOL": entry.online}}
    marks = {"quarantined": entry.quarantined, "declared": entry.declared}
    watched = {"watched": {"S": entry.watched}} if entry.watched else {}
    return item | watched | {name: _TRUE for name, is_so in marks.items() if is_so}


def _moved(found: TableEntry, new: TableName) -> list[Item]:
    """Return the writes that give a table another name, if it still is as it was found."""
    marks = {"quarantined": found.quarantined, "declared": found.declared}
    marked = (
        f"attribute_{'exists' if is_so else 'not_exists'}({name})" for name, is_so in marks.items()
    )
    watched = {":watched": {"S": found.watched}} if found.watched else {}
    watching = "watched = :watched" if watched else "attribute_not_exists(watched)"
    same = WriteCondition(
        " AND ".join((_OF_TABLE, "#online = :online", watching, *marked)),
        {":id": {"S": found.id}, ":online": {"BOOL": found.online}, **watched},
        _ONLINE,
    )
    named = _named(msgspec.structs.replace(found, name=new))
    known = {**_id_key(found.id), "name": {"S": new}}
    return [
        {"Delete": {"Key": _name_key(found.name), **same.arguments()}},
        {"Put": {"Item": named, **WriteCondition(IS_NEW).arguments()}},
        {"Put": {"Item": known}},
    ]
