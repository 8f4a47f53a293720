"""Ingest: the queue of users' messages that name files."""

from aws_cdk import Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import INGEST_JOBS
from stacks.constructs.job_queue import JobQueue


class IngestStack(Stack):
    """Messages wait here for tasks that take their files in (docs/design/messages.md)."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("ingest"),
            description=f"Lakebed {deployment.instance}: files that become rows",
        )
        self.jobs = JobQueue(self, "Jobs", shape=INGEST_JOBS, deployment=deployment)
