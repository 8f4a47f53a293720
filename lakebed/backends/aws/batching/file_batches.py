"""Files that wait, and batches, in one table of DynamoDB.

pk: "pending#TABLE#S", S of 0 to 7. sk: the digest of a file that waits. name, version, size, seen.
pk: "taken#TABLE#DIGEST". sk: "taken". number: of the batch. until: in microseconds since 1970.
freed: there, and true, once it may be submitted again.
pk: "batches#TABLE". sk: "head". planned, closed, ended.
pk: "batches#TABLE". sk: NUMBERS_MAX less the number, in 12 digits, so that the newest comes first.
body: files and target. sends, sent. refusals: how many there are. refused: which. kept: until when,
in seconds since 1970, once it has ended.
pk: "tables". sk: a table that may have something to do. stamp: another one with each submission.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.errors import ConflictError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.file_batches import (
    BATCHES_MAX,
    Batch,
    BatchHead,
    Refusal,
    SubmitCounts,
    SubmittedFile,
    check_batch,
    check_files,
    head_after,
)

STRIPES = 8
"""A partition of DynamoDB takes 1,000 writes a second."""
NUMBERS_MAX = 10**12 - 1
KEPT_SECONDS = 90 * 86_400
"""Seconds that batches are kept: three times as long as the ids of their jobs, unless set."""
PAGE_ITEMS = 1_000

_HEAD, _TAKEN, _TABLES = "head", "taken", "tables"
_AS_READ = "planned = :planned AND closed = :closed AND ended = :ended"

_decode = msgspec.msgpack.Decoder(Batch).decode
_decode_refused = msgspec.msgpack.Decoder(tuple[Refusal, ...]).decode


class DynamoFileBatches:
    """Files that wait, and batches. rng: makes stamps."""

    def __init__(self, clients: AmazonClients, table: str, *, rng: random.Random) -> None:
        self._items = Items(clients, table)
        self._at_once = clients.at_once
        self._rng = rng

    def submit(self, table: TableId, files: Sequence[SubmittedFile]) -> SubmitCounts:
        """Let files wait, each by a transaction of its own."""
        check_files(files)
        added: list[SubmittedFile] = []
        self._each(files, lambda file: self._submit_one(table, file, added.append))
        self._list(table)  # last: who looks before finds nothing, and may take it off the list
        return SubmitCounts(len(added), len(files) - len(added))

    def _submit_one(
        self, table: TableId, file: SubmittedFile, is_added: Callable[[SubmittedFile], None]
    ) -> None:
        not_taken = WriteCondition(
            f"{IS_NEW} OR #until <= :seen OR attribute_exists(freed)",
            {":seen": _number(file.seen)},
            {"#until": "until"},
        )
        item = {
            **_pending_key(table, file),
            "name": {"S": file.name},
            "version": {"S": file.version},
            "size": _number(file.size),
            "seen": _number(file.seen),
        }
        check = {"Key": _taken_key(table, file), **not_taken.arguments()}
        put = {"Item": item, **WriteCondition(IS_NEW).arguments()}
        with suppress(ConditionError):  # a double
            self._items.transact([{"ConditionCheck": check}, {"Put": put}])
            is_added(file)

    def pending(self, table: TableId, *, files_max: int) -> list[SubmittedFile]:
        """Return files that wait: of each stripe its share, if there are too many."""
        found: list[SubmittedFile] = []
        stripes = [self._items.all(_stripe(table, n), items_max=PAGE_ITEMS) for n in range(STRIPES)]
        for n, stripe in enumerate(stripes):
            share = max(1, (files_max - len(found)) // (STRIPES - n))
            found += map(_file, islice(stripe, share))
        for stripe in stripes:  # others had less than their share
            found += map(_file, islice(stripe, max(0, files_max - len(found))))
        return sorted(found, key=lambda file: (file.seen, file.name))[:files_max]

    def tables(self) -> list[TableId]:
        """Return the tables with something to do, and some that had."""
        return [TableId(item[SORT_KEY]["S"]) for item in self._items.all(_TABLES)]

    def rest(self, table: TableId) -> None:
        """Take a table off the list, unless something was submitted meanwhile."""
        listed = self._items.get(_listed_key(table))
        head = self.head(table)
        if not listed or head.planned > head.ended:
            return
        if any(self._items.page(_stripe(table, n), items_max=1)[0] for n in range(STRIPES)):
            return
        unchanged = WriteCondition("stamp = :stamp", {":stamp": listed["stamp"]})
        with suppress(ConditionError):
            self._items.delete(_listed_key(table), unchanged)

    def head(self, table: TableId) -> BatchHead:
        """Return how far a table's batches are."""
        item = self._items.get(_key(_batches(table), _HEAD))
        return BatchHead(*(int(item[n]["N"]) for n in BatchHead._fields)) if item else BatchHead()

    def plan(self, table: TableId, batch: Batch, head: BatchHead) -> None:
        """Put the next batch, and raise the head."""
        check_batch(batch, head)
        kept = batch.planned // MICROS_PER_SECOND + KEPT_SECONDS
        item = {
            **_batch_key(table, batch.number),
            "body": {"B": msgspec.msgpack.encode(batch)},
            "sends": _number(0),
            "sent": _number(0),
            "refusals": _number(0),
            "kept": _number(kept),
        }
        raised = {**_key(_batches(table), _HEAD), **_head_item(head_after(batch, head))}
        as_read = WriteCondition(
            _AS_READ if head.planned else f"{IS_NEW} OR ({_AS_READ})",
            {f":{name}": value for name, value in _head_item(head).items()},
        )
        try:
            self._items.transact(
                [
                    {"Put": {"Item": item, **WriteCondition(IS_NEW).arguments()}},
                    {"Put": {"Item": raised, **as_read.arguments()}},
                ]
            )
        except ConditionError:
            raise ConflictError(
                "another batch was planned", table=table, number=batch.number
            ) from None

    def take(self, table: TableId, batch: Batch, *, until: Micros) -> None:
        """Remember the files of a batch as taken."""
        earlier = WriteCondition(
            f"{IS_NEW} OR #number < :number",
            {":number": _number(batch.number)},
            {"#number": "number"},
        )
        values = {
            "number": _number(batch.number),
            "until": _number(until),
            "expires": _number(until // MICROS_PER_SECOND + 1),
        }

        def take(file: SubmittedFile) -> None:
            with suppress(ConditionError):  # by an earlier try, or a later batch
                self._items.put({**_taken_key(table, file), **values}, earlier)

        self._each(batch.files, take)

    def remove(self, table: TableId, batch: Batch) -> None:
        """Let the files of a batch wait no more."""

        def remove(file: SubmittedFile) -> None:
            same = WriteCondition("seen = :seen", {":seen": _number(file.seen)})
            with suppress(ConditionError):  # it is gone, or was submitted again
                self._items.delete(_pending_key(table, file), same)

        self._each(batch.files, remove)

    def finish(self, table: TableId, number: int, *, sent: Micros) -> None:
        """Close the open batch."""
        values = {":number": _number(number), ":before": _number(number - 1)}
        is_open = WriteCondition("planned = :number AND closed = :before", values)
        first = WriteCondition(
            "sends = :none", {":none": _number(0), ":one": _number(1), ":sent": _number(sent)}
        )
        head = {"Key": _key(_batches(table), _HEAD), "UpdateExpression": "SET closed = :number"}
        batch = {
            "Key": _batch_key(table, number),
            "UpdateExpression": "SET sends = :one, sent = :sent",
        }
        with suppress(ConditionError):  # it is closed
            self._items.transact(
                [
                    {"Update": {**head, **is_open.arguments()}},
                    {"Update": {**batch, **first.arguments()}},
                ]
            )

    def sent_again(self, table: TableId, number: int, *, sends: int, sent: Micros) -> None:
        """Tell that a job was sent again."""
        fewer = WriteCondition("sends < :sends", {":sends": _number(sends), ":sent": _number(sent)})
        with suppress(ConditionError):
            self._items.update(_batch_key(table, number), "SET sends = :sends, sent = :sent", fewer)

    def refuse(
        self, table: TableId, number: int, refused: Sequence[Refusal], *, known: int
    ) -> None:
        """Leave more files out of a batch."""
        batch = self.batch(table, number)
        every = (*(batch.refused if batch is not None else ()), *refused)
        unchanged = WriteCondition(
            "refusals = :known",
            {
                ":known": _number(known),
                ":count": _number(len(every)),
                ":refused": {"B": msgspec.msgpack.encode(every)},
            },
        )
        change = "SET refusals = :count, refused = :refused"
        try:
            if batch is None or len(batch.refused) != known:
                raise ConditionError("another run refused files")
            self._items.update(_batch_key(table, number), change, unchanged)
        except ConditionError:
            raise ConflictError("another run refused files", table=table, number=number) from None

    def end(self, table: TableId, number: int, *, free: Sequence[SubmittedFile]) -> None:
        """Tell that a batch is at an end."""
        own = WriteCondition(
            "#number = :number",
            {":number": _number(number), ":true": {"BOOL": True}},
            {"#number": "number"},
        )

        def set_free(file: SubmittedFile) -> None:
            with suppress(ConditionError):  # it was taken again
                self._items.update(_taken_key(table, file), "SET freed = :true", own)

        self._each(free, set_free)
        further = WriteCondition(
            "ended < :number AND closed >= :number", {":number": _number(number)}
        )
        is_there = WriteCondition("attribute_exists(kept)")
        with suppress(ConditionError):
            self._items.update(_batch_key(table, number), "SET expires = kept", is_there)
        with suppress(ConditionError):
            self._items.update(_key(_batches(table), _HEAD), "SET ended = :number", further)

    def batch(self, table: TableId, number: int) -> Batch | None:
        """Return a batch."""
        item = self._items.get(_batch_key(table, number))
        return _batch(item) if item else None

    def batches(
        self, table: TableId, *, below: int | None = None, batches_max: int = BATCHES_MAX
    ) -> list[Batch]:
        """Return batches, the newest first."""
        found: list[Batch] = []
        after = None if below is None else _batch_key(table, below)[SORT_KEY]
        more = True
        while more and len(found) < batches_max:
            page, more = self._items.page(
                _batches(table), after=after, items_max=batches_max - len(found) + 1
            )
            found += [_batch(item) for item in page if item[SORT_KEY]["S"] != _HEAD]
            after = page[-1][SORT_KEY] if page else after
        return found[:batches_max]

    def forget(self, table: TableId, *, before: Micros, now: Micros) -> None:
        """Nothing: items expire."""

    def drop(self, table: TableId) -> None:
        """Drop all of a table. What was taken expires."""
        for partition in (*(_stripe(table, n) for n in range(STRIPES)), _batches(table)):
            keys = [
                {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
                for item in self._items.all(partition, items_max=PAGE_ITEMS)
            ]
            self._items.delete_many(keys)
        self._items.delete(_listed_key(table))

    def _list(self, table: TableId) -> None:
        stamp = f"{self._rng.getrandbits(128):032x}"
        self._items.put_many([{**_listed_key(table), "stamp": {"S": stamp}}])

    def _each(self, files: Sequence[SubmittedFile], do: Callable[[SubmittedFile], None]) -> None:
        """Do something with each file, some at the same time."""
        self._at_once.run([partial(do, file) for file in files])


def _number(value: int) -> Item:
    return {"N": str(value)}


def _key(partition: str, sort: str) -> Item:
    return {PARTITION_KEY: {"S": partition}, SORT_KEY: {"S": sort}}


def _stripe(table: TableId, stripe: int) -> str:
    return f"pending#{table}#{stripe}"


def _pending_key(table: TableId, file: SubmittedFile) -> Item:
    return _key(_stripe(table, file.digest[0] % STRIPES), file.digest.hex())


def _taken_key(table: TableId, file: SubmittedFile) -> Item:
    return _key(f"taken#{table}#{file.digest.hex()}", _TAKEN)


def _batches(table: TableId) -> str:
    return f"batches#{table}"


def _batch_key(table: TableId, number: int) -> Item:
    return _key(_batches(table), f"{NUMBERS_MAX - number:012d}")


def _listed_key(table: TableId) -> Item:
    return _key(_TABLES, table)


def _head_item(head: BatchHead) -> Item:
    return {name: _number(value) for name, value in head._asdict().items()}


def _file(item: Item) -> SubmittedFile:
    size, seen = int(item["size"]["N"]), Micros(int(item["seen"]["N"]))
    return SubmittedFile(item["name"]["S"], size, item["version"]["S"], seen)


def _batch(item: Item) -> Batch:
    refused = item.get("refused")
    return msgspec.structs.replace(
        _decode(item["body"]["B"]),
        sends=int(item["sends"]["N"]),
        sent=Micros(int(item["sent"]["N"])),
        refused=() if refused is None else _decode_refused(refused["B"]),
    )
