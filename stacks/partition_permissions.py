"""Permissions for items of some partitions of a table of DynamoDB, and of no others."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from lakebed.config.dynamo_tables import PROCESS_PREFIX, TRACKER_TABLE, USAGE_PREFIX
from lakebed.config.instance import Deployment
from stacks.constructs.names import NamedTable

BATCHED_TABLES, BATCHES = "tables", "batches#*"
PENDING, TAKEN = "pending#*", "taken#*"
"""Partitions of the table of batches: see `lakebed/backends/aws/batching`."""


def in_partitions(table_arn: str, partitions: Sequence[str], *actions: str) -> iam.PolicyStatement:
    """Do things with items whose partition keys match patterns. actions: of DynamoDB."""
    return iam.PolicyStatement(
        actions=[f"dynamodb:{action}" for action in actions],
        resources=[table_arn],
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partitions)}},
    )


def report_processes(deployment: Deployment) -> iam.PolicyStatement:
    """Write reports of processes into the tracker."""
    return in_partitions(_tracker(deployment), [f"{PROCESS_PREFIX}*"], "PutItem")


def keep_usage(deployment: Deployment) -> iam.PolicyStatement:
    """Add to the ledger of usage, which the tracker holds."""
    return in_partitions(_tracker(deployment), [f"{USAGE_PREFIX}*"], "UpdateItem")


def read_usage(deployment: Deployment) -> iam.PolicyStatement:
    """Read the ledger of usage, for budgets."""
    return in_partitions(_tracker(deployment), [f"{USAGE_PREFIX}*"], "Query")


def _tracker(deployment: Deployment) -> str:
    table = deployment.name(TRACKER_TABLE.part)
    return f"arn:{Aws.PARTITION}:dynamodb:{Aws.REGION}:{Aws.ACCOUNT_ID}:table/{table}"


def make_tables(registry: NamedTable) -> list[iam.PolicyStatement]:
    """Find tables by name, and give names to new ones. Who does may list and mark tables, too."""
    return [
        in_partitions(registry.table_arn, ["names", "ids", "formats"], "GetItem"),
        in_partitions(registry.table_arn, ["names", "ids"], "PutItem"),
    ]


def find_reports(tracker: NamedTable) -> iam.PolicyStatement:
    """Find the jobs of a table by what became of them, and when."""
    index = TRACKER_TABLE.index
    assert index is not None, "the tracker's table has an index"
    return iam.PolicyStatement(
        actions=["dynamodb:Query"], resources=[f"{tracker.table_arn}/index/{index.name}"]
    )


def list_batched_tables(batches: NamedTable) -> iam.PolicyStatement:
    """List the tables with something to do."""
    return in_partitions(batches.table_arn, [BATCHED_TABLES], "Query")


def make_batches(batches: NamedTable) -> list[iam.PolicyStatement]:
    """Read what waits, put batches and their heads, and remove what was taken."""
    table = batches.table_arn
    return [
        in_partitions(
            table, [BATCHES], "GetItem", "Query", "PutItem", "UpdateItem", "BatchWriteItem"
        ),
        in_partitions(table, [PENDING], "Query", "DeleteItem", "BatchWriteItem"),
        in_partitions(table, [TAKEN], "PutItem", "UpdateItem"),
        in_partitions(table, [BATCHED_TABLES], "GetItem", "DeleteItem"),
    ]


def submit_files(batches: NamedTable) -> list[iam.PolicyStatement]:
    """Let files wait that were not taken in as they are. One transaction does both, whose keys IAM
    may see together."""
    table = batches.table_arn
    return [
        in_partitions(table, [PENDING, TAKEN], "ConditionCheckItem", "PutItem"),
        in_partitions(table, [BATCHED_TABLES], "BatchWriteItem"),
    ]


def read_batches(batches: NamedTable) -> iam.PolicyStatement:
    """Read a batch."""
    return in_partitions(batches.table_arn, [BATCHES], "GetItem")


def run_batches(batches: NamedTable) -> iam.PolicyStatement:
    """Read a batch, and write down which of its files are left out."""
    return in_partitions(batches.table_arn, [BATCHES], "GetItem", "UpdateItem")
