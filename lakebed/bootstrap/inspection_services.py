"""Services that inspect and mend a lake: each is loaded and built when a command first asks for it.

Lookups and ingest begin without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.bootstrap.leftovers import Leftovers
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.model.names import TableId, TableName
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.processes import ProcessReports
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.format_gate import FormatGate
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog

if TYPE_CHECKING:
    from lakebed.inspection.dead_letters import DeadLetters
    from lakebed.inspection.fsck import Fsck
    from lakebed.inspection.job_history import JobHistory
    from lakebed.inspection.lake_status import LakeStatus
    from lakebed.inspection.redrive import Redrive
    from lakebed.inspection.repair import Repair
    from lakebed.upgrades.upgrade_lake import UpgradeLake


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionServices:
    """Each returns its service, always the same one.

    fsck: compares the lake's parts with each other.
    repair: mends what `fsck` finds.
    status: says how tables are.
    job_history: finds reports of jobs.
    dead_letters: shows messages that were given up.
    redrive: sends them again.
    upgrade: brings the lake to this release.
    """

    fsck: Callable[[], Fsck]
    repair: Callable[[], Repair]
    status: Callable[[], LakeStatus]
    job_history: Callable[[], JobHistory]
    dead_letters: Callable[[], DeadLetters]
    redrive: Callable[[], Redrive]
    upgrade: Callable[[], UpgradeLake]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedParts:
    """The parts of a lake that the inspection services read.

    bring_back: takes the deletion of an object back, if its versions are kept; None: none are.
    processes, deployed: see `Stores`.
    """

    clock: Clock
    objects: ObjectStore
    logs: TransactionLogs
    registry: TableRegistry
    queues: JobQueues
    tracker: JobTracker
    bring_back: Callable[[str], bool] | None
    processes: ProcessReports
    deployed: str | None
    spill: ProcessFolder
    leftovers: Leftovers
    formats: FormatGate
    heads: WarmHeads
    files: ParquetFiles
    catalog: TableCatalog


def inspection_services(parts: InspectedParts) -> InspectionServices:
    """Return the services, none of which is loaded yet."""

    @cache
    def dead_letters() -> DeadLetters:
        from lakebed.inspection.dead_letters import DeadLetters

        return DeadLetters(
            queues=parts.queues, registry=parts.registry, tracker=parts.tracker, clock=parts.clock
        )

    @cache
    def redrive() -> Redrive:
        from lakebed.inspection.redrive import Redrive

        return Redrive(dead_letters(), queues=parts.queues, heads=parts.heads, clock=parts.clock)

    @cache
    def status() -> LakeStatus:
        from lakebed.inspection.lake_status import LakeStatus

        return LakeStatus(
            entries=parts.catalog.entries,
            opened=parts.catalog.opened,
            tracker=parts.tracker,
            snapshots=parts.heads.snapshots,
            queue_loads=dead_letters().loads,
        )

    @cache
    def job_history() -> JobHistory:
        from lakebed.inspection.job_history import JobHistory

        return JobHistory(tracker=parts.tracker, clock=parts.clock)

    return InspectionServices(
        fsck=cache(lambda: _fsck(parts)),
        repair=cache(lambda: _repair(parts)),
        status=status,
        job_history=job_history,
        dead_letters=dead_letters,
        redrive=redrive,
        upgrade=cache(lambda: _upgrade(parts)),
    )


def _fsck(parts: InspectedParts) -> Fsck:
    from lakebed.inspection.fsck import Fsck

    return Fsck(
        registry=parts.registry,
        logs=parts.logs,
        objects=parts.objects,
        files=parts.files,
        heads=parts.heads,
        clock=parts.clock,
        leftovers=parts.leftovers.find,
    )


def _repair(parts: InspectedParts) -> Repair:
    from lakebed.inspection.repair import Remedies, Repair

    def rebuild_cache(table: TableId) -> int:
        parts.leftovers.require_alone(parts.spill)
        parts.heads.rebuild(table)
        return 1

    def set_time_back(name: TableName) -> int:
        head = parts.catalog.find(name).head
        head.follow()
        return int(head.record_time(back=True))

    delete_objects = DeleteTableObjects(objects=parts.objects)
    sweep = SweepObjects(objects=parts.objects)
    return Repair(
        registry=parts.registry,
        logs=parts.logs,
        objects=parts.objects,
        heads=parts.heads,
        remedies=Remedies(
            rebuild_cache=rebuild_cache,
            sweep_objects=lambda name: sweep.run(parts.catalog.find(name)),
            sweep_leftovers=parts.leftovers.sweep,
            delete_objects=delete_objects.run,
            set_time_back=set_time_back,
            bring_back=parts.bring_back,
        ),
        formats=parts.formats,
    )


def _upgrade(parts: InspectedParts) -> UpgradeLake:
    from lakebed.upgrades.upgrade_lake import UpgradeLake

    return UpgradeLake(
        registry=parts.registry,
        processes=parts.processes,
        clock=parts.clock,
        deployed=parts.deployed,
    )
