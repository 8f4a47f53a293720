"""Queues in SQS, FIFO: messages of a group in order, doubles of a request swallowed.

What SQS says of a body is a text, so bytes that are none travel as base64. Each message carries the
time at which it was first sent: SQS counts the age of a FIFO queue's dead letters from their death.
"""

from __future__ import annotations

import base64
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from botocore.exceptions import ClientError

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_QUEUE
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.names import Micros, digest_of
from lakebed.ports.job_queue import (
    LETTER_HIDDEN_SECONDS,
    MESSAGES_AT_ONCE_MAX,
    Message,
    QueueLoad,
    Received,
    check_messages,
)

if TYPE_CHECKING:
    from types_boto3_sqs.literals import MessageSystemAttributeNameType
    from types_boto3_sqs.type_defs import (
        BatchResultErrorEntryTypeDef,
        MessageTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

T = TypeVar("T")

REQUEST_BYTES_MAX = 256 * 1024
"""Most bytes of all messages in one request."""
ATTRIBUTE_BYTES = 64
"""Bytes of a message besides its body."""
WAIT_SECONDS_MAX, HIDDEN_SECONDS_MAX = 20, 43_200

_SENT = "sent"
_BASE64 = "base64:"
_DEAD = "dead/"
_ALONE = "-"
"""First character of the group of a message that was sent without one."""
_SYSTEM: list[MessageSystemAttributeNameType] = [
    "ApproximateReceiveCount",
    "MessageGroupId",
    "SentTimestamp",
]
_TEXT = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
"""Pattern of the texts that SQS accepts as a body."""
_STALE_CODES = {"ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue"}

_SEND = Request(what="sending messages", needs="sqs:SendMessage", writes=True)
_RECEIVE = Request(what="receiving messages", needs="sqs:ReceiveMessage")
_DELETE = Request(what="deleting a message", needs="sqs:DeleteMessage")
_EXTEND = Request(what="keeping a message hidden", needs="sqs:ChangeMessageVisibility")
_LOOK = Request(what="looking at a queue", needs="sqs:GetQueueAttributes, sqs:GetQueueUrl")


class SqsJobQueue:
    """One queue, with the dead letters that its redrive policy names.

    rng: makes ids of messages that have no name. Safe to share among threads.
    """

    def __init__(self, clients: AmazonClients, url: str, *, rng: random.Random) -> None:
        if not url.endswith(".fifo"):
            raise InvalidError("not a FIFO queue", queue=url, hint="name one that ends in `.fifo`")
        self._clients = clients
        self._url = url
        self._rng = rng
        self._requests = clients.requests(AMAZON_QUEUE, url.rpartition("/")[2])
        self._dead_url: str | None = None

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages in, ten with a request; if none has a group, by several requests at the same
        time. A request that is repeated puts them in once."""
        check_messages(messages)
        batches = _batches([self._entry(message) for message in messages])
        sends = [
            partial(self._run, _SEND, partial(self._send, self._url, batch)) for batch in batches
        ]
        if not any(message.message_group for message in messages):
            self._clients.at_once.run(sends)
            return
        for send in sends:  # those of a group keep their order
            send()

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Take messages out of sight for so long, waiting for up to 20 seconds."""
        found = self._receive(self._url, messages_max, hidden_seconds, wait_seconds)
        return [_received(message) for message in found]

    def delete(self, *receipts: str) -> None:
        """Remove messages or dead letters for good, ten with a request."""
        handles: dict[str, list[str]] = {}
        for url, handle in map(self._queue_and_handle, receipts):
            handles.setdefault(url, []).append(handle)
        for url, every in handles.items():
            for at in range(0, len(every), MESSAGES_AT_ONCE_MAX):
                some = every[at : at + MESSAGES_AT_ONCE_MAX]
                self._run(_DELETE, partial(self._delete, url, some))

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now."""
        url, handle = self._queue_and_handle(receipt)
        seconds = _whole_seconds(hidden_seconds)
        self._run(
            _EXTEND,
            lambda: _unless_stale(
                lambda: self._clients.sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=seconds
                )
            ),
        )

    def give_up(self, message: Received) -> None:
        """Put a message in hand among the dead letters: sent there, then deleted here. A double of
        it is swallowed there for five minutes."""
        letter = Message(
            message.body, message.message_group, once=message.receipt, sent_at=message.sent_at
        )
        entries = [self._entry(letter)]
        self._run(_SEND, partial(self._send, self._dead(), entries))
        self.delete(message.receipt)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return up to ten messages that were given up."""
        found = self._receive(self._dead(), messages_max, LETTER_HIDDEN_SECONDS, 0.0)
        return [_received(message, _DEAD) for message in found]

    def depth(self) -> tuple[int, int]:
        """Return about how many messages are waiting or in hand, and how many dead."""
        return sum(self._load(self._url)), sum(self._load(self._dead()))

    def load(self) -> QueueLoad:
        """Return about how many messages wait, and how many are in hand."""
        return self._load(self._url)

    def _entry(self, message: Message) -> SendMessageBatchRequestEntryTypeDef:
        once = digest_of(message.once.encode()).hex() if message.once else self._fresh_id()
        return {
            "Id": self._fresh_id(),
            "MessageBody": _text_of(message.body),
            "MessageGroupId": message.message_group or _ALONE + self._fresh_id(),
            "MessageDeduplicationId": once,
            "MessageAttributes": {
                _SENT: {
                    "DataType": "Number",
                    "StringValue": str(message.sent_at or self._clients.clock.now()),
                }
            },
        }

    def _fresh_id(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"

    def _send(self, url: str, entries: list[SendMessageBatchRequestEntryTypeDef]) -> None:
        answer = self._clients.sqs.send_message_batch(QueueUrl=url, Entries=entries)
        for failed in answer.get("Failed", []):  # reported as if all had: the others are in once
            raise _failure(failed, "SendMessageBatch")

    def _delete(self, url: str, handles: Sequence[str]) -> None:
        answer = self._clients.sqs.delete_message_batch(
            QueueUrl=url,
            Entries=[{"Id": str(n), "ReceiptHandle": h} for n, h in enumerate(handles)],
        )
        for failed in answer.get("Failed", []):
            error = _failure(failed, "DeleteMessageBatch")
            _unless_stale(partial(_raise, error))

    def _receive(
        self, url: str, messages_max: int, hidden_seconds: float, wait_seconds: float
    ) -> list[MessageTypeDef]:
        attempt = self._fresh_id()  # a request that is repeated gets the same messages
        answer = self._run(
            _RECEIVE,
            lambda: self._clients.sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(messages_max, MESSAGES_AT_ONCE_MAX),
                VisibilityTimeout=_whole_seconds(hidden_seconds),
                WaitTimeSeconds=min(math.ceil(wait_seconds), WAIT_SECONDS_MAX),
                MessageSystemAttributeNames=_SYSTEM,
                MessageAttributeNames=[_SENT],
                ReceiveRequestAttemptId=attempt,
            ),
        )
        return answer.get("Messages", [])

    def _queue_and_handle(self, receipt: str) -> tuple[str, str]:
        if receipt.startswith(_DEAD):
            return self._dead(), receipt.removeprefix(_DEAD)
        return self._url, receipt

    def _dead(self) -> str:
        """Return the queue of dead letters, which this queue's redrive policy names."""
        if self._dead_url is None:
            policy = self._attributes(self._url, "RedrivePolicy").get("RedrivePolicy", "")
            if not policy:
                hint = "deploy the instance again: each queue has dead letters"
                raise InvalidError("a queue without dead letters", queue=self._url, hint=hint)
            arn = msgspec.json.decode(policy, type=dict[str, Any])["deadLetterTargetArn"]
            name = str(arn).rpartition(":")[2]
            answer = self._run(_LOOK, lambda: self._clients.sqs.get_queue_url(QueueName=name))
            self._dead_url = answer["QueueUrl"]
        return self._dead_url

    def _load(self, url: str) -> QueueLoad:
        names = [f"ApproximateNumberOfMessages{name}" for name in ("", "NotVisible", "Delayed")]
        found = self._attributes(url, *names)
        waiting, hidden, delayed = (int(found.get(name, 0)) for name in names)
        return QueueLoad(waiting=waiting, in_hand=hidden + delayed)

    def _attributes(self, url: str, *names: str) -> dict[str, str]:
        wanted: Any = list(names)
        answer = self._run(
            _LOOK,
            lambda: self._clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted),
        )
        found: Any = answer.get("Attributes", {})
        return dict(found)

    def _run(self, request: Request, call: Callable[[], T]) -> T:
        return self._requests.run(request, call)


