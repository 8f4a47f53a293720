"""Feeds: tasks that take records of sources into tables, while feeds are started, and a function
for sources that trickle.

An instance without `feed_workers_max` and `feed_take` has no such stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.environments import FeedTaskStartEnvironment, TaskEnvironment
from lakebed.config.fargate import ON_DEMAND
from lakebed.config.feed_access import port_ranges
from lakebed.config.instance import Deployment
from lakebed.observe.metric import Alarm
from lakebed.observe.metrics import METRICS
from stacks import feed_permissions, permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.task_pool import TaskPool, TaskStart
from stacks.dashboard import metric_alarm
from stacks.feed_take import FeedTake, QueueNames
from stacks.networking import NetworkingStack

KIND = "feeds"
ALARMS = {
    "feed_failures": Alarm(
        threshold=1, minutes=5, page="docs/operate/feeds-failed.md", command="feed status"
    ),
    "feed_lags": Alarm(
        threshold=1, minutes=5, page="docs/operate/feeds-lagging.md", command="feed status"
    ),
    "feed_gaps": Alarm(
        threshold=1, minutes=5, page="docs/operate/feed-gaps.md", command="feed status"
    ),
    "feed_quarantines": Alarm(
        threshold=1, minutes=5, page="docs/operate/feeds-quarantine.md", command="feed status"
    ),
    "feed_spool_percent": Alarm(
        threshold=80, minutes=5, page="docs/operate/feeds-spool.md", command="feed status"
    ),
}
"""Alarms by metric. Only an instance that runs feeds pays for them."""
ALARMS_OF_TASKS = {
    "feed_tasks_failed": Alarm(
        threshold=3, minutes=15, page="docs/operate/feed-tasks-failed.md", command="tasks"
    ),
}
"""The same. An instance whose function takes all has no tasks that could fail."""


class FeedsStack(Stack):
    """Tasks and a function do what `lakebed feed run` does on any machine, and share the work with
    it.

    commits, compaction: queues whose names a lake is opened with.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        network: NetworkingStack | None,
        commits: NamedJobQueue,
        compaction: NamedJobQueue,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name(KIND),
            description=f"Lakebed {deployment.instance}: records of sources that become rows",
        )
        names = QueueNames(compaction.queue.queue_url, commits.queue.queue_url)
        may = [
            *permissions.read_objects(deployment),
            permissions.commit(stores.log),
            permissions.write_bodies(deployment),
            permissions.write_files(deployment),
            *feed_permissions.work_on_feeds(stores.registry),
            *permissions.read_sources(deployment),
            *feed_permissions.take_from_queues(deployment),
        ]
        if network is not None and deployment.settings.feed_workers_max:
            self._tasks(deployment, stores, network, names, may)
        if deployment.settings.feed_take:
            FeedTake(self, "Take", deployment=deployment, stores=stores, queues=names, may=may)

        for metric in METRICS:
            if metric.name in ALARMS:
                metric_alarm(self, deployment, metric, ALARMS[metric.name])
            if metric.name in ALARMS_OF_TASKS and deployment.settings.feed_workers_max:
                metric_alarm(self, deployment, metric, ALARMS_OF_TASKS[metric.name])

    def _tasks(
        self,
        deployment: Deployment,
        stores: LakeStores,
        network: NetworkingStack,
        names: QueueNames,
        may: Sequence[iam.PolicyStatement],
    ) -> None:
        """Let tasks be started while feeds are. may: what it takes to work on feeds."""
        registry = stores.registry
        pool = TaskPool(
            self,
            "Tasks",
            deployment=deployment,
            network=network,
            kind=KIND,
            environment=TaskEnvironment(
                **msgspec.structs.asdict(stores.environment(deployment)),
                **names._asdict(),
                task_vcpus=deployment.settings.task_vcpus,
                task_memory_mib=str(deployment.settings.task_memory_mib),
                tracker_table=stores.tracker.table_name,
            ),
            may=[
                *may,
                feed_permissions.land_segments(deployment),
                *feed_permissions.read_secrets(deployment),
                *feed_permissions.read_schemas(deployment),
            ],
            start=TaskStart(
                tasks="feed-tasks",
                tasks_max=deployment.settings.feed_workers_max,
                capacity=ON_DEMAND,
                environment=lambda common: FeedTaskStartEnvironment(
                    **msgspec.structs.asdict(common), registry_table=registry.table_name
                ),
                may=[
                    *feed_permissions.read_definitions_of_feeds(registry),
                    feed_permissions.hear_workers(registry),
                ],
                security_groups=self._brokers(deployment, network),
            ),
        )

        if deployment.settings.feed_schemas:
            reason = "a version of a schema of Glue is named by its id alone, which is no resource"
            permissions.accepted_everywhere(pool.role, reason)

    def _brokers(self, deployment: Deployment, network: NetworkingStack) -> list[str]:
        """Return a group of those that reach the ports of the setting; none, where it names none.
        Brokers know tasks of feeds by it."""
        ranges = port_ranges(deployment.settings.feed_ports)
        if not ranges:
            return []
        group = ec2.CfnSecurityGroup(
            self,
            "BrokersGroup",
            group_name=deployment.name(KIND),
            group_description=f"Lakebed {deployment.instance}: tasks of feeds, on their way out",
            vpc_id=network.vpc_id,
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    cidr_ip="0.0.0.0/0",
                    description="sources of feeds",
                )
                for first, last in ranges
            ],
        )
        return [group.attr_group_id]
