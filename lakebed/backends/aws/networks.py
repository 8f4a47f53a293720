"""Networks of EC2, as far as they lead to services."""

from __future__ import annotations

from functools import partial
from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_NETWORK

_LOOK = Request(what="looking at endpoints", needs="ec2:DescribeVpcEndpoints")


def endpoint_services(clients: AmazonClients, vpc: str) -> set[str]:
    """Return the services that a network has endpoints of, as the last part of their names: s3.

    Raises:
        DeniedError: not permitted. UnavailableError: EC2 is busy, or cannot be reached.
    """
    requests, found = clients.requests(AMAZON_NETWORK, vpc), set()
    wanted, token = [{"Name": "vpc-id", "Values": [vpc]}], ""
    while True:
        page = partial(
            clients.ec2.describe_vpc_endpoints,
            Filters=wanted,
            **({"NextToken": token} if token else {}),
        )
        answer: Any = requests.run(_LOOK, page)
        for endpoint in answer.get("VpcEndpoints", []):
            ours = endpoint.get("VpcId") == vpc  # some emulators pass over the filter
            if ours and endpoint.get("State", "").lower() == "available":
                found.add(endpoint["ServiceName"].rpartition(".")[2])
        token = answer.get("NextToken", "")
        if not token:
            return found
