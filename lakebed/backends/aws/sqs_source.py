"""A queue of SQS as a source of feeds: messages are kept out of sight while their rows are staged,
and deleted when these are committed. A message that comes again is the same item."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_QUEUE
from lakebed.decoding.raw_records import HEADERS, raw_records
from lakebed.errors import LakebedError
from lakebed.ports.record_source import Records, SourceSplit

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import MessageTypeDef

T = TypeVar("T")

AT_ONCE_MAX = 10
WAIT_SECONDS_MAX = 20
FORGOTTEN_AFTER = 100_000
"""Items that a reader deleted and knows: a standard queue may show a message again."""
ITEM_BYTES = 16
GATHERED_SHARE = 1 / 4
"""Greatest share of the time for which messages are hidden that one read spends receiving: the
messages that it got first must not be seen again meanwhile, or it would receive them for ever."""
MESSAGES_MAX = 100_000
"""Most messages that one reader holds. SQS allows 120,000 in flight of any queue."""

_RECEIVE = Request(what="receiving messages", needs="sqs:ReceiveMessage")
_DELETE = Request(what="deleting messages", needs="sqs:DeleteMessage")
_EXTEND = Request(what="keeping messages hidden", needs="sqs:ChangeMessageVisibility")
_LOOK = Request(what="looking at a queue", needs="sqs:GetQueueAttributes")
NOT_GIVEN = -1
_BY_STRING = {"String", "Number"}


class SqsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source of SQS.

    queue: its URL. A standard queue or a FIFO queue.
    receivers: source splits of the queue, each with a reader of its own.
    hidden_seconds: how long a message stays out of sight without a sign of life from its reader:
        more than one batch takes from its first record to its commit.
    """

    queue: Annotated[str, Meta(min_length=1, max_length=400)]
    receivers: Annotated[int, Meta(ge=1, le=100)] = 1
    hidden_seconds: Annotated[int, Meta(ge=2, le=43_200)] = 300


class SqsRecordSource:
    """Messages of one queue."""

    def __init__(self, clients: AmazonClients, settings: SqsSettings) -> None:
        self._clients = clients
        self._settings = settings

    def splits(self) -> list[SourceSplit]:
        """Return a source split for each receiver."""
        queue = self._settings.queue
        return [
            SourceSplit(f"{queue}#{number}", f"{queue}, receiver {number}")
            for number in range(self._settings.receivers)
        ]

    def start(self, split: SourceSplit) -> int:
        """Return 0: a position counts messages that were taken."""
        return 0

    def open(self, split: SourceSplit, begin: int, *, resume: bytes = b"") -> SqsReader:
        """Return a reader of what waits in the queue."""
        return SqsReader(self._clients, self._settings, begin)

    def close(self) -> None:
        """Do nothing: the clients are closed by what made them."""


class InHand(msgspec.Struct):
    """A message that was received and not acknowledged.

    position: `NOT_GIVEN`: it waits for a read.
    until: when it is seen again.
    """

    position: int
    receipt: str
    until: float


