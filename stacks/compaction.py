"""Compaction: the queue of its jobs."""

from aws_cdk import Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMPACTION_JOBS
from stacks.constructs.job_queue import JobQueue


class CompactionStack(Stack):
    """Jobs wait here for whoever runs them: `lakebed run`."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("compaction"),
            description=f"Lakebed {deployment.instance}: compaction jobs",
        )
        self.jobs = JobQueue(self, "Jobs", shape=COMPACTION_JOBS, deployment=deployment)
