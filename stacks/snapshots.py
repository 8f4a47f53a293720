"""Snapshots: states of tables are written down, and logs lose their old bodies."""

from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import SNAPSHOTS
from stacks import permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.scheduled_tables import ScheduledTables


class SnapshotsStack(Stack):
    """Writes snapshots of tables. All works without it; opening a table takes longer and longer."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("snapshots"),
            description=f"Lakebed {deployment.instance}: snapshots of states",
        )
        self.scheduled = ScheduledTables(
            self,
            "Snapshots",
            deployment=deployment,
            shape=SNAPSHOTS,
            every=Duration.minutes(5),
            registry=stores.registry,
            environment=stores.work_environment(deployment, SNAPSHOTS),
            may=[
                *stores.may_commit(deployment),
                *permissions.truncate(deployment, stores.log),
                permissions.write_large_objects(deployment, "tables/*/snapshots/*"),
                permissions.delete_objects(deployment, "tables/*/snapshots/*"),
            ],
        )
