"""The committer: a queue of commits, and the function that puts them into logs."""

import msgspec
from aws_cdk import Stack
from constructs import Construct

from lakebed.config.environments import CommitterEnvironment
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMMITS
from stacks import permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.kept_exports import keep_exports
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import STATE
from stacks.constructs.queue_lambda import QueueLambda


class CommitterStack(Stack):
    """Commits that wait here are packed into one log entry. Direct commits go on working beside."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("committer"),
            description=f"Lakebed {deployment.instance}: commits on their way",
        )
        self.commits = FifoJobQueue(self, "Commits", shape=COMMITS, deployment=deployment)
        queue, dead_letters = self.commits.queue, self.commits.dead_letters
        keep_exports(self, queue.queue_arn, dead_letters.queue_arn)
        environment = CommitterEnvironment(
            **msgspec.structs.asdict(stores.function_environment(deployment)),
            tracker_table=stores.tracker.table_name,
            commits_queue_url=self.commits.queue.queue_url,
        )
        QueueLambda(
            self,
            "Commit",
            deployment=deployment,
            bundle=STATE,
            queue=self.commits,
            room="committer",
            verb="commit",
            environment=environment,
            permissions=[
                *permissions.read_objects(deployment),
                permissions.commit(stores.log),
                permissions.write_bodies(deployment),
                permissions.mark_tables(stores.registry),
                permissions.delete_objects(deployment, "tables/*/commits/*"),
                permissions.write_many_job_reports(stores.tracker),
                permissions.show_again(self.commits.queue),
            ],
            memory_mib=1_024,
        )
