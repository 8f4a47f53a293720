"""One kind of scheduled work: a schedule, what it runs, the queue of tables, and who works on
them."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.environments import ScheduledWorkEnvironment, TriggerEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMPACTION_CREATION, JobQueueShape
from stacks import permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.names import NamedTable
from stacks.constructs.python_bundle import PLANNING, STATE
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.constructs.schedule import Schedule

TRIGGER_SECONDS_MAX = 60
CODE_ROOM = "scheduled-work"
"""The folder in `lambdas` with the code of all kinds: the variable `work` tells them apart."""


class ScheduledTables(Construct):
    """Every so often, each table that may have something to do is told to a queue, and a function
    works on it.

    shape: of the queue. Its kind names the work, and is part of the functions' names.
    environment: of the function that works. may: what that one may do.
    A schedule rests while the instance is paused.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        shape: JobQueueShape,
        every: Duration,
        registry: NamedTable,
        environment: ScheduledWorkEnvironment,
        may: Sequence[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, id)
        self.tables = FifoJobQueue(self, "Tables", shape=shape, deployment=deployment)
        trigger = self._trigger(deployment, shape, registry, every)
        Schedule(
            self,
            "Schedule",
            deployment=deployment,
            name=shape.kind,
            every=every,
            function=trigger,
        )
        QueueLambda(
            self,
            "Handle",
            deployment=deployment,
            bundle=PLANNING if shape == COMPACTION_CREATION else STATE,
            queue=self.tables,
            room=shape.kind,
            verb="handle",
            code_room=CODE_ROOM,
            environment=environment,
            permissions=may,
        )

    def _trigger(
        self,
        deployment: Deployment,
        shape: JobQueueShape,
        registry: NamedTable,
        every: Duration,
    ) -> lambda_.Function:
        queue = self.tables.queue
        environment = TriggerEnvironment(
            instance=deployment.instance,
            work=shape.kind,
            registry_table=registry.table_name,
            queue_url=queue.queue_url,
        )
        own = PythonFunction(
            self,
            "Trigger",
            deployment=deployment,
            bundle=STATE,
            room=shape.kind,
            verb="trigger",
            code_room=CODE_ROOM,
            environment=environment,
            permissions=[permissions.list_tables(registry), permissions.send(queue)],
            runs_apart=every,
            timeout_seconds=TRIGGER_SECONDS_MAX,
            memory_mib=256,
        )
        return own.function
