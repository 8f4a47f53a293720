"""A server that speaks as much of DynamoDB and SQS as our log, tracker and queues take, each answer
so many milliseconds after its request. What a request costs does not grow with the table.

It keeps all in memory, counts requests and units, and knows the conditions that we write only.
`python -m benchmarks.servers.slow_amazon` prints its port, and ends when its standard
input is closed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import md5
from typing import Any, NamedTuple

from benchmarks.servers.condition_expressions import Expression, named, plain
from benchmarks.servers.server_processes import server_process
from benchmarks.servers.slow_server import Answer, Request, answer, counts_at, run

LATENCY_MS = 5.0
PAGE_BYTES = 1 << 20
WRITE_UNIT, READ_UNIT = 1 << 10, 4 << 10

Item = dict[str, Any]


class Count(NamedTuple):
    """What a server was asked for. units: as DynamoDB bills them, each begun one whole."""

    requests: int
    write_units: int
    read_units: int


class SlowAmazon(NamedTuple):
    """A running server."""

    url: str

    def config(self) -> dict[str, str]:
        """Return what boto3's clients take to come here."""
        return {
            "endpoint_url": self.url,
            "region_name": "us-east-1",
            "aws_access_key_id": "bench",
            "aws_secret_access_key": "bench",
        }

    def count(self) -> Count:
        """Return what was asked for since the last call."""
        return Count(**counts_at(self.url))


@contextmanager
def serving(*, latency_ms: float = LATENCY_MS) -> Iterator[SlowAmazon]:
    """Run a server in a process of its own."""
    arguments = ("--latency-ms", str(latency_ms))
    with server_process("benchmarks.servers.slow_amazon", *arguments) as url:
        yield SlowAmazon(url)


class _RefusedError(Exception):
    """What a request is refused with: a code of the service, and more of its answer."""

    def __init__(self, code: str, **more: object) -> None:
        super().__init__(code)
        self.answer = {"__type": f"com.amazonaws#{code}", "message": code, **more}


class _Partition:
    """Items of one partition key, by sort key."""

    def __init__(self) -> None:
        self.items: dict[str | int, Item] = {}
        self.order: list[Any] = []

    def put(self, key: str | int, item: Item) -> None:
        if key not in self.items:
            if not self.order or key > self.order[-1]:
                self.order.append(key)
            else:
                insort(self.order, key)
        self.items[key] = item


