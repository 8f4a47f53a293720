"""Splitting: each minute, leaves of tables that grew too large become several."""

from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import SPLITTING
from stacks import permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.scheduled_tables import ScheduledTables


class SplittingStack(Stack):
    """It reads samples in the tails of files, and moves no rows."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("splitting"),
            description=f"Lakebed {deployment.instance}: splits leaves",
        )
        self.scheduled = ScheduledTables(
            self,
            "Splitting",
            deployment=deployment,
            shape=SPLITTING,
            every=Duration.minutes(1),
            registry=stores.registry,
            environment=stores.work_environment(deployment, SPLITTING),
            may=[*stores.may_commit(deployment), permissions.write_bodies(deployment)],
        )
