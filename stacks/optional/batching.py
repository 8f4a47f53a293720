"""Batching: each minute, files that were submitted become batches, and batches jobs."""

import msgspec
from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.environments import BatchingEnvironment, BatchingTriggerEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import BATCHING
from stacks import partition_permissions, permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.constructs.schedule import Schedule
from stacks.constructs.scheduled_tables import TRIGGER_SECONDS_MAX

EVERY = Duration.minutes(1)


class BatchingStack(Stack):
    """Tables with submitted files are told to a queue, and a function makes batches of them
    (docs/design/batching.md). ingest, bulk_import: the queues that
    their jobs go to; all is ingested where there is no bulk import."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        ingest: NamedJobQueue,
        bulk_import: NamedJobQueue | None,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("batching"),
            description=f"Lakebed {deployment.instance}: submitted files become jobs",
        )
        self.tables = FifoJobQueue(self, "Tables", shape=BATCHING, deployment=deployment)
        self._trigger(deployment, stores)
        QueueLambda(
            self,
            "Handle",
            deployment=deployment,
            bundle=STATE,
            queue=self.tables,
            room="batching",
            verb="handle",
            environment=BatchingEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                batches_table=stores.batches.table_name,
                tracker_table=stores.tracker.table_name,
                ingest_queue_url=ingest.queue.queue_url,
                bulk_import_queue_url=bulk_import.queue.queue_url if bulk_import else "",
            ),
            permissions=[
                *permissions.read_objects(deployment),
                permissions.read_log(stores.log),
                permissions.list_tables(stores.registry),
                *partition_permissions.make_batches(stores.batches),
                permissions.report_jobs_one_by_one(stores.tracker),
                permissions.send(ingest.queue),
                *([permissions.send(bulk_import.queue)] if bulk_import else []),
            ],
        )

    def _trigger(self, deployment: Deployment, stores: LakeStores) -> None:
        """Each minute, send tables with something to do to the queue."""
        own = PythonFunction(
            self,
            "Trigger",
            deployment=deployment,
            bundle=STATE,
            room="batching",
            verb="trigger",
            environment=BatchingTriggerEnvironment(
                instance=deployment.instance,
                batches_table=stores.batches.table_name,
                queue_url=self.tables.queue.queue_url,
            ),
            permissions=[
                partition_permissions.list_batched_tables(stores.batches),
                permissions.send(self.tables.queue),
            ],
            runs_apart=EVERY,
            timeout_seconds=TRIGGER_SECONDS_MAX,
            memory_mib=256,
        )
        Schedule(
            self,
            "Schedule",
            deployment=deployment,
            name=BATCHING.kind,
            every=EVERY,
            function=own.function,
        )