class SqsJobQueues:
    """Queues by the kind of their jobs.

    urls: by kind, as the deployment made them.
    refuse: raises InvalidError for a kind that the instance was deployed without; others it passes
        over.
    """

    def __init__(
        self,
        clients: AmazonClients,
        urls: Mapping[str, str],
        *,
        rng: random.Random,
        refuse: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clients = clients
        self._urls = urls
        self._rng = rng
        self._refuse = refuse

    def open(self, name: str) -> SqsJobQueue:
        """Return the queue called `name`. Raises: InvalidError, if none was deployed."""
        if name not in self._urls:
            self._refuse(name)
            hint = did_you_mean(name, self._urls, what="queue")
            raise InvalidError("there is no such queue", queue=name, hint=hint)
        return SqsJobQueue(self._clients, self._urls[name], rng=self._rng)

    def names(self) -> list[str]:
        """Return the kinds of queues that were deployed."""
        return sorted(self._urls)


def _batches(
    entries: Sequence[SendMessageBatchRequestEntryTypeDef],
) -> Iterator[list[SendMessageBatchRequestEntryTypeDef]]:
    """Yield as many as one request takes."""
    some: list[SendMessageBatchRequestEntryTypeDef] = []
    size = 0
    for entry in entries:
        own = len(entry["MessageBody"].encode()) + ATTRIBUTE_BYTES
        if some and (len(some) == MESSAGES_AT_ONCE_MAX or size + own > REQUEST_BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(entry)
        size += own
    if some:
        yield some


def _received(message: MessageTypeDef, prefix: str = "") -> Received:
    system: Any = message.get("Attributes", {})
    own: Any = message.get("MessageAttributes", {})
    sent = own.get(_SENT, {}).get("StringValue") or ""
    sent = sent if sent.isascii() and sent.isdigit() else ""  # other programs may use the name, too
    message_group = system.get("MessageGroupId", _ALONE)
    return Received(
        _body_of(message["Body"]),
        prefix + message["ReceiptHandle"],
        int(system.get("ApproximateReceiveCount", "1")),
        "" if message_group.startswith(_ALONE) else message_group,
        Micros(int(sent) if sent else int(system.get("SentTimestamp", "0")) * 1_000),
        moved=bool(prefix) and not sent,
    )


def received_record(record: Mapping[str, Any]) -> Received:
    """Return a message as SQS hands it to a function, where names begin with small letters."""
    own = record.get("messageAttributes", {}).get(_SENT, {})
    return _received(
        {
            "Body": record["body"],
            "ReceiptHandle": record["receiptHandle"],
            "Attributes": record["attributes"],
            "MessageAttributes": {_SENT: {"DataType": "Number", "StringValue": own["stringValue"]}}
            if own
            else {},
        }
    )


def _text_of(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    if _TEXT.fullmatch(text) and not text.startswith(_BASE64):
        return text
    return _BASE64 + base64.b64encode(body).decode()


def _body_of(text: str) -> bytes:
    """Return what was sent; what other programs sent as it is, even if it looks like base64."""
    if text.startswith(_BASE64):
        try:
            return base64.b64decode(text.removeprefix(_BASE64), validate=True)
        except ValueError:
            pass
    return text.encode()


def _failure(failed: BatchResultErrorEntryTypeDef, doing: str) -> ClientError:
    """Return what SQS would have said of a message that it refused in a batch."""
    status = 400 if failed["SenderFault"] else 503
    answer: Any = {
        "Error": {"Code": failed["Code"], "Message": failed.get("Message", "")},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, doing)


def _raise(error: ClientError) -> None:
    raise error


def _whole_seconds(seconds: float) -> int:
    return min(math.ceil(seconds), HIDDEN_SECONDS_MAX)


def _unless_stale(call: Callable[[], object]) -> None:
    """Make a call; a receipt that has run out does nothing."""
    try:
        call()
    except ClientError as error:
        details = error.response.get("Error", {})
        code = str(details.get("Code", "")).rpartition(".")[2]
        about_receipt = code != "InvalidParameterValue" or "eceipt" in str(
            details.get("Message", "")
        )
        if code not in _STALE_CODES or not about_receipt:
            raise
