"""Gives checks what they look at: a machine, a lake, and what was deployed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from lakebed.config.deployments.instance_resources import InstanceResources
from lakebed.config.settings import TableSettings
from lakebed.inspection.status import TableStatus
from lakebed.model.names import Micros, TableName
from lakebed.ports.account import Account
from lakebed.ports.examined.deployed_parts import DeployedParts
from lakebed.ports.examined.machine import Machine
from lakebed.ports.job_tracker import JobReport
from lakebed.ports.table_marks import TableMark
from lakebed.ports.table_registry import TableEntry
from lakebed.upgrades.judge_upgrade import UpgradeStatus


class SurveyedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that could be read.

    settings: all of them.
    state_bytes: of its state.
    ahead_seconds: by which its log time is ahead of this machine's clock.
    merged_per_second: rows, by one worker, in compaction jobs of the last day; 0: none was done.
    """

    status: TableStatus
    settings: TableSettings
    state_bytes: int = 0
    ahead_seconds: float = 0.0
    merged_per_second: float = 0.0


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a lake, as far as there was time.

    failed: those that cannot be read, and why.
    unseen: how many were not looked at in time.
    """

    tables: tuple[SurveyedTable, ...]
    failed: Mapping[TableName, str] = {}
    unseen: int = 0


class LookedAtLake(Protocol):
    """A lake that is open, looked at. Each method raises LakebedError where it cannot be told, also
    because the lake cannot be opened."""

    def now(self) -> Micros:
        """Return the lake's time."""
        ...

    def entries(self) -> Sequence[TableEntry]:
        """Return the names of tables."""
        ...

    def survey(self) -> Survey:
        """Return the tables; always the same answer."""
        ...

    def read_an_object(self) -> None:
        """List objects, as readers do."""
        ...

    def read_a_report(self) -> None:
        """Ask the tracker of jobs."""
        ...

    def loads(self) -> Mapping[str, tuple[int, int]]:
        """Return about how many messages and dead letters each queue has."""
        ...

    def damaged_messages(self) -> Sequence[str]:
        """Return what is wrong with queues of a lake in a directory; none of an instance."""
        ...

    def redrive(self, queue: str) -> object:
        """Send dead letters of a queue again, where nothing could be done twice."""
        ...

    def failed_jobs(self, *, since_seconds: float) -> Iterable[tuple[TableName, JobReport]]:
        """Yield jobs that failed or were rejected lately, as far as the tracker remembers."""
        ...

    def marks(self) -> Mapping[TableName, TableMark]:
        """Return the marks by which schedules find work; none in a directory."""
        ...

    def upgrade(self) -> UpgradeStatus:
        """Return where an upgrade stands."""
        ...

    def silent_tasks(self) -> Sequence[str]:
        """Return tasks that have not ended, and were not heard of for an hour."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """All that checks look at.

    resources: as the parameter of an instance tells; raises LakebedError where it cannot be read.
    parts, account: of an instance; raise where there is none.
    """

    is_instance: bool
    machine: Machine
    lake: LookedAtLake
    resources: Callable[[], InstanceResources]
    parts: Callable[[], DeployedParts]
    account: Callable[[], Account]
