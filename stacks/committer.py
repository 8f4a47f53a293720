"""The committer: the queue of commits that others wait for."""

from aws_cdk import Stack
from constructs import Construct

from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMMITS
from stacks.constructs.job_queue import JobQueue


class CommitterStack(Stack):
    """Commits wait here to be packed into one log entry. Direct commits go on working beside."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("committer"),
            description=f"Lakebed {deployment.instance}: commits on their way",
        )
        self.commits = JobQueue(self, "Commits", shape=COMMITS, deployment=deployment)
