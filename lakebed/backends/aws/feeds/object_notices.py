"""Messages of S3 in a queue, which say that objects were put: hints that it is worth listing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_QUEUE
from lakebed.errors import LakebedError

ASK_SECONDS: Final = 2.0
"""Seconds between two requests to the queue: 1.3 million requests a month."""
AT_ONCE_MAX, ASKED_MAX = 10, 20
"""Messages of one answer, and answers in a row: the rest comes with the next question."""
HIDDEN_SECONDS: Final = 30

_RECEIVE = Request(what="receiving notices of objects", needs="sqs:ReceiveMessage")
_DELETE = Request(what="deleting notices of objects", needs="sqs:DeleteMessage")


class ObjectNotices:
    """Counts what came. What a message says is not read, and it is deleted at once: a listing says
    what there is. A queue that cannot be asked costs nothing but time."""

    def __init__(self, clients: AmazonClients, queue: str) -> None:
        self._clients, self._queue = clients, queue
        self._requests = clients.requests(AMAZON_QUEUE, queue.rpartition("/")[2])
        self._asked: float | None = None
        self._count = 0

    def __call__(self) -> int:
        """Return how many messages came so far."""
        now = self._clients.clock.monotonic()
        if self._asked is None or now - self._asked >= ASK_SECONDS:
            self._asked = now
            with suppress(LakebedError):  # a hint: the next listing comes all the same
                self._ask()
        return self._count

    def _ask(self) -> None:
        for _ in range(ASKED_MAX):
            receipts = self._receive()
            self._count += len(receipts)
            if receipts:
                self._delete(receipts)
            if len(receipts) < AT_ONCE_MAX:
                return

    def _receive(self) -> list[str]:
        answer = self._requests.run(
            _RECEIVE,
            lambda: self._clients.sqs.receive_message(
                QueueUrl=self._queue,
                MaxNumberOfMessages=AT_ONCE_MAX,
                VisibilityTimeout=HIDDEN_SECONDS,
            ),
        )
        return [message["ReceiptHandle"] for message in answer.get("Messages", [])]

    def _delete(self, receipts: list[str]) -> None:
        entries: Any = [{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(receipts)]
        self._requests.run(
            _DELETE,
            lambda: self._clients.sqs.delete_message_batch(QueueUrl=self._queue, Entries=entries),
        )
