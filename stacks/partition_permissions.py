"""What may be done with items of some partitions of a table of DynamoDB, and with no others."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from lakebed.config.dynamo_tables import PROCESS_PREFIX, TRACKER_TABLE
from lakebed.config.instance import Deployment


def in_partitions(table_arn: str, partitions: Sequence[str], *actions: str) -> iam.PolicyStatement:
    """Do things with items whose partition keys match patterns. actions: of DynamoDB."""
    return iam.PolicyStatement(
        actions=[f"dynamodb:{action}" for action in actions],
        resources=[table_arn],
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partitions)}},
    )


def report_processes(deployment: Deployment) -> iam.PolicyStatement:
    """Write reports of processes into the tracker."""
    table = deployment.name(TRACKER_TABLE.part)
    tracker = f"arn:{Aws.PARTITION}:dynamodb:{Aws.REGION}:{Aws.ACCOUNT_ID}:table/{table}"
    return in_partitions(tracker, [f"{PROCESS_PREFIX}*"], "PutItem")
