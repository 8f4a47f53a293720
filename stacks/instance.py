"""The map of an instance: every stack, and every line from one stack to another."""

import os
from collections.abc import Mapping
from typing import TypedDict

from aws_cdk import App, Stack, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Construct

from lakebed.config.instance import Deployment, deployment_of
from stacks.address import AddressStack
from stacks.alarms import AlarmsStack
from stacks.buckets import BucketsStack
from stacks.bulk_import import BulkImportStack
from stacks.committer import CommitterStack
from stacks.compaction import CompactionStack
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.dashboard import DashboardStack
from stacks.feed_push import FeedPushStack
from stacks.feeds import FeedsStack
from stacks.garbage import GarbageStack
from stacks.ingest import IngestStack
from stacks.networking import NetworkingStack
from stacks.query import QueryStack
from stacks.region import check_region
from stacks.snapshots import SnapshotsStack
from stacks.splitting import SplittingStack
from stacks.state import StateStack


class TaskStacks(TypedDict):
    """What each stack with tasks is given."""

    deployment: Deployment
    stores: LakeStores
    network: NetworkingStack


class TaskQueues(TypedDict):
    """Queues whose names a lake is opened with."""

    commits: FifoJobQueue
    compaction: FifoJobQueue


class Instance(Construct):
    """All stacks of one instance."""

    def __init__(self, scope: Construct, *, deployment: Deployment) -> None:
        super().__init__(scope, deployment.instance)
        if not deployment.settings.alarm_topic_arn:
            AlarmsStack(self, "Alarms", deployment=deployment)
        data = BucketsStack(self, "Data", deployment=deployment)
        state = StateStack(self, "State", deployment=deployment)
        stores = LakeStores(
            bucket=data.bucket, log=state.log, registry=state.registry, tracker=state.tracker
        )
        committer = CommitterStack(self, "Committer", deployment=deployment, stores=stores)
        network = NetworkingStack(self, "Networking", deployment=deployment)
        where = TaskStacks(deployment=deployment, stores=stores, network=network)
        compaction = CompactionStack(self, "Compaction", **where, commits=committer.commits)
        names = TaskQueues(commits=committer.commits, compaction=compaction.jobs)
        ingest = IngestStack(self, "Ingest", **where, **names)
        if deployment.settings.feed_workers_max or deployment.settings.feed_take:
            FeedsStack(self, "Feeds", **where, **names)
        if deployment.settings.feed_push:
            FeedPushStack(self, "FeedPush", deployment=deployment, stores=stores)
        bulk_import = BulkImportStack(self, "BulkImport", deployment=deployment, stores=stores)
        splitting = SplittingStack(self, "Splitting", deployment=deployment, stores=stores)
        garbage = GarbageStack(self, "Garbage", deployment=deployment, stores=stores)
        snapshots = SnapshotsStack(self, "Snapshots", deployment=deployment, stores=stores)
        query = QueryStack(
            self, "Query", deployment=deployment, stores=stores, results=data.results
        )
        queues = [
            committer.commits,
            ingest.jobs,
            bulk_import.jobs,
            query.queries,
            compaction.jobs,
            compaction.creation.tables,
            splitting.scheduled.tables,
            garbage.garbage.tables,
            garbage.sweep.tables,
            snapshots.scheduled.tables,
        ]
        DashboardStack(self, "Dashboard", deployment=deployment, queues=queues)
        named = [stack for stack in self.node.children if isinstance(stack, Stack)]
        address = AddressStack(
            self,
            "Address",
            deployment=deployment,
            bucket=data.bucket,
            log=state.log,
            registry=state.registry,
            tracker=state.tracker,
            queues=queues,
        )
        for stack in named:  # the release that it writes down is then that of all of them
            address.add_stack_dependency(stack)
        Tags.of(self).add("lakebed:instance", deployment.instance)


PARTITIONS = ("aws",)
"""Where an instance works. Clients of objects reach S3 by names that end in amazonaws.com, which
those of China do not, and nothing was ever tried in another partition."""


def instance_app(context: Mapping[str, object] | None = None, *, outdir: str | None = None) -> App:
    """Return an app with one instance, to be synthesized: refused then if cdk-nag finds fault.

    context: beside what the command `cdk` hands over. outdir: None for where `cdk` wants it.

    Raises:
        InvalidError: the context names no instance, or a setting that is not allowed, or not where
            `cdk` deploys to.
    """
    app = App(context=context, outdir=outdir, analytics_reporting=False)
    deployment = deployment_of(app.node.get_all_context())
    check_region(deployment.settings, os.environ, partitions=PARTITIONS)
    Instance(app, deployment=deployment)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app
