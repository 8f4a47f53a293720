"""Items of one table of DynamoDB: each request repeated while that is safe, its outcome truthful.

Items are as DynamoDB writes them: `{"pk": {"S": "a"}, "sk": {"N": "1"}}`. Reading is consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_TABLE, UnprocessedError
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY

Item = dict[str, Any]
"""Attributes with their types."""

IS_NEW = f"attribute_not_exists({PARTITION_KEY})"
"""The condition that no item has the key."""

PUT_AT_ONCE = 25
"""Items that one request of DynamoDB puts."""

WRITES_AT_ONCE = 100
"""Writes that one transaction of DynamoDB takes."""


class WriteCondition(msgspec.Struct, frozen=True):
    """The condition under which DynamoDB accepts a write.

    names, values: of the words in it that begin with # and :.
    """

    holds: str
    values: Mapping[str, Any] = {}
    names: Mapping[str, str] = {}

    def arguments(self) -> Item:
        """Return what boto3's functions take."""
        arguments: Item = {"ConditionExpression": self.holds}
        if self.values:
            arguments["ExpressionAttributeValues"] = dict(self.values)
        if self.names:
            arguments["ExpressionAttributeNames"] = dict(self.names)
        return arguments


class Items:
    """A table's items. Methods raise what `Requests.run` raises. patience: None: the clients'."""

    def __init__(
        self, clients: AmazonClients, table: str, *, patience: Patience | None = None
    ) -> None:
        self.table = table
        self.store_time = clients.store_time
        self._clients = clients
        self._requests = clients.requests(AMAZON_TABLE, table, patience=patience)

    def get(self, key: Item) -> Item:
        """Return an item; {} where there is none."""
        request = Request(what="reading an item", needs="dynamodb:GetItem")
        answer = self._requests.run(
            request,
            lambda: self._clients.dynamodb.get_item(
                TableName=self.table, Key=key, ConsistentRead=True
            ),
        )
        return dict(answer.get("Item", {}))

    def put(self, item: Item, condition: WriteCondition, *, once: bool = False) -> None:
        """Write an item. once: a try without an answer is the last."""
        request = Request(what="putting an item", needs="dynamodb:PutItem", writes=True, once=once)
        self._requests.run(
            request,
            lambda: self._clients.dynamodb.put_item(
                TableName=self.table, Item=item, **condition.arguments()
            ),
        )

    def update(self, key: Item, change: str, condition: WriteCondition) -> None:
        """Change attributes of an item, as `change` says: `SET a = :a`."""
        request = Request(what="updating an item", needs="dynamodb:UpdateItem", writes=True)
        self._requests.run(
            request,
            lambda: self._clients.dynamodb.update_item(
                TableName=self.table, Key=key, UpdateExpression=change, **condition.arguments()
            ),
        )

    def delete(self, key: Item, condition: WriteCondition | None = None) -> None:
        """Remove an item, if it is there."""
        request = Request(what="deleting an item", needs="dynamodb:DeleteItem", writes=True)
        holds = {} if condition is None else condition.arguments()
        self._requests.run(
            request,
            lambda: self._clients.dynamodb.delete_item(TableName=self.table, Key=key, **holds),
        )

    def transact(self, writes: Sequence[Item], *, once: bool = False) -> None:
        """Do several writes, all or none: `{"Put": {"Item": ...}}`. once: as `put`."""
        request = Request(
            what="writing several items",
            needs="dynamodb:PutItem, UpdateItem, DeleteItem and ConditionCheckItem",
            writes=True,
            once=once,
        )
        items = [
            {kind: {"TableName": self.table, **what} for kind, what in write.items()}
            for write in writes
        ]
        self._requests.run(
            request,
            lambda: self._clients.encoded.send(
                self._clients.dynamodb.transact_write_items, "TransactItems", items
            ),
        )

    def put_many(self, items: Sequence[Item]) -> None:
        """Write items, unconditionally and in any order; again does no harm."""
        self._clients.at_once.run(self.puts(items))

    def delete_many(self, keys: Sequence[Item]) -> None:
        """Remove items, if they are there, in any order; again does no harm."""
        self._clients.at_once.run(self._some([{"DeleteRequest": {"Key": key}} for key in keys]))

    def puts(self, items: Sequence[Item]) -> list[Callable[[], None]]:
        """Return the calls that `put_many` makes, for a caller that makes more at the same time."""
        return self._some([{"PutRequest": {"Item": item}} for item in items])

    def _some(self, writes: list[Item]) -> list[Callable[[], None]]:
        """Return calls that do so many writes each."""
        starts = range(0, len(writes), PUT_AT_ONCE)
        return [partial(self._write_some, writes[at : at + PUT_AT_ONCE]) for at in starts]

    def page(
        self,
        partition: str,
        *,
        after: Item | None = None,
        items_max: int,
        newest: bool = False,
        inclusive: bool = False,
    ) -> tuple[list[Item], bool]:
        """Return items of a partition by sort key, at most so many, or 1 MiB of them, and whether
        there may be more.

        after: a sort key.
        newest: the greatest sort key first.
        inclusive: that of `after`, too.
        """
        values: Item = {":pk": {"S": partition}}
        holds = f"{PARTITION_KEY} = :pk"
        if after is not None:
            values[":sk"] = after
            holds += f" AND {SORT_KEY} {'>=' if inclusive else '>'} :sk"
        request = Request(what="reading items", needs="dynamodb:Query")
        answer = self._requests.run(
            request,
            lambda: self._clients.dynamodb.query(
                TableName=self.table,
                KeyConditionExpression=holds,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=items_max,
                ScanIndexForward=not newest,
            ),
        )
        return [dict(item) for item in answer["Items"]], "LastEvaluatedKey" in answer

    def all(self, partition: str, *, items_max: int = 1_000) -> Iterator[Item]:
        """Yield all items of a partition by sort key, a page at a time."""
        after, more = None, True
        while more:
            page, more = self.page(partition, after=after, items_max=items_max)
            yield from page
            after = page[-1][SORT_KEY] if page else after

    def _write_some(self, writes: list[Item]) -> None:
        request = Request(what="writing items", needs="dynamodb:BatchWriteItem", writes=True)
        remaining: Any = {self.table: writes}

        def put() -> None:
            nonlocal remaining
            answer = self._clients.encoded.send(
                self._clients.dynamodb.batch_write_item, "RequestItems", remaining
            )
            remaining = answer.get("UnprocessedItems") or {}
            if remaining:
                raise UnprocessedError

        self._requests.run(request, put)
