"""Logs in one table of DynamoDB, those of all tables of a lake together.

pk: a table's id. sk: an entry's number. body: its bytes; or object and size: where they lie in
the object store, when they are many. crc: the checksum of the body. followed: there once was an
entry behind it. An item without body and object was truncated: its number stays taken.
Number 0 holds how far the log is truncated, `below`, and how far that is done, `emptied`.

pk: ":tables", which no id is. sk: a number made of a table's id. id: it. Written with entry 1.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, WRITES_AT_ONCE, Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LogConflictError,
    LogRolledBackError,
    LogTruncatedError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import (
    EntryChecksum,
    Micros,
    TableId,
    TransactionNumber,
    entry_checksum,
    table_id,
)
from lakebed.model.paths import entries_end, entries_prefix, entry_path
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore

BODY_BYTES_MAX = 32 << 10
"""A larger body goes to the object store: a partition takes 1,000 write units, each of 1 KiB, a
second."""

PAGE_ENTRIES = 1_000
OBJECTS_AT_ONCE, OBJECT_BYTES_AT_ONCE = 64, 4 << 20
"""Most bodies in the object store that are read at the same time, and most bytes of them."""

EMPTIED_AT_ONCE = 2_000
"""Entries that a truncation empties before it notes how far it is."""

TIME_AGE_SECONDS_MAX = 300.0
"""An older answer's time is not trusted: this machine may have slept."""

IN_PART_SECONDS = (0.0, 0.02, 0.1)
"""Seconds to wait before each look for an entry of a transaction that is seen in part."""

_TABLES = ":tables"
_FREE = WriteCondition(IS_NEW)
_FOLLOWED: Item = {"followed": {"BOOL": True}}


