"""Permissions of functions and tasks: exact actions on exact resources, a function for each
sentence.

The bucket is called by its name, which is known before it is made: so what cdk-nag says of parts of
it can be answered here, once, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from aws_cdk import Acknowledgment, Aws, Validations
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs

from lakebed.config.environments import sources_in
from lakebed.config.instance import IMPORTS_PREFIX, OBJECTS_PREFIX, Deployment
from stacks.constructs.names import NamedCluster, NamedTable
from stacks.partition_permissions import in_partitions

IMPORTS = f"{IMPORTS_PREFIX}/*"
"""Keys of requests for bulk imports: beside the lake's."""
UNREADABLE_IMPORTS = f"{IMPORTS_PREFIX}/objects/unreadable/*"
"""Keys of what is left of damaged ones."""

OBJECTS = "objects of a lake have names that are made while it lives; their kind is exact"
SOURCES = "users put files there under names of their own; the setting `sources` names the place"
TASKS = "tasks get their ids when they are started; their cluster is exact"
RUNS = "runs of Spark get their ids when they are started; their application is exact"
WRITES = ("s3:PutObject", "s3:AbortMultipartUpload")
"""Permissions to put an object in parts, or to give it up half-way."""
UNNAMED = {
    "ec2:DescribeVpcEndpoints",
    "ecr:GetAuthorizationToken",
    "ecs:DiscoverPollEndpoint",
    "ecs:ListTasks",
}
"""IAM knows no resource for these."""

_REPORTS = ["job#*", "task#*"]
"""Partitions of the tracker that hold reports of jobs and tasks."""

Folder = Literal[
    "*",
    "feeds/*/segments/*",
    "logs/*",
    "tables/*",
    "tables/*/commits/*",
    "tables/*/files/*",
    "tables/*/runs/*",
    "tables/*/snapshots/*",
]
"""Objects, by their paths in the lake: all of them, or those of one kind."""


RESULTS = "objects/results/*"
"""Keys in the bucket for results of queries: files and manifests."""


def keys_of(folder: Folder) -> str:
    """Return the keys of objects in the bucket: what has a path in the lake lies in `objects`."""
    return f"{OBJECTS_PREFIX}/{folder}" if folder == "*" else f"{OBJECTS_PREFIX}/objects/{folder}"


def bucket_name(deployment: Deployment) -> str:
    """Return the name of the bucket that holds the lake's objects."""
    return deployment.name("data", Aws.ACCOUNT_ID, Aws.REGION)


def results_bucket_name(deployment: Deployment) -> str:
    """Return the name of the bucket for results of queries."""
    return deployment.name("results", Aws.ACCOUNT_ID, Aws.REGION)


