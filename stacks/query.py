"""Queries: a function for who waits for the answer, and a queue for who does not."""

import msgspec
from aws_cdk import Stack
from constructs import Construct

from lakebed.config.environments import QueryEnvironment, QueryQueueEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import QUERIES, QUERY_SECONDS_MAX
from stacks import permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import ROWS
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.queue_lambda import QueueLambda
from stacks.partition_permissions import read_usage

MEMORY_MIB = 2_048
"""More than a processor: rows are read and decoded by several threads."""


class QueryStack(Stack):
    """Users' messages are answered at once, or their results written to a bucket
    (docs/design/messages.md)."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("query"),
            description=f"Lakebed {deployment.instance}: rows out",
        )
        self.queries = FifoJobQueue(self, "Queries", shape=QUERIES, deployment=deployment)
        environment = QueryEnvironment(
            **msgspec.structs.asdict(stores.function_environment(deployment)),
            tracker_table=stores.tracker.table_name,
            results_bucket=permissions.results_bucket_name(deployment),
        )
        queued = QueryQueueEnvironment(
            **msgspec.structs.asdict(environment), query_queue_url=self.queries.queue.queue_url
        )
        may = [
            *stores.may_read(deployment),
            *permissions.write_results(deployment),
            *(permissions.write_job_reports(stores.tracker), read_usage(deployment)),
        ]
        PythonFunction(
            self,
            "Answer",
            deployment=deployment,
            bundle=ROWS,
            room="query",
            verb="answer",
            environment=environment,
            permissions=may,
            runs_apart=None,
            timeout_seconds=QUERY_SECONDS_MAX,
            memory_mib=MEMORY_MIB,
        )
        QueueLambda(
            self,
            "Handle",
            deployment=deployment,
            bundle=ROWS,
            queue=self.queries,
            room="query",
            verb="handle",
            environment=queued,
            permissions=[
                *may,
                permissions.give_up(self.queries.dead_letters),
                permissions.show_again(self.queries.queue),
            ],
            memory_mib=MEMORY_MIB,
            seconds_max=QUERY_SECONDS_MAX,
            messages_at_once=1,  # each has a run's whole time
        )
