"""Messages of queues call functions, as Lambda's event source mappings do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from localcloud.runner.workers import Outcome, Workers
from localcloud.services.amazon import Amazon, Client
from localcloud.services.emulator import ACCOUNT, REGION
from localcloud.templates.running import FunctionSpec, QueueSourceSpec

RECEIVED_MAX = 10

Batch = list[Any]
"""Messages as SQS hands them out."""


class InjectedFaults:
    """The faults that tests inject, decided for each batch: by default there are none."""

    def __init__(self) -> None:
        self.dies_before_delete: Callable[[str, Batch], bool] = lambda *_: False
        """The process is killed when its work is done, before it has said so."""
        self.delivers_twice: Callable[[str, Batch], bool] = lambda *_: False
        """The same messages call the function again before they are deleted."""


class Failure(msgspec.Struct, frozen=True):
    """A call that did not succeed.

    messages: that will be received again.
    """

    function: str
    error: dict[str, Any]
    messages: tuple[str, ...] = ()


class QueueSource:
    """One queue that calls one function. Safe to share among threads.

    A batch holds what one request received, groups mixed as Lambda mixes them; while it is in hand,
    SQS gives out no other message of its groups. failed: is called for each failure.
    """

    def __init__(
        self,
        spec: QueueSourceSpec,
        function: FunctionSpec,
        amazon: Amazon,
        workers: Workers,
        *,
        faults: InjectedFaults,
        failed: Callable[[Failure], None],
    ) -> None:
        self.spec = spec
        self.function = function
        self._amazon = amazon
        self._workers = workers
        self._faults = faults
        self._failed = failed
        self._lock = threading.Lock()
        self._busy = 0
        self.url = amazon.client("sqs").get_queue_url(QueueName=spec.queue)["QueueUrl"]

    @property
    def busy(self) -> int:
        """Return the number of batches in hand."""
        return self._busy

    @property
    def may_take_more(self) -> bool:
        """Return whether another batch may run beside those that do."""
        limits = (self.spec.concurrency_max, self.function.concurrency_max)
        return all(limit is None or self._busy < limit for limit in limits)

    def receive(self) -> Batch:
        """Return a batch, or nothing. What is received must be handed to `run`."""
        answer = self._sqs().receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=min(self.spec.batch_messages_max, RECEIVED_MAX),
            WaitTimeSeconds=0,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        batch: Batch = answer.get("Messages", [])
        if batch:
            with self._lock:
                self._busy += 1
        return batch

    def run(self, batch: Batch) -> None:
        """Call the function with a batch, and delete what it worked on."""
        try:
            outcome = self._call(batch)
            if outcome.error is None and self._faults.delivers_twice(self.function.name, batch):
                outcome = self._call(batch)
            failed = failed_messages(batch, outcome, reports=self.spec.reports_failures)
            if failed:
                error = outcome.error or {"errorType": "batchItemFailures"}
                self._failed(Failure(self.function.name, error, tuple(sorted(failed))))
            self._delete([m for m in batch if m["MessageId"] not in failed])
        finally:
            with self._lock:
                self._busy -= 1

    def _call(self, batch: Batch) -> Outcome:
        event = {"Records": [self._record(message) for message in batch]}
        dies = self._faults.dies_before_delete(self.function.name, batch)
        return self._workers.call(self.function, event, dies=dies)

    def _record(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "messageAttributes": {
                name: _attribute(value)
                for name, value in message.get("MessageAttributes", {}).items()
            },
            "md5OfBody": message.get("MD5OfBody", ""),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.spec.queue}",
            "awsRegion": REGION,
        }

    def _delete(self, batch: Batch) -> None:
        if not batch:
            return
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(batch)
        ]
        self._sqs().delete_message_batch(QueueUrl=self.url, Entries=entries)

    def _sqs(self) -> Client:
        """Return a client with the permissions of the function, which Lambda receives with."""
        return self._amazon.client_of("sqs", self.function.role)


def failed_messages(batch: Batch, outcome: Outcome, *, reports: bool) -> set[str]:
    """Return ids of the messages that the function did not work on.

    An answer that names a message which is not in the batch, or is not of the form that AWS asks
    for, speaks of all of them. reports: False: what the function returns is not looked at.
    """
    every = {str(message["MessageId"]) for message in batch}
    if outcome.error is not None:
        return every
    if not reports or outcome.value is None:
        return set()
    if not isinstance(outcome.value, dict):
        return every
    failures = outcome.value.get("batchItemFailures") or []
    try:
        named = {failure["itemIdentifier"] for failure in failures}
    except (TypeError, KeyError):
        return every
    if named <= every:
        return named
    return every


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's own attribute as Lambda writes it."""
    return {
        "stringValue": value.get("StringValue"),
        "binaryValue": value.get("BinaryValue"),
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value.get("DataType", "String"),
    }
