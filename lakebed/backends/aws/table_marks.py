"""Marks of tables, in the table of DynamoDB that holds their names.

pk: "marks". sk: a table's id. number: of its newest entry. handled-WORK and due-WORK: how far a
kind of work is done, and when, in microseconds since 1970, it looks again. tries-WORK and
until-WORK: how often it failed in a row, and before when it is not tried again.
"""

from __future__ import annotations

from contextlib import suppress

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError, Patience
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.model.names import Micros, TableId, TransactionNumber
from lakebed.ports.table_marks import Failed, Handled, TableMark

PATIENCE = Patience(tries_max=2, seconds_max=2.0)
"""A mark is a hint: who commits does not wait for it long."""

_MARKS = "marks"
_NUMBER, _HANDLED, _DUE = "number", "handled-", "due-"
_TRIES, _UNTIL = "tries-", "until-"


class DynamoTableMarks:
    """Marks of tables."""

    def __init__(self, clients: AmazonClients, table: str) -> None:
        self._items = Items(clients, table, patience=PATIENCE)

    def changed(self, table: TableId, number: TransactionNumber) -> None:
        """Tell that a log has an entry."""
        condition = WriteCondition(
            "attribute_not_exists(#number) OR #number < :number",
            {":number": {"N": str(number)}},
            {"#number": _NUMBER},
        )
        with suppress(ConditionError):
            self._items.update(_key(table), "SET #number = :number", condition)

    def handled(self, table: TableId, work: str, done: Handled) -> None:
        """Tell how far a kind of work is done."""
        condition = WriteCondition(
            "attribute_not_exists(#handled) OR #handled <= :number",
            {":number": {"N": str(done.number)}, ":due": {"N": str(done.due)}},
            {
                "#handled": _HANDLED + work,
                "#due": _DUE + work,
                "#tries": _TRIES + work,
                "#until": _UNTIL + work,
            },
        )
        change = "SET #handled = :number, #due = :due REMOVE #tries, #until"
        with suppress(ConditionError):
            self._items.update(_key(table), change, condition)

    def failed(self, table: TableId, work: str, failed: Failed) -> None:
        """Tell that a kind of work failed."""
        always = WriteCondition(
            "attribute_not_exists(#tries) OR #tries <> :never",
            {
                ":tries": {"N": str(failed.tries)},
                ":until": {"N": str(failed.until)},
                ":never": {"N": "-1"},
            },
            {"#tries": _TRIES + work, "#until": _UNTIL + work},
        )
        self._items.update(_key(table), "SET #tries = :tries, #until = :until", always)

    def list(self) -> dict[TableId, TableMark]:
        """Return all marks."""
        return {TableId(item[SORT_KEY]["S"]): _mark(item) for item in self._items.all(_MARKS)}


def _key(table: TableId) -> Item:
    return {PARTITION_KEY: {"S": _MARKS}, SORT_KEY: {"S": table}}


def _mark(item: Item) -> TableMark:
    works = [name.removeprefix(_HANDLED) for name in item if name.startswith(_HANDLED)]
    failing = [name.removeprefix(_TRIES) for name in item if name.startswith(_TRIES)]
    return TableMark(
        TransactionNumber(int(item.get(_NUMBER, {"N": "0"})["N"])),
        {
            work: Handled(
                TransactionNumber(int(item[_HANDLED + work]["N"])),
                Micros(int(item[_DUE + work]["N"])),
            )
            for work in works
        },
        {
            work: Failed(int(item[_TRIES + work]["N"]), Micros(int(item[_UNTIL + work]["N"])))
            for work in failing
        },
    )