class SqsReader:
    """Receives messages, and keeps them out of sight until they are acknowledged."""

    def __init__(self, clients: AmazonClients, settings: SqsSettings, begin: int) -> None:
        self._clients = clients
        self._settings = settings
        self._position = begin
        self._in_hand: dict[bytes, InHand] = {}
        self._pending: deque[tuple[MessageTypeDef, bytes]] = deque()
        self._done: OrderedDict[bytes, None] = OrderedDict()
        self._requests = clients.requests(AMAZON_QUEUE, settings.queue.rpartition("/")[2])
        self._waiting: int | None = None

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[pa.RecordBatch] | None:
        """Return messages, ten with a request, until the queue has none or there are enough."""
        self._keep_hidden()
        self._gather(bytes_max, wait_seconds)
        begin, size = self._position, 0
        taken: list[MessageTypeDef] = []
        items: list[bytes] = []
        while self._pending:
            message, item = self._pending[0]
            own = _size(message)
            if taken and size + own > bytes_max:
                break
            self._pending.popleft()
            self._in_hand[item].position = self._position
            self._position += 1
            size += own
            taken.append(message)
            items.append(item)
        self._waiting = None if taken else 0
        if not taken:
            return None
        return Records(
            begin=begin,
            end=self._position,
            count=len(taken),
            size=size,
            batch=_batch(taken, begin),
            items=tuple(items),
        )

    def behind(self) -> int | None:
        """Return about how many messages wait. None: the queue does not say."""
        if self._waiting is None:
            try:
                answer = self._run(
                    _LOOK,
                    lambda: self._clients.sqs.get_queue_attributes(
                        QueueUrl=self._settings.queue,
                        AttributeNames=["ApproximateNumberOfMessages"],
                    ),
                )
            except LakebedError:  # a figure for people
                return None
            found = answer.get("Attributes", {}).get("ApproximateNumberOfMessages")
            self._waiting = None if found is None else int(found)
        return self._waiting

    def acknowledge(self, end: int) -> None:
        """Delete the messages before a position. One that is not deleted comes again, and its item
        is known then. Meanwhile those behind it stay out of sight."""
        done = [item for item, one in self._in_hand.items() if NOT_GIVEN < one.position < end]
        self._delete([self._in_hand[item].receipt for item in done])
        for item in done:
            del self._in_hand[item]
            self._done[item] = None
        while len(self._done) > FORGOTTEN_AFTER:
            self._done.popitem(last=False)
        self._keep_hidden()

    def close(self) -> None:
        """Show again what was not acknowledged. Closing twice does no harm."""
        held = [one.receipt for one in self._in_hand.values()]
        self._in_hand.clear()
        self._pending.clear()
        try:
            self._hide(held, seconds=0)
        except LakebedError:
            return  # they are seen when their time is over

    def _gather(self, bytes_max: int, wait_seconds: float) -> None:
        """Receive until enough is pending, nothing comes, or it took long."""
        size = sum(_size(message) for message, _ in self._pending)
        now = self._clients.clock.monotonic
        end = now() + self._settings.hidden_seconds * GATHERED_SHARE
        while len(self._in_hand) < MESSAGES_MAX and (not self._pending or size < bytes_max):
            came = self._receive(0.0 if self._pending else wait_seconds)
            size += self._take_in_hand(came)
            if not came or now() >= end:
                return

    def _receive(self, wait_seconds: float) -> list[MessageTypeDef]:
        answer = self._run(
            _RECEIVE,
            lambda: self._clients.sqs.receive_message(
                QueueUrl=self._settings.queue,
                MaxNumberOfMessages=AT_ONCE_MAX,
                VisibilityTimeout=self._settings.hidden_seconds,
                WaitTimeSeconds=min(math.ceil(wait_seconds), WAIT_SECONDS_MAX),
                MessageSystemAttributeNames=["MessageGroupId", "SentTimestamp"],
                MessageAttributeNames=["All"],
            ),
        )
        return list(answer.get("Messages", []))

    def _take_in_hand(self, came: Sequence[MessageTypeDef]) -> int:
        """Let messages that were not given yet wait for a read. Returns how large they are."""
        size = 0
        again: list[str] = []
        until = self._clients.clock.monotonic() + self._settings.hidden_seconds
        for message in came:
            item = item_of(message["MessageId"])
            if item in self._done:  # committed, and shown once more
                again.append(message["ReceiptHandle"])
            elif item in self._in_hand:  # only the newest receipt deletes it
                self._in_hand[item].receipt = message["ReceiptHandle"]
                self._in_hand[item].until = until
            else:
                self._in_hand[item] = InHand(NOT_GIVEN, message["ReceiptHandle"], until)
                self._pending.append((message, item))
                size += _size(message)
        self._delete(again)
        return size

    def _keep_hidden(self) -> None:
        """Hide for longer what is seen again before half of its time is over."""
        now, whole = self._clients.clock.monotonic(), self._settings.hidden_seconds
        due = [one for one in self._in_hand.values() if one.until - now < whole / 2]
        self._hide([one.receipt for one in due], seconds=whole)
        for one in due:
            one.until = now + whole

    def _hide(self, receipts: Sequence[str], *, seconds: int) -> None:
        for some in _parts(receipts):
            entries: Any = [
                {"Id": str(n), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for n, handle in enumerate(some)
            ]
            change = partial(
                self._clients.sqs.change_message_visibility_batch,
                QueueUrl=self._settings.queue,
                Entries=entries,
            )
            self._run(_EXTEND, change)  # what fails for one message only makes it come again

    def _delete(self, receipts: Sequence[str]) -> None:
        for some in _parts(receipts):
            entries: Any = [{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(some)]
            delete = partial(
                self._clients.sqs.delete_message_batch,
                QueueUrl=self._settings.queue,
                Entries=entries,
            )
            self._run(_DELETE, delete)

    def _run(self, request: Request, call: Callable[[], T]) -> T:
        return self._requests.run(request, call)


def item_of(message_id: str) -> bytes:
    """Return the name of a message, as a table remembers it."""
    return hashlib.blake2b(message_id.encode(), digest_size=ITEM_BYTES).digest()


def _parts(receipts: Sequence[str]) -> list[Sequence[str]]:
    return [receipts[at : at + AT_ONCE_MAX] for at in range(0, len(receipts), AT_ONCE_MAX)]


def _size(message: MessageTypeDef) -> int:
    headers = _headers(message) or []
    attributes = sum(len(name.encode()) + len(value) for name, value in headers)
    return len(message["Body"].encode()) + attributes + len(_message_group(message) or b"")


def _message_group(message: MessageTypeDef) -> bytes | None:
    system: Any = message.get("Attributes", {})
    named = system.get("MessageGroupId")
    return None if named is None else str(named).encode()


def _headers(message: MessageTypeDef) -> list[tuple[str, bytes]] | None:
    given: Any = message.get("MessageAttributes") or {}
    found = [
        (name, value["StringValue"].encode())
        if value["DataType"].partition(".")[0] in _BY_STRING
        else (name, value["BinaryValue"])
        for name, value in sorted(given.items())
    ]
    return found or None


def _batch(messages: Sequence[MessageTypeDef], begin: int) -> pa.RecordBatch:
    system: Any = [message.get("Attributes", {}) for message in messages]
    millis = [each.get("SentTimestamp") for each in system]
    micros = [None if each is None else int(each) * 1_000 for each in millis]
    count = len(messages)
    return raw_records(
        value=pa.array([message["Body"].encode() for message in messages], pa.binary()),
        key=pa.array(list(map(_message_group, messages)), pa.binary()),
        headers=pa.array(list(map(_headers, messages)), HEADERS),
        time=pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        position=pa.array(np.arange(begin, begin + count, dtype=np.int64)),
    )
