"""Stacks of CloudFormation, as far as their functions must know of them."""

from __future__ import annotations

from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_STACK

_LOOK = Request(what="looking at a stack", needs="cloudformation:DescribeStacks")
_ROLLBACK = "ROLLBACK"


def is_taken_back(clients: AmazonClients, stack: str) -> bool:
    """Return whether a deployment of a stack is being taken back: what it asks for is of before.

    Raises:
        DeniedError: not permitted. UnavailableError: CloudFormation is busy, or cannot be reached.
    """
    requests = clients.requests(AMAZON_STACK, stack)
    answer: Any = requests.run(_LOOK, lambda: clients.stacks.describe_stacks(StackName=stack))
    return any(_ROLLBACK in found["StackStatus"] for found in answer.get("Stacks", []))
