"""The function that takes records of feeds whose sources trickle. An instance without the setting
`feed_take` has neither it nor its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from lakebed.config.environments import FeedTakeEnvironment
from lakebed.config.instance import Deployment
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import FEEDS
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule

SECONDS_MAX = 180
"""A run takes for 90 s, and then commits what it holds."""
MEMORY_MIB = 2_048
"""A round of a feed is 64 MiB of records, which are decoded, sorted and written."""


class QueueNames(NamedTuple):
    """The URLs of queues whose names a lake is opened with."""

    compaction_queue_url: str
    commits_queue_url: str


class FeedTake(Construct):
    """Each minute, what there is. Runs may overlap: leases and positions keep them apart.

    may: what it takes to work on feeds.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        queues: QueueNames,
        may: Sequence[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, id)
        every = Duration.minutes(1)
        own = PythonFunction(
            self,
            "Function",
            deployment=deployment,
            bundle=FEEDS,
            room="feeds",
            verb="take",
            environment=FeedTakeEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                **queues._asdict(),
                tracker_table=stores.tracker.table_name,
                merge_processes="1",
            ),
            permissions=may,
            runs_apart=every,
            timeout_seconds=SECONDS_MAX,
            memory_mib=MEMORY_MIB,
        )
        Schedule(
            self,
            "Schedule",
            deployment=deployment,
            name="feeds-take",
            every=every,
            function=own.function,
        )
