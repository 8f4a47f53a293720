"""Reads what an account of AWS may use at one time: Service Quotas, settings of Lambda,
networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_ACCOUNT
from lakebed.errors import ObjectMissingError

PATIENCE = Patience(tries_max=3, seconds_max=10.0)
"""A person waits for each of these."""
NETWORKS_AT_ONCE = 1_000
"""The most that EC2 lists in one answer."""

_APPLIED = Request(what="reading a quota", needs="servicequotas:GetServiceQuota")
_DEFAULT = Request(
    what="reading the default of a quota", needs="servicequotas:GetAWSDefaultServiceQuota"
)
_FUNCTIONS = Request(what="reading limits of functions", needs="lambda:GetAccountSettings")
_NETWORKS = Request(what="counting networks", needs="ec2:DescribeVpcs")


class AmazonAccount:
    """The account and the region of some clients."""

    def __init__(self, clients: AmazonClients) -> None:
        self._clients = clients
        self._requests = clients.requests(AMAZON_ACCOUNT, clients.region, patience=PATIENCE)

    def quota(self, service: str, code: str) -> float | None:
        """Return the value of a quota. A quota that was never changed may have a default only."""
        quotas = self._clients.service_quotas
        for request, read in (
            (_APPLIED, quotas.get_service_quota),
            (_DEFAULT, quotas.get_aws_default_service_quota),
        ):
            answer = self._found(request, read, ServiceCode=service, QuotaCode=code)
            if answer is not None:
                return float(answer["Quota"]["Value"])
        return None

    def function_runs(self) -> int:
        """Return how many runs of functions are not reserved."""
        answer = self._requests.run(_FUNCTIONS, self._clients.functions.get_account_settings)
        return int(answer["AccountLimit"]["UnreservedConcurrentExecutions"])

    def networks(self) -> int:
        """Return how many networks the account has in the region, as far as one answer lists."""
        answer = self._requests.run(
            _NETWORKS, lambda: self._clients.ec2.describe_vpcs(MaxResults=NETWORKS_AT_ONCE)
        )
        return len(answer.get("Vpcs", []))

    def _found(
        self, request: Request, read: Callable[..., Any], **arguments: str
    ) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._requests.run(request, lambda: read(**arguments))
        except ObjectMissingError:
            return None
        return answer