class DynamoTransactionLog:
    """One table's log. rng: for names of objects. page_entries: how many a request reads."""

    def __init__(
        self,
        items: Items,
        table: TableId,
        *,
        objects: ObjectStore,
        clock: Clock,
        rng: random.Random,
        page_entries: int,
    ) -> None:
        self._items = items
        self._table = table
        self._objects = objects
        self._clock = clock
        self._rng = rng
        self._page_entries = page_entries

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if it is free, behind the entry before it, which notes that it was
        followed: a gap is not closed (H33). Of a try without an answer none is the next: the caller
        reads first."""
        if number < 1:
            raise AssertionError(f"entries are numbered from 1, got {number}")
        item = self._key(number) | {"crc": {"B": entry_checksum(body)}}
        if len(body) > BODY_BYTES_MAX:
            item["object"] = {"S": self._spilled(number, body)}
            item["size"] = {"N": str(len(body))}
        else:
            item["body"] = {"B": body}
        beside = (
            {"Update": _follow(self._key(TransactionNumber(number - 1)), after)}
            if number > 1
            else {"Put": {"Item": self._row(), **_FREE.arguments()}}
        )
        try:
            self._items.transact([{"Put": {"Item": item, **_FREE.arguments()}}, beside], once=True)
        except ConditionError as error:
            if error.unmet == (1,) and not self._comes(number):
                raise LogRolledBackError(number - 1, log_ends=self.newest()) from None
            raise LogConflictError(number) from None

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on, up to the first gap: a query is no snapshot, what it
        gives behind a gap may be newer than what it did not see."""
        more = True
        while more:
            page, more = self._page(number, checksum)
            checksum = None
            for batch in _read_together(page):
                for body in self._bodies(batch, TransactionNumber(number + 1)):
                    number = TransactionNumber(number + 1)
                    yield number, body

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number."""
        more = True
        while more:
            page, more = self._items.page(
                self._table, after={"N": str(after)}, items_max=self._page_entries
            )
            for item in page:
                after = TransactionNumber(_number(item))
                if "body" in item or "object" in item:
                    for body in self._bodies([item], after):
                        yield after, body

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is taken, also by an entry that is gone: the one before
        it was followed."""
        last = self._last()
        number = TransactionNumber(_number(last) if last else 0)
        if "followed" not in last:
            return number
        following = TransactionNumber(number + 1)
        self._comes(following)  # else a reader would take what is under way for lost
        return following

    def truncate(self, below: TransactionNumber) -> None:
        """Empty entries below; the newest stays, and no number becomes free.

        The mark comes first, so that who meets an empty item learns where the log starts. The
        objects come last, also those of tries that lost. It may end anywhere, and be repeated.
        """
        last = self._last()
        if not last:
            return
        oldest = TransactionNumber(min(below, _number(last)))
        self._raise_mark("below", oldest)
        for start in range(self._mark("emptied"), oldest, EMPTIED_AT_ONCE):
            end = TransactionNumber(min(start + EMPTIED_AT_ONCE, oldest))
            emptied = [self._key(TransactionNumber(n)) | _FOLLOWED for n in range(start, end)]
            self._items.put_many(emptied)
            self._raise_mark("emptied", end)
        paths = self._objects.list(
            entries_prefix(self._table), below=entries_end(self._table, oldest)
        )
        self._objects.delete(paths)

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Refuse: a transaction of DynamoDB takes no whole log away."""
        hint = "restore the table of logs by point-in-time recovery"
        raise InvalidError("no command repairs a log in DynamoDB", hint=hint)

    def store_time(self) -> Micros:
        """Return DynamoDB's clock: `Date` of its last answer, and the time since then.

        A server that sends no time is taken to have this machine's.
        """
        at = self._items.store_time.now(age_seconds_max=TIME_AGE_SECONDS_MAX)
        if at is None:
            self._items.get(self._key(TransactionNumber(0)))
            at = self._items.store_time.now(age_seconds_max=TIME_AGE_SECONDS_MAX)
        return self._clock.now() if at is None else at

    def remove(self) -> None:
        """Remove all items, then bodies that lie beside, then the line in the list."""
        items = self._items.all(self._table)
        while some := list(islice(items, WRITES_AT_ONCE)):
            keys = [self._key(TransactionNumber(_number(item))) for item in some]
            self._items.transact([{"Delete": {"Key": key}} for key in keys])
        bodies = self._objects.list(entries_prefix(self._table))
        while paths := list(islice(bodies, PAGE_ENTRIES)):
            self._objects.delete(paths)
        row = self._row()
        row.pop("id")
        self._items.transact([{"Delete": {"Key": row}}])

    def _key(self, number: TransactionNumber) -> Item:
        return {PARTITION_KEY: {"S": self._table}, SORT_KEY: {"N": str(number)}}

    def _comes(self, number: TransactionNumber) -> bool:
        """Return whether an entry is there, or comes at once. For some milliseconds a transaction
        is seen in part, and a condition on an item that it holds is not judged."""
        for wait_seconds in IN_PART_SECONDS:
            self._clock.sleep(wait_seconds)
            if self._items.get(self._key(number)):
                return True
        return False

    def _last(self) -> Item:
        """Return the item with the greatest number; {}: there is none."""
        found, _ = self._items.page(self._table, items_max=1, newest=True)
        return found[0] if found else {}

    def _row(self) -> Item:
        """Return the item that lists this table."""
        digest = hashlib.blake2b(self._table.encode(), digest_size=15).digest()
        sort_key = str(int.from_bytes(digest, "big"))  # up to 37 of 38 digits
        return {PARTITION_KEY: {"S": _TABLES}, SORT_KEY: {"N": sort_key}, "id": {"S": self._table}}

    def _spilled(self, number: TransactionNumber, body: bytes) -> str:
        """Put a body under a name that is used once. Returns its path.

        Raises:
            UnavailableError: it may not be there, so no entry was written that needs it.
        """
        path = entry_path(self._table, number, f"{self._rng.getrandbits(128):032x}")
        writer = self._objects.create(path)
        try:
            writer.write(body)
            writer.finish()
        except (ObjectExistsError, UnknownOutcomeError):  # a lost answer: the name is unique
            if not self._is_stored(path, body):
                message = "an entry's body may not be stored"
                raise UnavailableError(message, path=path) from None
        finally:
            writer.abort()
        return path

    def _is_stored(self, path: str, body: bytes) -> bool:
        """Read a body back (H25): a server that was killed may know a name and not its bytes."""
        try:
            return list(self._objects.read(path, [(0, len(body))])) == [body]
        except (ObjectMissingError, CorruptError):
            return False

    def _page(
        self, number: TransactionNumber, checksum: EntryChecksum | None
    ) -> tuple[list[Item], bool]:
        """Return the items of consecutive entries after `number`, and whether there may be more.

        Raises:
            LogRolledBackError: entry `number` is not there, or is another.
        """
        page, more = self._items.page(
            self._table, after={"N": str(max(number - 1, 0))}, items_max=self._page_entries + 1
        )
        if number:
            before = page.pop(0) if page and _number(page[0]) == number else None
            found = before and before.get("crc", {}).get("B")
            if before is None or (checksum and found and bytes(found) != checksum):
                raise LogRolledBackError(number, log_ends=self.newest())
        entries = [item for at, item in enumerate(page, number + 1) if _number(item) == at]
        return entries, more and len(entries) == len(page)

    def _bodies(self, items: Sequence[Item], first: TransactionNumber) -> Iterator[bytes]:
        """Yield bodies of consecutive entries.

        Raises:
            LogTruncatedError: at one that was truncated. CorruptError: at one whose object is gone.
        """
        spans = [
            (item["object"]["S"], [(0, int(item["size"]["N"]))])
            for item in items
            if "object" in item
        ]
        try:
            found = [body for (body,) in self._objects.read_many(spans)] if spans else []
        except ObjectMissingError:
            if len(items) == 1:
                raise self._why_missing(first) from None
            for number, item in enumerate(items, first):
                yield from self._bodies([item], TransactionNumber(number))
            return
        rest = iter(found)
        for number, item in enumerate(items, first):
            if "body" in item:
                yield bytes(item["body"]["B"])
            elif "object" in item:
                yield next(rest)
            else:
                raise self._truncated(TransactionNumber(number))

    def _why_missing(self, number: TransactionNumber) -> LogTruncatedError | CorruptError:
        """Return what it means that an entry's object is gone: the log was truncated since the
        item was read, or damaged."""
        if "object" in self._items.get(self._key(number)):
            return CorruptError("an entry's body is gone", table=self._table, number=number)
        return self._truncated(number)

    def _truncated(self, number: TransactionNumber) -> LogTruncatedError:
        return LogTruncatedError(max(self._mark("below"), number + 1))

    def _mark(self, name: str) -> int:
        """Return a number of item 0; 1 where there is none."""
        mark = self._items.get(self._key(TransactionNumber(0))).get(name)
        return int(mark["N"]) if mark else 1

    def _raise_mark(self, name: str, number: TransactionNumber) -> None:
        """Set a number of item 0, unless it is as high already."""
        holds = "attribute_not_exists(#n) OR #n < :n"
        condition = WriteCondition(holds, {":n": {"N": str(number)}}, {"#n": name})
        with suppress(ConditionError):
            self._items.update(self._key(TransactionNumber(0)), "SET #n = :n", condition)


class DynamoTransactionLogs:
    """The logs of all tables. table: DynamoDB's. objects: for large bodies."""

    def __init__(
        self,
        clients: AmazonClients,
        table: str,
        *,
        objects: ObjectStore,
        rng: random.Random,
        page_entries: int = PAGE_ENTRIES,
    ) -> None:
        self._items = Items(clients, table)
        self._objects = objects
        self._clock = clients.clock
        self._rng = rng
        self._page_entries = page_entries

    def open(self, table: TableId) -> DynamoTransactionLog:
        """Return a table's log. Raises: InvalidError for what no table is called."""
        return DynamoTransactionLog(
            self._items,
            table_id(table),
            objects=self._objects,
            clock=self._clock,
            rng=self._rng,
            page_entries=self._page_entries,
        )

    def tables(self) -> list[TableId]:
        """Return every table that has a log, in order."""
        return sorted(TableId(item["id"]["S"]) for item in self._items.all(_TABLES))

    def remove(self, table: TableId) -> None:
        """Remove a log's items, then what lies beside it, then its line in the list."""
        self.open(table).remove()


