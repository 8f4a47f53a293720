"""Ingest: the queue of users' messages that name files, and tasks that take the files in."""

import msgspec
from aws_cdk import Stack
from constructs import Construct

from lakebed.config.environments import IngestTaskEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import INGEST_JOBS
from stacks import partition_permissions, permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.task_pool import TaskPool, start_for
from stacks.networking import NetworkingStack
from stacks.partition_permissions import read_usage


class IngestStack(Stack):
    """Messages wait here for tasks (docs/design/messages.md).

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
            stack_name=deployment.name("ingest"),
            description=f"Lakebed {deployment.instance}: files that become rows",
        )
        assert network is not None, "an instance with ingest and without a network is refused"
        self.jobs = FifoJobQueue(self, "Jobs", shape=INGEST_JOBS, deployment=deployment)
        TaskPool(
            self,
            "Tasks",
            deployment=deployment,
            network=network,
            kind=self.jobs.kind,
            environment=IngestTaskEnvironment(
                **msgspec.structs.asdict(stores.environment(deployment)),
                task_vcpus=deployment.settings.task_vcpus,
                task_memory_mib=str(deployment.settings.task_memory_mib),
                tracker_table=stores.tracker.table_name,
                compaction_queue_url=compaction.queue.queue_url,
                commits_queue_url=commits.queue.queue_url,
                batches_table=stores.batches.table_name,
                ingest_queue_url=self.jobs.queue.queue_url,
                sources=deployment.settings.sources,
            ),
            may=[
                *stores.may_commit(deployment),
                permissions.write_bodies(deployment),
                permissions.find_table(stores.registry),
                permissions.write_files(deployment),
                partition_permissions.run_batches(stores.batches),
                permissions.write_job_reports(stores.tracker),
                permissions.take_jobs(self.jobs.queue),
                *permissions.refuse_jobs(self.jobs.queue, self.jobs.dead_letters),
                *permissions.read_sources(deployment),
                read_usage(deployment),
            ],
            start=start_for(
                self.jobs,
                tasks_max=deployment.settings.ingest_tasks_max,
                capacity=deployment.settings.ingest_capacity,
            ),
        )
