"""One process of the committer's function, handed batches of a queue as Lambda does it.

`committer_function QUEUE_URL MESSAGES_AT_ONCE VCPUS`: variables name the instance. For each line on
standard input it works until the queue is empty, and prints how much processor time that took.

A function with less than a processor runs in slices: a batch ends no sooner than its processor time
divided by `VCPUS`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import boto3

from lambdas.committer.commit import handler

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

INVOKE_SECONDS = 0.01
"""What Lambda takes to hand a batch to a function that is warm: from its documentation's examples,
some milliseconds. Not measured here."""
EMPTY_SECONDS = 0.005
RUN_SECONDS = 120


class Run:
    """What Lambda tells of a run."""

    aws_request_id = function_name = "bench"

    def __init__(self) -> None:
        self._end = time.monotonic() + RUN_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the run may go on."""
        return int((self._end - time.monotonic()) * 1_000)


def main(url: str, messages_at_once: int, vcpus: float) -> None:
    sqs = boto3.client("sqs")
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.process_time()
        while not _is_empty(sqs, url):
            _drain(sqs, url, messages_at_once, vcpus)
        print(time.process_time() - begun, flush=True)


def _drain(sqs: SQSClient, url: str, messages_at_once: int, vcpus: float) -> None:
    """Hand over batches until none comes."""
    while batch := _received(sqs, url, messages_at_once):
        time.sleep(INVOKE_SECONDS)
        begun, worked = time.monotonic(), time.process_time()
        answer = handler({"Records": [_record(message) for message in batch]}, Run())
        spent = time.process_time() - worked
        time.sleep(max(0.0, spent / vcpus - (time.monotonic() - begun)))
        assert answer == {"batchItemFailures": []}, answer
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(batch)
        ]
        sqs.delete_message_batch(QueueUrl=url, Entries=entries)
    time.sleep(EMPTY_SECONDS)


def _received(sqs: SQSClient, url: str, messages_at_once: int) -> Sequence[Mapping[str, Any]]:
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=messages_at_once)
    return answer.get("Messages", [])


def _is_empty(sqs: SQSClient, url: str) -> bool:
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return not any(int(count) for count in answer["Attributes"].values())


def _record(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as Lambda writes it, as far as it is looked at."""
    own = message.get("MessageAttributes", {})
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {"stringValue": value["StringValue"]} for name, value in own.items()
        },
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