class _Tables:
    """All of DynamoDB's tables. They are there when they are first used."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, str], _Partition] = {}
        self.write_units = self.read_units = 0

    def put(self, asked: Item) -> Item:
        self._check(asked, asked["Item"])
        self._write(asked["TableName"], asked["Item"])
        return {}

    def get(self, asked: Item) -> Item:
        item = self._find(asked["TableName"], asked["Key"])
        self.read_units += _units(item or {}, READ_UNIT)
        return {} if item is None else {"Item": item}

    def update(self, asked: Item) -> Item:
        self._check(asked, asked["Key"])
        item = dict(self._find(asked["TableName"], asked["Key"]) or asked["Key"])
        for name, value in re.findall(r"([#\w]+) = (:\w+)", asked["UpdateExpression"]):
            item[named(asked, name)] = asked["ExpressionAttributeValues"][value]
        self._write(asked["TableName"], item)
        return {}

    def transact(self, asked: Item) -> Item:
        writes = [(kind, what) for write in asked["TransactItems"] for kind, what in write.items()]
        held = [self._holds(what, what.get("Item") or what["Key"]) for _, what in writes]
        if not all(held):
            reasons = [{"Code": "None" if one else "ConditionalCheckFailed"} for one in held]
            raise _RefusedError("TransactionCanceledException", CancellationReasons=reasons)
        for kind, what in writes:
            item = what.get("Item") or self._find(what["TableName"], what["Key"])
            units = _units(item or what["Key"], WRITE_UNIT)
            self.write_units += units  # what a transaction writes or checks counts twice
            if kind == "ConditionCheck":
                self.write_units += units
            else:
                (self.put if kind == "Put" else self.update)(what)
        return {}

    def put_many(self, asked: Item) -> Item:
        for table, writes in asked["RequestItems"].items():
            for write in writes:
                self._write(table, write["PutRequest"]["Item"])
        return {"UnprocessedItems": {}}

    def query(self, asked: Item) -> Item:
        values = asked["ExpressionAttributeValues"]
        found = self._partitions.get((asked["TableName"], values[":pk"]["S"]), _Partition())
        cut = bisect_left if ">=" in asked["KeyConditionExpression"] else bisect_right
        after = cut(found.order, plain(values[":sk"])) if ":sk" in values else 0
        forward = asked.get("ScanIndexForward", True)
        places = range(after, len(found.order)) if forward else range(len(found.order) - 1, -1, -1)
        items: list[Item] = []
        size, limit = 0, asked.get("Limit", len(places))
        for place in itertools.islice(places, limit):
            item = found.items[found.order[place]]
            items.append(item)
            size += _bytes(item)
            if size >= PAGE_BYTES:
                break
        self.read_units += max(1, -(-size // READ_UNIT))
        more = len(items) < len(places)
        last = {"LastEvaluatedKey": {k: items[-1][k] for k in ("pk", "sk")}} if more else {}
        return {"Items": items, "Count": len(items), **last}

    def _check(self, asked: Item, key: Item) -> None:
        if not self._holds(asked, key):
            raise _RefusedError("ConditionalCheckFailedException")

    def _holds(self, asked: Item, key: Item) -> bool:
        condition = asked.get("ConditionExpression")
        if condition is None:
            return True
        return Expression(condition, self._find(asked["TableName"], key) or {}, asked).holds()

    def _find(self, table: str, key: Item) -> Item | None:
        partition = self._partitions.get((table, key["pk"]["S"]))
        return None if partition is None else partition.items.get(plain(key["sk"]))

    def _write(self, table: str, item: Item) -> None:
        place = table, item["pk"]["S"]
        self._partitions.setdefault(place, _Partition()).put(plain(item["sk"]), item)
        self.write_units += _units(item, WRITE_UNIT)


def _bytes(item: Item) -> int:
    """Return about what DynamoDB counts: names and values, bytes as they are, not as base64."""
    return sum(
        len(name) + (len(v["B"]) * 3 // 4 if "B" in v else len(str(*v.values())))
        for name, v in item.items()
    )


def _units(item: Item, unit: int) -> int:
    return max(1, -(-_bytes(item) // unit))


class _Queue:
    """A FIFO queue. While a message of a group is in hand, no other of the group is handed out."""

    def __init__(self) -> None:
        self.groups: dict[str, deque[Item]] = {}
        self.ready: deque[str] = deque()
        self.in_hand: dict[str, set[str]] = {}

    def put(self, entry: Item) -> None:
        group = entry["MessageGroupId"]
        if group not in self.groups:
            self.groups[group] = deque()
            if group not in self.in_hand:
                self.ready.append(group)
        self.groups[group].append(entry)

    def take(self, count: int) -> list[Item]:
        """Return messages, as many of a group as there are before those of the next group."""
        taken: list[Item] = []
        while self.ready and len(taken) < count:
            group = self.ready.popleft()
            waiting = self.groups[group]
            some = [waiting.popleft() for _ in range(min(len(waiting), count - len(taken)))]
            if not waiting:
                del self.groups[group]
            self.in_hand[group] = {entry["Id"] for entry in some}
            taken += some
        return taken

    def end(self, id_: str, group: str) -> None:
        """Let the next messages of a group be handed out when none of it is in hand."""
        in_hand = self.in_hand[group]
        in_hand.discard(id_)
        if not in_hand:
            del self.in_hand[group]
            if group in self.groups:
                self.ready.append(group)


class _Queues:
    """FIFO queues of SQS: messages of a group come in the order they were sent, each until it is
    deleted."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._taken: dict[str, Item] = {}

    def send(self, asked: Item) -> Item:
        queue = self._queue(asked)
        for entry in asked["Entries"]:
            queue.put(entry)
        return {
            "Successful": [
                {
                    "Id": entry["Id"],
                    "MessageId": entry["Id"],
                    "MD5OfMessageBody": md5(entry["MessageBody"].encode()).hexdigest(),
                }
                for entry in asked["Entries"]
            ],
            "Failed": [],
        }

    def receive(self, asked: Item) -> Item:
        taken = self._queue(asked).take(asked.get("MaxNumberOfMessages", 1))
        self._taken |= {entry["Id"]: entry for entry in taken}
        return {"Messages": [self._message(entry) for entry in taken]}

    def delete(self, asked: Item) -> Item:
        queue = self._queue(asked)
        for entry in asked["Entries"]:
            taken = self._taken.pop(entry["ReceiptHandle"], None)
            if taken is not None:
                queue.end(taken["Id"], taken["MessageGroupId"])
        return {"Successful": [{"Id": entry["Id"]} for entry in asked["Entries"]], "Failed": []}

    def attributes(self, asked: Item) -> Item:
        queue = self._queue(asked)
        waiting = sum(map(len, queue.groups.values()))
        in_hand = sum(map(len, queue.in_hand.values()))
        return {
            "Attributes": {
                "ApproximateNumberOfMessages": str(waiting),
                "ApproximateNumberOfMessagesNotVisible": str(in_hand),
            }
        }

    def _queue(self, asked: Item) -> _Queue:
        return self._queues.setdefault(asked["QueueUrl"], _Queue())

    def _message(self, entry: Item) -> Item:
        return {
            "MessageId": entry["Id"],
            "ReceiptHandle": entry["Id"],
            "Body": entry["MessageBody"],
            "Attributes": {
                "ApproximateReceiveCount": "1",
                "MessageGroupId": entry["MessageGroupId"],
            },
            "MessageAttributes": entry["MessageAttributes"],
        }


