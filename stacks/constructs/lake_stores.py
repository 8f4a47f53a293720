"""Gives functions that work on tables what they need to know of stores, and may do there, all
alike."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

import msgspec
from aws_cdk import aws_iam as iam

from lakebed.config.dynamo_tables import BATCHES_TABLE, LOG_TABLE, REGISTRY_TABLE, TRACKER_TABLE
from lakebed.config.environments import (
    ScheduledWorkEnvironment,
    TableFunctionEnvironment,
    TableWorkEnvironment,
)
from lakebed.config.instance import OBJECTS_PREFIX, Deployment
from lakebed.config.job_queues import JobQueueShape
from stacks import permissions
from stacks.constructs.names import NamedBucket, NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeStores:
    """The stores of a lake, by name."""

    bucket: NamedBucket
    log: NamedTable
    registry: NamedTable
    tracker: NamedTable
    batches: NamedTable

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        """Return those of an instance."""
        return cls(
            bucket=NamedBucket(permissions.bucket_name(deployment)),
            log=NamedTable(deployment.name(LOG_TABLE.part)),
            registry=NamedTable(deployment.name(REGISTRY_TABLE.part)),
            tracker=NamedTable(deployment.name(TRACKER_TABLE.part)),
            batches=NamedTable(deployment.name(BATCHES_TABLE.part)),
        )

    def environment(self, deployment: Deployment) -> TableWorkEnvironment:
        """Return what a program is told that works on tables."""
        return TableWorkEnvironment(
            instance=deployment.instance,
            bucket=self.bucket.bucket_name,
            objects_prefix=OBJECTS_PREFIX,
            log_table=self.log.table_name,
            registry_table=self.registry.table_name,
            table_metrics=json.dumps(deployment.settings.table_metrics),
        )

    def function_environment(self, deployment: Deployment) -> TableFunctionEnvironment:
        """Return what a function is told that works on tables."""
        return TableFunctionEnvironment(
            **msgspec.structs.asdict(self.environment(deployment)),
            function_disk_mib=str(deployment.settings.function_disk_mib),
        )

    def work_environment(
        self, deployment: Deployment, shape: JobQueueShape
    ) -> ScheduledWorkEnvironment:
        """Return what a function is told that does scheduled work. shape: of its queue."""
        return ScheduledWorkEnvironment(
            **msgspec.structs.asdict(self.function_environment(deployment)), work=shape.kind
        )

    def may_read(self, deployment: Deployment) -> list[iam.PolicyStatement]:
        """Return what it takes to find tables, open them and read their rows."""
        return [
            *permissions.read_objects(deployment),
            permissions.read_log(self.log),
            permissions.find_tables(self.registry),
        ]

    def may_commit(self, deployment: Deployment) -> list[iam.PolicyStatement]:
        """Return what it takes to open tables, commit to them, and mark them. Entries above 32 KiB
        take `permissions.write_bodies`, too."""
        return [
            *permissions.read_objects(deployment),
            permissions.commit(self.log),
            permissions.mark_tables(self.registry),
        ]
