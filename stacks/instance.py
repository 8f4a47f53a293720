"""The map of an instance: every stack, and every line from one stack to another."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypedDict

from aws_cdk import App, Stack, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Construct

from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.instance import Deployment
from stacks.address import AddressStack
from stacks.alarms import AlarmsStack
from stacks.buckets import BucketsStack
from stacks.bulk_import import BulkImportStack
from stacks.committer import CommitterStack
from stacks.compaction import CompactionStack
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.region import check_region, warn_of_zones
from stacks.dashboard import DashboardStack
from stacks.feed_push import FeedPushStack
from stacks.feeds import FeedsStack
from stacks.garbage import GarbageStack
from stacks.ingest import IngestStack
from stacks.networking import NetworkingStack
from stacks.optional.batching import BatchingStack
from stacks.optional.history import HistoryStack
from stacks.optional.tables import TablesStack
from stacks.outside.job_events import JobEventsStack
from stacks.outside.people import PeopleStack
from stacks.query import QueryStack
from stacks.release import ReleaseStack
from stacks.snapshots import SnapshotsStack
from stacks.spark.clusters import SparkClustersStack
from stacks.splitting import SplittingStack
from stacks.state import StateStack


class StackParts(TypedDict):
    """The parts that are given to each stack that works on tables."""

    deployment: Deployment
    stores: LakeStores


class TaskParts(StackParts):
    """The parts that are given to each stack with tasks.

    network: None: it can have no tasks.
    commits: the queue by which some commit.
    """

    network: NetworkingStack | None
    commits: NamedJobQueue


class Instance(Construct):
    """All stacks of one instance. They know each other by name, so that one can go, or be left out;
    what is left out is None here."""

    def __init__(self, scope: Construct, *, deployment: Deployment) -> None:
        super().__init__(scope, deployment.instance)
        has = deployment.stacks.__contains__
        own = StackParts(deployment=deployment, stores=LakeStores.of(deployment))
        release = ReleaseStack(self, "Release", deployment=deployment)
        if not deployment.settings.alarm_topic_arn:
            AlarmsStack(self, "Alarms", deployment=deployment)
        data = BucketsStack(self, "Data", deployment=deployment)
        state = StateStack(self, "State", deployment=deployment)
        committer = CommitterStack(self, "Committer", **own)
        commits = committer.commits.named
        network = None
        if has("networking"):
            network = NetworkingStack(self, "Networking", deployment=deployment)
            warn_of_zones(network, deployment.settings, os.environ)
        tasks = TaskParts(**own, network=network, commits=commits)
        compaction = CompactionStack(self, "Compaction", **tasks)
        jobs = compaction.jobs.named
        ingest = IngestStack(self, "Ingest", **tasks, compaction=jobs) if has("ingest") else None
        feeds = FeedsStack(self, "Feeds", **tasks, compaction=jobs) if has("feeds") else None
        clusters = None
        if network is not None and has("spark-clusters"):
            clusters = SparkClustersStack(self, "SparkClusters", **own, network=network)
        bulk_import = None
        if has("bulk-import"):
            bulk_import = BulkImportStack(self, "BulkImport", **own, clusters=clusters)
        batching = None
        if ingest is not None and has("batching"):
            imports = bulk_import.jobs.named if bulk_import else None
            batching = BatchingStack(
                self, "Batching", **own, ingest=ingest.jobs.named, bulk_import=imports
            )
        splitting = SplittingStack(self, "Splitting", **own)
        garbage = GarbageStack(self, "Garbage", **own)
        snapshots = SnapshotsStack(self, "Snapshots", **own)
        query = QueryStack(self, "Query", **own) if has("query") else None
        queues = [
            committer.commits,
            ingest.jobs if ingest else None,
            bulk_import.jobs if bulk_import else None,
            query.queries if query else None,
            compaction.jobs,
            batching.tables if batching else None,
            batching.submissions if batching else None,
            compaction.creation.tables,
            splitting.scheduled.tables,
            garbage.garbage.tables,
            garbage.sweep.tables,
            snapshots.scheduled.tables,
        ]
        named = [queue.named for queue in queues if queue is not None]
        DashboardStack(self, "Dashboard", deployment=deployment, queues=named)
        self._asked_for(own, state)
        address = AddressStack(self, "Address", **own, queues=named)
        steps = [release], [data, state], [committer, network], [compaction], [ingest, feeds]
        self._in_order(*steps, last=address)
        for key, value in deployment.all_tags().items():
            Tags.of(self).add(key, value)

    def _asked_for(self, own: StackParts, state: StateStack) -> None:
        """Make the stacks that are there only where settings ask for them, and that no other
        knows."""
        has = own["deployment"].stacks.__contains__
        if has("feed-push"):
            FeedPushStack(self, "FeedPush", **own)
        if has("people"):
            PeopleStack(self, "People", deployment=own["deployment"])
        if has("history"):
            HistoryStack(self, "History", **own)
        if has("job-events"):
            JobEventsStack(self, "JobEvents", **own, stream=state.tracker_stream)
        if has("tables"):
            TablesStack(self, "Tables", **own)

    def _in_order(self, *steps: Sequence[Stack | None], last: Stack) -> None:
        """Let stacks be deployed in an order: they would not wait for what they know by name.

        steps: each waits for all before; stacks in none of them wait for the first two. last: waits
            for all, so that the release that it writes down is that of each.
        """
        every = [stack for stack in self.node.children if isinstance(stack, Stack)]
        there = [[stack for stack in step if stack is not None] for step in steps]
        listed = {stack.stack_name for stack in (*chain(*there), last)}
        others = [stack for stack in every if stack.stack_name not in listed]
        for at, step in enumerate(there):
            _let_wait(step, chain(*there[:at]))
        _let_wait(others, chain(*there[:2]))
        _let_wait([last], chain(*there, others))


def _let_wait(stacks: Iterable[Stack], others: Iterable[Stack]) -> None:
    """Let each of some stacks be deployed after all of others."""
    before = list(others)
    for stack in stacks:
        for one in before:
            stack.add_stack_dependency(one)


PARTITIONS = ("aws",)
"""Partitions of AWS where an instance works. Clients of objects reach S3 by names that end in
amazonaws.com, which those of China do not, and nothing was ever tried in another partition."""


def instance_app(context: Mapping[str, object] | None = None, *, outdir: str | None = None) -> App:
    """Return an app with one instance, to be synthesized: refused then if cdk-nag finds fault.

    context: beside what the command `cdk` hands over.
    outdir: None for where `cdk` wants it.

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
