"""Garbage: files that nothing refers to are deleted, and so is what dead workers left."""

from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import GARBAGE, SWEEP, WORK_SECONDS_MAX
from stacks import permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule
from stacks.constructs.scheduled_tables import ScheduledTables
from stacks.partition_permissions import read_usage


class GarbageStack(Stack):
    """Files that lost their last reference go after a while, each five minutes; once a day what
    never got one is swept, and tables that never got a name."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("garbage"),
            description=f"Lakebed {deployment.instance}: deletes what nothing refers to",
        )
        self.garbage = ScheduledTables(
            self,
            "Garbage",
            deployment=deployment,
            shape=GARBAGE,
            every=Duration.minutes(5),
            registry=stores.registry,
            environment=stores.work_environment(deployment, GARBAGE),
            may=[
                *stores.may_commit(deployment),
                permissions.delete_objects(deployment, "tables/*/files/*"),
            ],
        )
        self.sweep = ScheduledTables(
            self,
            "Sweep",
            deployment=deployment,
            shape=SWEEP,
            every=Duration.days(1),
            registry=stores.registry,
            environment=stores.work_environment(deployment, SWEEP),
            may=[
                *stores.may_commit(deployment),
                permissions.delete_objects(
                    deployment, "tables/*/files/*", "tables/*/commits/*", "tables/*/runs/*"
                ),
                read_usage(deployment),
            ],
        )
        self._sweep_nameless(deployment, stores)

    def _sweep_nameless(self, deployment: Deployment, stores: LakeStores) -> None:
        every = Duration.days(1)
        own = PythonFunction(
            self,
            "Nameless",
            deployment=deployment,
            bundle=STATE,
            room="sweep",
            verb="nameless",
            environment=stores.function_environment(deployment),
            permissions=[
                *stores.may_commit(deployment),
                *permissions.truncate(deployment, stores.log),
                permissions.delete_objects(deployment, "tables/*"),
            ],
            runs_apart=every,
            timeout_seconds=WORK_SECONDS_MAX,
        )
        Schedule(
            self,
            "NamelessSchedule",
            deployment=deployment,
            name="sweep-nameless",
            every=every,
            function=own.function,
        )
