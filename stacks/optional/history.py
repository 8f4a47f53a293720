"""History: the jobs and the usage of each day become rows of tables of the instance itself.

An instance whose setting `history_days` is 0 has no such stack.
"""

from __future__ import annotations

import msgspec
from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.environments import HistoryEnvironment
from lakebed.config.instance import Deployment
from stacks import partition_permissions, permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import ROWS
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule

SECONDS_MAX = 300
MEMORY_MIB = 1_024
"""Reports are sorted in memory; a day has a few hundred thousand at the most."""
EVERY_HOURS = 6
"""A day is kept once, however often that is tried; the first run may be at any time of a day."""


class HistoryStack(Stack):
    """It makes the tables when it first runs, and moves no rows of users."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("history"),
            description=f"Lakebed {deployment.instance}: jobs and usage, as tables",
        )
        every = Duration.hours(EVERY_HOURS)
        own = PythonFunction(
            self,
            "Handle",
            deployment=deployment,
            bundle=ROWS,
            room="history",
            verb="handle",
            environment=HistoryEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                tracker_table=stores.tracker.table_name,
                history_days=str(deployment.settings.history_days),
            ),
            permissions=[
                *stores.may_commit(deployment),
                *partition_permissions.make_tables(stores.registry),
                permissions.write_bodies(deployment),
                permissions.write_files(deployment),
                partition_permissions.find_reports(stores.tracker),
                partition_permissions.read_usage(deployment),
                permissions.report_jobs(stores.tracker),
            ],
            runs_apart=every,
            timeout_seconds=SECONDS_MAX,
            memory_mib=MEMORY_MIB,
        )
        Schedule(
            self,
            "Schedule",
            deployment=deployment,
            name="history",
            every=every,
            function=own.function,
        )
