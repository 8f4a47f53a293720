"""Amazon's Cost Explorer: what was billed for the resources of an instance, by their tag.

Each question costs a cent. The tag has to be activated for cost allocation in the account that
pays; what was used before that has no tag in the bill.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final

from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_ACCOUNT

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients

TAG: Final = "lakebed:instance"
PAGES_MAX: Final = 100
SERVICES: Final = {
    "Amazon Simple Storage Service": "S3",
    "Amazon DynamoDB": "DynamoDB",
    "Amazon Simple Queue Service": "SQS",
    "AWS Lambda": "Lambda",
    "Amazon Elastic Container Service": "Fargate",
    "Amazon Virtual Private Cloud": "VPC",
    "Amazon Elastic MapReduce": "EMR Serverless",
    "AmazonCloudWatch": "CloudWatch",
    "Amazon EC2 Container Registry (ECR)": "ECR",
}
"""Services as bills call them, and as we do. Others keep their names."""
_ASK: Final = Request(what="asking what was billed", needs="ce:GetCostAndUsage")


class CostExplorerBills:
    """The amounts that AWS billed for one instance."""

    def __init__(self, clients: AmazonClients, instance: str) -> None:
        self._clients = clients
        self._instance = instance
        self._requests = clients.requests(AMAZON_ACCOUNT, "cost explorer")

    def by_service(self, since: datetime.date, until: datetime.date) -> dict[str, float]:
        """Return dollars by service."""
        asked: dict[str, Any] = {
            "TimePeriod": {"Start": since.isoformat(), "End": until.isoformat()},
            "Granularity": "MONTHLY",
            "Metrics": ["UnblendedCost"],
            "Filter": {"Tags": {"Key": TAG, "Values": [self._instance]}},
            "GroupBy": [{"Type": "DIMENSION", "Key": "SERVICE"}],
        }
        found: dict[str, float] = {}
        for _ in range(PAGES_MAX):
            answer = self._requests.run(
                _ASK, lambda: self._clients.cost_explorer.get_cost_and_usage(**asked)
            )
            for month in answer.get("ResultsByTime", ()):
                for part in month.get("Groups", ()):
                    name = SERVICES.get(part["Keys"][0], part["Keys"][0])
                    dollars = float(part["Metrics"]["UnblendedCost"]["Amount"])
                    found[name] = found.get(name, 0.0) + dollars
            token = answer.get("NextPageToken")
            if not token:
                break
            asked["NextPageToken"] = token
        return found
