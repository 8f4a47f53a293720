"""Queues in SQS as the stacks make them, made without a deployment."""

import json
from typing import Any

from lakebed.backends.aws.clients import AmazonClients


def make_queue(clients: AmazonClients, name: str, *, receives_max: int) -> str:
    """Make a FIFO queue and its dead letters. Returns its URL."""
    sqs: Any = clients.sqs
    fifo = {"FifoQueue": "true"}
    dead = sqs.create_queue(QueueName=f"{name}-dead.fifo", Attributes=fifo)["QueueUrl"]
    told = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    arn = told["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": str(receives_max)})
    made = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=fifo | {"RedrivePolicy": policy})
    return str(made["QueueUrl"])