def _follow(key: Item, checksum: EntryChecksum | None) -> Item:
    """Return the change that notes of an entry that it was followed.

    It holds if the entry is there, is the one that has the checksum, and nothing followed it yet.
    An item that was truncated, or that an older Lakebed wrote, has no checksum; nor does one say
    that it was followed behind which an older Lakebed wrote.
    """
    holds = f"attribute_exists({PARTITION_KEY}) AND attribute_not_exists(followed)"
    values: Item = {":yes": _FOLLOWED["followed"]}
    if checksum is not None:
        holds += " AND (attribute_not_exists(crc) OR crc = :crc)"
        values[":crc"] = {"B": checksum}
    condition = WriteCondition(holds, values)
    return {"Key": key, "UpdateExpression": "SET followed = :yes", **condition.arguments()}


def _number(item: Item) -> int:
    return int(item[SORT_KEY]["N"])


def _read_together(page: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield the items of a page in batches whose objects may be read at the same time."""
    batch: list[Item] = []
    objects = size = 0
    for item in page:
        batch.append(item)
        if "object" in item:
            objects, size = objects + 1, size + int(item["size"]["N"])
            if objects == OBJECTS_AT_ONCE or size >= OBJECT_BYTES_AT_ONCE:
                yield batch
                batch, objects, size = [], 0, 0
    if batch:
        yield batch
