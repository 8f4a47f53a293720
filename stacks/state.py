"""The tables of DynamoDB: transaction logs, the registry of names, the tracker of jobs, batches of
submitted files."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from lakebed.config.dynamo_tables import (
    BATCHES_TABLE,
    LOG_TABLE,
    PARTITION_KEY,
    REGISTRY_TABLE,
    SORT_KEY,
    TRACKER_TABLE,
    DynamoTable,
)
from lakebed.config.instance import Deployment
from stacks.constructs.encryption import key_of
from stacks.constructs.kept_exports import keep_exports

TEXT, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER


class StateStack(Stack):
    """Tables paid by request, each with point-in-time recovery of 35 days.

    An idle instance pays for what is stored only. Where data are kept, tables are protected against
    deletion, and so no rollback of their creation may try it (docs/decisions/0032).
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("state"),
            description=f"Lakebed {deployment.instance}: logs, registry, tracker, batches",
        )
        self._key = key_of(self, deployment)
        self._table("Log", LOG_TABLE, deployment)
        self._table("Registry", REGISTRY_TABLE, deployment)
        tracker = self._table("Tracker", TRACKER_TABLE, deployment)
        self._table("Batches", BATCHES_TABLE, deployment)
        assert tracker.table_stream_arn is not None, "the tracker's table has a stream"
        self.tracker_stream = tracker.table_stream_arn
        """It has no name of ours, and is exported always: who reads it may come and go."""
        keep_exports(self, self.tracker_stream)

    def _table(self, id: str, shape: DynamoTable, deployment: Deployment) -> dynamodb.Table:
        kept = deployment.settings.data_kept
        table = dynamodb.Table(
            self,
            id,
            table_name=deployment.name(shape.part),
            partition_key=dynamodb.Attribute(name=PARTITION_KEY, type=TEXT),
            sort_key=dynamodb.Attribute(
                name=SORT_KEY, type=NUMBER if shape.sort_key == "N" else TEXT
            ),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=shape.expiry,
            stream=dynamodb.StreamViewType.NEW_IMAGE if shape.streamed else None,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self._key else None,
            encryption_key=self._key,
            deletion_protection=kept,
            removal_policy=RemovalPolicy.RETAIN if kept else RemovalPolicy.DESTROY,
        )
        if shape.index is not None:
            table.add_global_secondary_index(
                index_name=shape.index.name,
                partition_key=dynamodb.Attribute(name=shape.index.partition_key, type=TEXT),
                sort_key=dynamodb.Attribute(name=shape.index.sort_key, type=NUMBER),
                projection_type=dynamodb.ProjectionType.ALL,
            )
        keep_exports(self, table.table_name, table.table_arn)
        return table
