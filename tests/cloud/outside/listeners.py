"""Queues of users that hear what an instance says to the outside."""

import json
from typing import Any

from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import RunningInstance


def listening(instance: RunningInstance, name: str, *, service: str, source: str) -> str:
    """Make a queue to which a service may send for one source. Returns its URL; it is empty."""
    sqs = instance.cloud.client("sqs")
    url = str(sqs.create_queue(QueueName=name)["QueueUrl"])
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
        "Condition": {"ArnEquals": {"aws:SourceArn": source}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sqs.purge_queue(QueueUrl=url)
    return url


def heard(instance: RunningInstance, url: str) -> list[dict[str, Any]]:
    """Take all that a queue was sent, as JSON."""
    sqs = instance.cloud.client("sqs")
    found = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found
