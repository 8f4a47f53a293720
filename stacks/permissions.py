"""What functions and tasks may do: exact actions on exact resources, a function for each sentence.

The bucket is called by its name, which is known before it is made: so what cdk-nag says of parts of
it can be answered here, once, and nothing else.
"""

from __future__ import annotations

from typing import Literal, get_args

from aws_cdk import Acknowledgment, Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs

from lakebed.config.instance import OBJECTS_PREFIX, Deployment

Folder = Literal[
    "*",
    "logs/*",
    "tables/*",
    "tables/*/commits/*",
    "tables/*/files/*",
    "tables/*/snapshots/*",
    "unfinished/*",
]
"""Objects, by their paths in the lake: all of them, or those of one kind."""


ResultsFolder = Literal["objects/results/*", "unfinished/*"]
"""Keys in the bucket for results of queries: files and manifests, and large ones on their way."""


def keys_of(folder: Folder) -> str:
    """Return the keys of objects in the bucket: what has a path in the lake lies in `objects`."""
    whole = folder in {"*", "unfinished/*"}
    return f"{OBJECTS_PREFIX}/{folder}" if whole else f"{OBJECTS_PREFIX}/objects/{folder}"


def bucket_name(deployment: Deployment) -> str:
    """Return the name of the bucket that holds the lake's objects."""
    return deployment.name("data", Aws.ACCOUNT_ID, Aws.REGION)


def results_bucket_name(deployment: Deployment) -> str:
    """Return the name of the bucket for results of queries."""
    return deployment.name("results", Aws.ACCOUNT_ID, Aws.REGION)


def read_objects(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read and list the lake's objects."""
    return [
        _on_objects(deployment, "s3:GetObject", "*"),
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[_bucket(deployment)],
            conditions={"StringLike": {"s3:prefix": f"{OBJECTS_PREFIX}/*"}},
        ),
    ]


def write_objects(deployment: Deployment, *folders: Folder) -> iam.PolicyStatement:
    """Put objects of some kinds."""
    return _on_objects(deployment, "s3:PutObject", *folders)


def delete_objects(deployment: Deployment, *folders: Folder) -> iam.PolicyStatement:
    """Delete objects of some kinds; they can be brought back for a while."""
    return _on_objects(deployment, "s3:DeleteObject", *folders)


def write_results(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Find results of queries, and write some; large ones are moved to their place."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{results_bucket_name(deployment)}"
    written, moved = (f"{bucket}/{folder}" for folder in get_args(ResultsFolder))
    return [
        _allow([bucket], "s3:ListBucket"),
        _allow([written, moved], "s3:GetObject", "s3:PutObject"),
        _allow([moved], "s3:DeleteObject"),
    ]


def read_log(log: dynamodb.ITable) -> iam.PolicyStatement:
    """Read the log of a table."""
    return _allow([log.table_arn], "dynamodb:Query", "dynamodb:GetItem")


def find_tables(registry: dynamodb.ITable) -> iam.PolicyStatement:
    """Find a table by its name, and list the names of others."""
    return _allow([registry.table_arn], "dynamodb:GetItem", "dynamodb:Query")


def commit(deployment: Deployment, log: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Read the log of a table and add entries; bodies of large ones are objects."""
    return [
        _allow([log.table_arn], "dynamodb:Query", "dynamodb:GetItem", "dynamodb:PutItem"),
        write_objects(deployment, "logs/*"),
    ]


def truncate(deployment: Deployment, log: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Read the log of a table and empty old entries."""
    actions = ("Query", "GetItem", "UpdateItem", "BatchWriteItem")
    return [
        _allow([log.table_arn], *(f"dynamodb:{action}" for action in actions)),
        delete_objects(deployment, "logs/*"),
    ]


def list_tables(registry: dynamodb.ITable) -> iam.PolicyStatement:
    """List names and marks of tables."""
    return _allow([registry.table_arn], "dynamodb:Query")


def mark_tables(registry: dynamodb.ITable) -> iam.PolicyStatement:
    """List the names of tables, and mark what was done on them."""
    return _allow([registry.table_arn], "dynamodb:Query", "dynamodb:UpdateItem")


def report_jobs(tracker: dynamodb.ITable) -> iam.PolicyStatement:
    """Read the newest report of a job, and write reports."""
    actions = ("GetItem", "PutItem", "BatchWriteItem")
    return _allow([tracker.table_arn], *(f"dynamodb:{action}" for action in actions))


def send(queue: sqs.IQueue) -> iam.PolicyStatement:
    """Send messages."""
    return _allow([queue.queue_arn], "sqs:SendMessage")


def take_dead_letters(queue: sqs.IQueue, dead_letters: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Find a queue's dead letters, and take them."""
    return [
        _allow([queue.queue_arn], "sqs:GetQueueAttributes"),
        _allow(
            [dead_letters.queue_arn], "sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage"
        ),
    ]


def give_up(dead_letters: sqs.IQueue) -> iam.PolicyStatement:
    """Put messages of a queue among its dead letters."""
    return _allow([dead_letters.queue_arn], "sqs:GetQueueUrl", "sqs:SendMessage")


def show_again(queue: sqs.IQueue) -> iam.PolicyStatement:
    """Say when a message in hand is shown again."""
    return _allow([queue.queue_arn], "sqs:ChangeMessageVisibility")


def accepted(deployment: Deployment) -> list[Acknowledgment]:
    """Return the parts of buckets that a role may name without naming each object."""
    parts = [
        *(("data", keys_of(folder)) for folder in get_args(Folder)),
        *(("results", folder) for folder in get_args(ResultsFolder)),
    ]
    place = "arn:<AWS::Partition>:s3:::{}-<AWS::AccountId>-<AWS::Region>"
    return [
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-IAM5"
            f"[Resource::{place.format(deployment.name(bucket))}/{keys}]",
            reason="objects of a lake have names that are made while it lives; their kind is exact",
        )
        for bucket, keys in parts
    ]


def _bucket(deployment: Deployment) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(deployment)}"


def _on_objects(deployment: Deployment, action: str, *folders: Folder) -> iam.PolicyStatement:
    return _allow([f"{_bucket(deployment)}/{keys_of(folder)}" for folder in folders], action)


def _allow(resources: list[str], *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=resources)
