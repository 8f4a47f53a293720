"""Permissions of tasks of feeds, and of who starts them, beside what others may: as
`permissions.py`."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from lakebed.config.feed_access import secret_patterns
from lakebed.config.instance import Deployment
from lakebed.config.settings import named_in
from stacks import permissions
from stacks.constructs.names import NamedTable

FEED_DEFINITIONS = ("feed-definitions", "feed-connections", "feed-policies")
FEED_LEASES = ("feed-workers", "feed-owners")
"""Partitions of the registry's table."""
SEGMENTS: permissions.Folder = "feeds/*/segments/*"
"""The folder of what was pushed into feeds, and waits."""
STATES: tuple[permissions.Folder, ...] = ("logs/*", "tables/*/snapshots/*")
"""Folders from which a table's state is read, beside its log: large entries, and snapshots."""


def read_definitions_of_feeds(registry: NamedTable) -> list[iam.PolicyStatement]:
    """Read what a lake defines of feeds, and nothing else of its registry."""
    return [
        _on_partitions(registry, "Query", *FEED_DEFINITIONS),
        _on_partitions(registry, "GetItem", "feed-number"),
    ]


def hear_workers(registry: NamedTable) -> iam.PolicyStatement:
    """Read the beats of workers, and no owners."""
    return _on_partitions(registry, "Query", FEED_LEASES[0])


def work_on_feeds(registry: NamedTable) -> list[iam.PolicyStatement]:
    """Read definitions and say that they failed, beat, claim, find tables, make those that records
    are landed in (of a new lake with the forms that it allows), and mark what was committed."""
    failing = FEED_DEFINITIONS[:2]
    return [
        _on_partitions(registry, "Query", "formats", "names", *FEED_DEFINITIONS, *FEED_LEASES),
        _on_partitions(registry, "GetItem", "names", "feed-number", "feed-owners", *failing),
        _on_partitions(registry, "PutItem", "names", "ids", "feed-owners", *failing),
        _on_partitions(registry, "UpdateItem", "marks", "formats", *FEED_LEASES),
        _on_partitions(registry, "DeleteItem", "feed-workers"),
    ]


def land_segments(deployment: Deployment) -> iam.PolicyStatement:
    """Delete what was pushed into feeds, when it is landed. Who does reads and lists all objects of
    the lake."""
    return permissions.delete_objects(deployment, SEGMENTS)


def put_segments(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Put what senders push into feeds, read it back, list what waits, and read what states of
    tables are made from."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{permissions.bucket_name(deployment)}"
    keys = [permissions.keys_of(folder) for folder in (SEGMENTS, *STATES)]
    return [
        permissions.write_objects(deployment, SEGMENTS),
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/{k}" for k in keys]),
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket],
            conditions={"StringLike": {"s3:prefix": keys}},
        ),
    ]


def look_into_landing_tables(registry: NamedTable, log: NamedTable) -> list[iam.PolicyStatement]:
    """Find a feed's definition and its landing table, and read what the table's log says."""
    return [
        _on_partitions(registry, "Query", *FEED_DEFINITIONS),
        _on_partitions(registry, "GetItem", "names", "feed-number"),
        permissions.read_log(log),
    ]


def take_from_queues(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Take messages of the queues that the setting `feed_queues` names."""
    queues = named_in(deployment.settings.feed_queues)
    actions = ("ReceiveMessage", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes")
    if not queues:
        return []
    return [iam.PolicyStatement(actions=[f"sqs:{a}" for a in actions], resources=queues)]


def read_secrets(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read the secrets that the setting `feed_secrets` names."""
    ours = f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    names = named_in(deployment.settings.feed_secrets)
    parts = [part for name in names for part in secret_patterns(deployment.instance, name)]
    arns = [f"{ours}:{part}" for part in parts]
    if not arns:
        return []
    return [iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=arns)]


def read_schemas(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read schemas of Glue by the ids of their versions, if the setting `feed_schemas` says so.
    Such an id belongs to no resource that a policy could name: of a registry that is named alone,
    Glue refuses it."""
    if not deployment.settings.feed_schemas:
        return []
    return [
        iam.PolicyStatement(
            actions=["glue:GetSchemaVersion"],
            resources=["*"],
            conditions={"StringEquals": {"aws:RequestedRegion": Aws.REGION}},
        )
    ]


def _on_partitions(registry: NamedTable, action: str, *partitions: str) -> iam.PolicyStatement:
    """Allow an action on items of some partitions only."""
    return iam.PolicyStatement(
        actions=[f"dynamodb:{action}"],
        resources=[registry.table_arn],
        conditions={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": sorted(partitions)}},
    )