class _Server:
    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        self._tables, self._requests = _Tables(), 0
        queues = _Queues()
        self._does: dict[str, Callable[[Item], Item]] = {
            "DynamoDB_20120810.PutItem": self._tables.put,
            "DynamoDB_20120810.GetItem": self._tables.get,
            "DynamoDB_20120810.UpdateItem": self._tables.update,
            "DynamoDB_20120810.Query": self._tables.query,
            "DynamoDB_20120810.TransactWriteItems": self._tables.transact,
            "DynamoDB_20120810.BatchWriteItem": self._tables.put_many,
            "AmazonSQS.SendMessageBatch": queues.send,
            "AmazonSQS.ReceiveMessage": queues.receive,
            "AmazonSQS.DeleteMessageBatch": queues.delete,
            "AmazonSQS.GetQueueAttributes": queues.attributes,
        }

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        self._requests += 1
        status, body = self._answered(request.fields.get("x-amz-target", ""), request.body)
        fields = {
            "Content-Type": "application/x-amz-json-1.0",
            "Date": formatdate(usegmt=True),
        }
        return answer(body, fields, status=status, seconds=self._latency_seconds)

    def counts(self) -> dict[str, int]:
        """Return the counts, and begin anew."""
        tables = self._tables
        count = Count(self._requests, tables.write_units, tables.read_units)
        self._requests = tables.write_units = tables.read_units = 0
        return count._asdict()

    def _answered(self, operation: str, body: bytes) -> tuple[int, bytes]:
        try:
            does = self._does.get(operation)
            if does is None:
                raise _RefusedError("UnknownOperationException")
            return 200, json.dumps(does(json.loads(body))).encode()
        except _RefusedError as error:
            return 400, json.dumps(error.answer).encode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=LATENCY_MS)
    given = parser.parse_args()
    run(_Server(given.latency_ms / 1000))
