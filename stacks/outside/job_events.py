"""Ends of jobs as events of EventBridge. An instance without the setting `job_events` has no such
stack."""

from __future__ import annotations

import json

from aws_cdk import Acknowledgment, Aws, Duration, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.alarm_settings import JOB_EVENT_SOURCE
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY, TRACKER_TABLE
from lakebed.config.environments import JobEventsEnvironment
from lakebed.config.instance import Deployment
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction
from stacks.partition_permissions import in_partitions
from stacks.permissions import accepted_everywhere

SECONDS_MAX = 60
RECORDS_AT_ONCE = 100
FAILED_AGAIN = Duration.minutes(1)
"""Longest time until a batch that failed calls the function again."""
ENDS = ("committed", "rejected", "finished", "failed")
"""Names of ends; of some kinds of jobs not all of these are ends."""
UNNAMED_STREAMS = "Lambda lists streams before it maps one, and IAM knows no resource for that"
NOT_KEPT = (
    "a batch is sent again until its records leave the stream, after a day: errors have an alarm,"
    " and the tracker has every report"
)


class JobEventsStack(Stack):
    """A function reads what the tracker is told, and publishes ends of jobs, at least once.

    stream: of the tracker's table, its ARN.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        stream: str,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("job-events"),
            description=f"Lakebed {deployment.instance}: ends of jobs as events",
        )
        registry = stores.registry
        publish = PythonFunction(
            self,
            "Publish",
            deployment=deployment,
            bundle=STATE,
            room="job-events",
            verb="publish",
            environment=JobEventsEnvironment(
                instance=deployment.instance, registry_table=registry.table_name
            ),
            permissions=[
                *_read_stream(stream),
                in_partitions(registry.table_arn, ["names"], "Query"),
                _put_events(),
            ],
            runs_apart=FAILED_AGAIN,
            timeout_seconds=SECONDS_MAX,
        )
        accepted_everywhere(publish.role, UNNAMED_STREAMS)
        source = lambda_.EventSourceMapping(
            self,
            "Source",
            target=publish.function,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.LATEST,
            batch_size=RECORDS_AT_ONCE,
            filters=[{"pattern": json.dumps(_newest_ends())}],
            report_batch_item_failures=True,
            enabled=not deployment.settings.paused,
        )
        Validations.of(source).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-LambdaEventSourceMappingDestination", reason=NOT_KEPT
            )
        )


def _newest_ends() -> dict[str, object]:
    """Return which records call the function: what became the newest report of a job, and may be
    its end. Others cost nothing."""
    assert TRACKER_TABLE.index is not None, "the tracker's table has an index"
    listed = [{"suffix": f"#{event}"} for event in ENDS]
    return {
        "eventName": ["INSERT", "MODIFY"],
        "dynamodb": {
            "Keys": {PARTITION_KEY: {"S": [{"prefix": "job#"}]}, SORT_KEY: {"S": ["newest"]}},
            "NewImage": {TRACKER_TABLE.index.partition_key: {"S": listed}},
        },
    }


def _read_stream(stream: str) -> list[iam.PolicyStatement]:
    """Return what Lambda asks for to read a stream in the function's name."""
    actions = ("DescribeStream", "GetRecords", "GetShardIterator")
    return [
        iam.PolicyStatement(
            actions=[f"dynamodb:{action}" for action in actions], resources=[stream]
        ),
        iam.PolicyStatement(actions=["dynamodb:ListStreams"], resources=["*"]),
    ]


def _put_events() -> iam.PolicyStatement:
    """Return what it takes to publish on the default bus, from the source `lakebed.job` only."""
    bus = f"arn:{Aws.PARTITION}:events:{Aws.REGION}:{Aws.ACCOUNT_ID}:event-bus/default"
    return iam.PolicyStatement(
        actions=["events:PutEvents"],
        resources=[bus],
        conditions={"StringEquals": {"events:source": JOB_EVENT_SOURCE}},
    )