def read_objects(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read and list the lake's objects."""
    return [_on_objects(deployment, "s3:GetObject", "*"), list_objects(deployment)]


def list_objects(deployment: Deployment) -> iam.PolicyStatement:
    """List the lake's objects."""
    return iam.PolicyStatement(
        actions=["s3:ListBucket"],
        resources=[_bucket(deployment)],
        conditions={"StringLike": {"s3:prefix": f"{OBJECTS_PREFIX}/*"}},
    )


def write_objects(deployment: Deployment, *folders: Folder) -> iam.PolicyStatement:
    """Put objects of some kinds, which are small."""
    return _on_objects(deployment, "s3:PutObject", *folders)


def write_large_objects(deployment: Deployment, *folders: Folder) -> iam.PolicyStatement:
    """Put objects of some kinds, at once or in parts, and give up an upload of parts."""
    keys = [f"{_bucket(deployment)}/{keys_of(folder)}" for folder in folders]
    return _allow(keys, *WRITES)


def delete_objects(deployment: Deployment, *folders: Folder) -> iam.PolicyStatement:
    """Delete objects of some kinds; they can be brought back for a while."""
    return _on_objects(deployment, "s3:DeleteObject", *folders)


def write_files(deployment: Deployment) -> iam.PolicyStatement:
    """Put files of rows."""
    return write_large_objects(deployment, "tables/*/files/*")


def write_results(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Find results of queries, and write some."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{results_bucket_name(deployment)}"
    return [
        _allow([bucket], "s3:ListBucket"),
        _allow([f"{bucket}/{RESULTS}"], "s3:GetObject", *WRITES),
    ]


def read_log(log: NamedTable) -> iam.PolicyStatement:
    """Read the log of a table."""
    return _allow([log.table_arn], "dynamodb:Query", "dynamodb:GetItem")


def find_tables(registry: NamedTable) -> iam.PolicyStatement:
    """Find a table by its name, and list the names of others."""
    return _allow([registry.table_arn], "dynamodb:GetItem", "dynamodb:Query")


def commit(log: NamedTable) -> iam.PolicyStatement:
    """Read the log of a table and add entries, as long as they are small; the one before notes that
    it was followed. A process of the release before, which may still run, only checks that one."""
    actions = ("Query", "GetItem", "PutItem", "UpdateItem", "ConditionCheckItem")
    return _allow([log.table_arn], *(f"dynamodb:{action}" for action in actions))


def write_bodies(deployment: Deployment) -> iam.PolicyStatement:
    """Put the bodies of large entries, which are objects."""
    return write_objects(deployment, "logs/*")


def truncate(deployment: Deployment, log: NamedTable) -> list[iam.PolicyStatement]:
    """Read the log of a table and empty old entries."""
    actions = ("Query", "GetItem", "UpdateItem", "BatchWriteItem")
    return [
        _allow([log.table_arn], *(f"dynamodb:{action}" for action in actions)),
        delete_objects(deployment, "logs/*"),
    ]


def list_tables(registry: NamedTable) -> iam.PolicyStatement:
    """List names and marks of tables."""
    return _allow([registry.table_arn], "dynamodb:Query")


def find_table(registry: NamedTable) -> iam.PolicyStatement:
    """Find a table by its name."""
    return _allow([registry.table_arn], "dynamodb:GetItem")


def mark_tables(registry: NamedTable) -> iam.PolicyStatement:
    """List the names of tables, mark what was done on them, and see what may be written."""
    return _allow([registry.table_arn], "dynamodb:Query", "dynamodb:UpdateItem")


def write_job_reports(tracker: NamedTable) -> iam.PolicyStatement:
    """Write reports, one at a time."""
    return in_partitions(tracker.table_arn, _REPORTS, "PutItem")


def write_many_job_reports(tracker: NamedTable) -> iam.PolicyStatement:
    """Write reports, many at a time."""
    return in_partitions(tracker.table_arn, _REPORTS, "PutItem", "BatchWriteItem")


def report_jobs(tracker: NamedTable) -> iam.PolicyStatement:
    """Read the newest report of a job, and write reports."""
    return in_partitions(tracker.table_arn, _REPORTS, "GetItem", "PutItem", "BatchWriteItem")


def report_jobs_one_by_one(tracker: NamedTable) -> iam.PolicyStatement:
    """Read the newest report of a job, and write reports, one at a time."""
    return in_partitions(tracker.table_arn, _REPORTS, "GetItem", "PutItem")


def end_jobs(tracker: NamedTable) -> iam.PolicyStatement:
    """Read all reports of a job, and write reports, one at a time."""
    return in_partitions(tracker.table_arn, _REPORTS, "Query", "PutItem")


def read_reports(tracker: NamedTable) -> iam.PolicyStatement:
    """Read all reports of a job."""
    return _allow([tracker.table_arn], "dynamodb:Query")


def read_sources(deployment: Deployment) -> list[iam.PolicyStatement]:
    """Read and list users' files, where the setting `sources` says that they lie."""
    found = []
    for bucket, folder in source_folders(deployment):
        arn = f"arn:{Aws.PARTITION}:s3:::{bucket}"
        found += [
            _allow([f"{arn}/{folder}*"], "s3:GetObject"),
            iam.PolicyStatement(
                actions=["s3:ListBucket"],
                resources=[arn],
                conditions={"StringLike": {"s3:prefix": f"{folder}*"}} if folder else None,
            ),
        ]
    return found


def source_folders(deployment: Deployment) -> list[tuple[str, str]]:
    """Return buckets, and folders in them with a slash at their end, or no folder."""
    urls = sources_in(deployment.settings.sources)
    parts = [url.removeprefix("s3://").partition("/") for url in urls]
    return [
        (bucket, f"{folder.strip('/')}/" if folder.strip("/") else "")
        for bucket, _, folder in parts
    ]


def take_jobs(queue: sqs.IQueue) -> iam.PolicyStatement:
    """Take messages, keep them out of sight, and delete them when their job is done."""
    actions = ("ReceiveMessage", "ChangeMessageVisibility", "DeleteMessage")
    return _allow([queue.queue_arn], *(f"sqs:{action}" for action in actions))


def refuse_jobs(queue: sqs.IQueue, dead_letters: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Find the queue's dead letters, and put a message among them."""
    return [look_at(queue), give_up(dead_letters)]


def look_at_networks() -> iam.PolicyStatement:
    """See what networks have endpoints of."""
    return _allow(["*"], "ec2:DescribeVpcEndpoints")


def look_at(queue: sqs.IQueue) -> iam.PolicyStatement:
    """Count messages, and see where dead ones go."""
    return _allow([queue.queue_arn], "sqs:GetQueueAttributes")


def run_image(repository: ecr.IRepository, log: logs.ILogGroup) -> list[iam.PolicyStatement]:
    """Fetch an image, and write the log of what it runs: what Fargate does before a task can."""
    actions = ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")
    return [
        _allow(["*"], "ecr:GetAuthorizationToken"),
        _allow([repository.repository_arn], *(f"ecr:{action}" for action in actions)),
        _allow([log.log_group_arn], "logs:CreateLogStream", "logs:PutLogEvents"),
    ]


def start_tasks(
    cluster: NamedCluster, definition: ecs.TaskDefinition, roles: Sequence[iam.Role]
) -> list[iam.PolicyStatement]:
    """Count, start, tag and look at tasks of a cluster. roles: what tasks are given, and nothing
    else.

    Counting has no resource in IAM where no machine is named; the cluster is a condition.
    """
    in_cluster = {"ArnEquals": {"ecs:cluster": cluster.cluster_arn}}
    ours = f"arn:{Aws.PARTITION}:ecs:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    name = cluster.cluster_name
    return [
        iam.PolicyStatement(
            actions=["ecs:ListTasks"],
            resources=["*"],
            conditions=in_cluster,
        ),
        _allow([f"{ours}:task/{name}/*"], "ecs:DescribeTasks"),
        iam.PolicyStatement(
            actions=["ecs:TagResource"],
            resources=[f"{ours}:task/{name}/*"],
            conditions={"StringEquals": {"ecs:CreateAction": "RunTask"}},
        ),
        iam.PolicyStatement(
            actions=["ecs:RunTask"],
            resources=[definition.task_definition_arn],
            conditions=in_cluster,
        ),
        iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[role.role_arn for role in roles],
            conditions={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
        ),
    ]


def read_import_requests(deployment: Deployment, *actions: str) -> iam.PolicyStatement:
    """Read requests for bulk imports, which lie beside the lake. actions: more of S3's."""
    return _allow([f"{_bucket(deployment)}/{IMPORTS}"], "s3:GetObject", *actions)


def import_requests(deployment: Deployment, *actions: str) -> list[iam.PolicyStatement]:
    """Read and list requests for bulk imports. actions: as above."""
    return [
        read_import_requests(deployment, *actions),
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[_bucket(deployment)],
            conditions={"StringLike": {"s3:prefix": IMPORTS}},
        ),
    ]


def put_import_requests_aside(deployment: Deployment) -> iam.PolicyStatement:
    """Keep what is left of damaged requests for bulk imports."""
    return _allow([f"{_bucket(deployment)}/{UNREADABLE_IMPORTS}"], "s3:PutObject")


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
    """Return what a role may name by its kind, without naming each thing."""
    s3 = "arn:<AWS::Partition>:s3:::"
    named = s3 + "{}-<AWS::AccountId>-<AWS::Region>"
    data, results = (named.format(deployment.name(part)) for part in ("data", "results"))
    ours = "arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>"
    cluster = deployment.name("tasks")
    reasons = {
        **{f"{data}/{keys_of(folder)}": OBJECTS for folder in get_args(Folder)},
        f"{results}/{RESULTS}": OBJECTS,
        f"{data}/{IMPORTS}": OBJECTS,
        f"{data}/{UNREADABLE_IMPORTS}": OBJECTS,
        **{f"{s3}{bucket}/{folder}*": SOURCES for bucket, folder in source_folders(deployment)},
        f"{ours}:task/{cluster}/*": TASKS,
        "<Application.Arn>/jobruns/*": RUNS,
    }
    return [
        Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{arn}]", reason=reason)
        for arn, reason in reasons.items()
    ]


def accepted_everywhere(role: iam.Role, reason: str) -> None:
    """Let a role name no resource, because IAM knows none for what it does."""
    rules = (
        "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
        "Serverless::Serverless-LambdaStarPermissions",
    )
    Validations.of(role).acknowledge(*(Acknowledgment(id=rule, reason=reason) for rule in rules))


def _bucket(deployment: Deployment) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name(deployment)}"


def _on_objects(deployment: Deployment, action: str, *folders: Folder) -> iam.PolicyStatement:
    return _allow([f"{_bucket(deployment)}/{keys_of(folder)}" for folder in folders], action)


def _allow(resources: list[str], *actions: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=resources)
