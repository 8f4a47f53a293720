"""The ledger of usage, in the table of DynamoDB that holds reports of jobs.

pk: `usage#TABLE`, a table's id. sk: `HOUR#KIND`, the hour as `2026-11-27T03`. Each counter is an
attribute, a number. Items are forgotten by DynamoDB itself, and are in no index. Functions add to
such items and to no others: their roles name the beginning of the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from lakebed.backends.aws.items import IS_NEW, Item, Items
from lakebed.backends.aws.requests import ConditionError, Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_TABLE
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY, TRACKER_TABLE, USAGE_PREFIX
from lakebed.observe.usage import NO_TABLE
from lakebed.ports.paying.usage_ledger import HOUR_SECONDS, KEPT_SECONDS, LedgerEntry

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

PATIENCE: Final = Patience(tries_max=2, seconds_max=2.0)
"""A hint: who has done its work does not wait for it long."""
_IDS: Final = "ids"
"""The partition of the registry that has the id of each table that ever was."""
_COUNTER: Final = re.compile(r"[a-z0-9_]{1,40}")
_ADD: Final = Request(what="adding to the ledger", needs="dynamodb:UpdateItem", writes=True)
assert TRACKER_TABLE.expiry is not None, "the tracker's items expire"
_EXPIRY: Final = TRACKER_TABLE.expiry
_OF_ITEM: Final = {PARTITION_KEY, SORT_KEY, _EXPIRY}


class DynamoUsageLedger:
    """Sums, in a table of the shape `TRACKER_TABLE`. registry: the table that holds tables' ids."""

    def __init__(self, clients: AmazonClients, table: str, *, registry: str) -> None:
        self._clients = clients
        self._table = table
        self._items = Items(clients, table)
        self._registry = Items(clients, registry)
        self._requests = clients.requests(AMAZON_TABLE, table, patience=PATIENCE)

    @property
    def taken_by_add(self) -> Mapping[str, float]:
        """Return what one call of `add` uses itself, by counter: an entry has less than a KiB."""
        return {"dynamodb_requests": 1.0, "dynamodb_write_units": 1.0}

    def add(self, entry: LedgerEntry) -> None:
        """Add counts."""
        self._add(entry, {})

    def add_once(self, entry: LedgerEntry) -> bool:
        """Add counts where there are none."""
        try:
            self._add(entry, {"ConditionExpression": IS_NEW})
        except ConditionError:  # or it was added by an earlier try
            return False
        return True

    def _add(self, entry: LedgerEntry, condition: Mapping[str, str]) -> None:
        counts = sorted(entry.counts.items())
        names = {f"#{n}": counter for n, (counter, _) in enumerate(counts)}
        values: Item = {f":{n}": {"N": repr(amount)} for n, (_, amount) in enumerate(counts)}
        added = ", ".join(f"#{n} :{n}" for n in range(len(counts)))
        expires = entry.hour * HOUR_SECONDS + KEPT_SECONDS
        update: Any = self._clients.dynamodb.update_item
        self._requests.run(
            _ADD,
            lambda: update(
                TableName=self._table,
                Key=_key(entry),
                UpdateExpression=f"ADD {added} SET #expires = :expires",
                ExpressionAttributeNames={**names, "#expires": _EXPIRY},
                ExpressionAttributeValues={**values, ":expires": {"N": str(expires)}},
                **condition,
            ),
        )

    def read(self, table: str, *, since: int, until: int) -> list[LedgerEntry]:
        """Return the sums of a table, by hour and kind."""
        found: list[LedgerEntry] = []
        after, more = {"S": _hour_text(since)}, True
        while more:
            page, more = self._items.page(f"{USAGE_PREFIX}{table}", after=after, items_max=1_000)
            entries = [_entry(table, item) for item in page]
            wanted = [entry for entry in entries if entry.hour < until]
            found += wanted
            more = more and len(wanted) == len(page)
            after = page[-1][SORT_KEY] if page else after
        return found

    def tables(self) -> list[str]:
        """Return every table that ever was."""
        return sorted({NO_TABLE, *(item[SORT_KEY]["S"] for item in self._registry.all(_IDS))})


def _key(entry: LedgerEntry) -> Item:
    return {
        PARTITION_KEY: {"S": f"{USAGE_PREFIX}{entry.table}"},
        SORT_KEY: {"S": f"{_hour_text(entry.hour)}#{entry.kind}"},
    }


def _hour_text(hour: int) -> str:
    return datetime.fromtimestamp(hour * HOUR_SECONDS, UTC).strftime("%Y-%m-%dT%H")


def _entry(table: str, item: Item) -> LedgerEntry:
    hour, _, kind = item[SORT_KEY]["S"].partition("#")
    at = datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    counts = {
        name: float(value["N"])
        for name, value in item.items()
        if name not in _OF_ITEM and "N" in value and _COUNTER.fullmatch(name)
    }
    seconds = int(at.timestamp())
    return LedgerEntry(table=table, hour=seconds // HOUR_SECONDS, kind=kind, counts=counts)
