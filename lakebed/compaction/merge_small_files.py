"""Merges small files of full leaves where they are written: a job is claimed and run in one go.

Such a job lives in the state with its claim, as each does (H20), and may be run twice (H19). No
message of it is sent. One whose process died is run by the next one that looks, and is sent as a
job that no worker started by who creates jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.compaction.free_leaves import free_leaves, fullest_first
from lakebed.compaction.plan import plan_compactions
from lakebed.compaction.run_job import RunCompactionJob
from lakebed.config.settings import OUR_STRATEGIES, TableSettings
from lakebed.errors import LakebedError
from lakebed.model.names import MICROS_PER_SECOND, FileName, JobId, PartitionId
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobTracker
from lakebed.statestore.log_entries.file_changes import ClaimFiles
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.file_parts import bytes_of, sizes_of
from lakebed.statestore.table_state.state import CompactionJob, LeafFigures, TableState
from lakebed.tasks.job_reports import JobReports

BatchT = TypeVar("BatchT")

FULL_SHARE = 4
"""A leaf is full from this part of `leaf_files_max` on."""
FULL_FILES_MIN = 2
LEAVES_MAX = 100
"""Most leaves that are looked at, those with most files first."""
LOST_SECONDS = 60
"""Seconds without a word of a job as small as these, after which it is run again."""


class _DueMerges(msgspec.Struct, frozen=True):
    """The merges that are due on a table, all read from one state.

    held: small jobs in its full leaves.
    plan: a leaf and files that may be claimed; None: there are none.
    """

    start: Start
    held: Sequence[CompactionJob] = ()
    plan: tuple[PartitionId, tuple[FileName, ...]] | None = None


class MergeSmallFiles(Generic[BatchT]):
    """Keeps leaves below `leaf_files_max`. Safe to kill anywhere, and to run twice at once.

    Larger files are left to scheduled compaction, and so are tables with a strategy of their own.
    """

    def __init__(
        self, *, run_job: RunCompactionJob[BatchT], tracker: JobTracker, clock: Clock
    ) -> None:
        self._run_job = run_job
        self._tracker = tracker
        self._clock = clock
        self._reports = JobReports("compaction", tracker=tracker, clock=clock)

    def run(self, table: OpenTable, *, bytes_max: int, seconds: float) -> int:
        """Merge small files of leaves that are full, a job at a time. Returns how many jobs were
        committed.

        bytes_max: of all files of a job; a file of more than half of that is not small. A merge
            takes up to five times as much memory.
        seconds: when they are over, no other job is begun.

        Raises:
            NewerFormatError: this release cannot read the table.
            CorruptError: the table's log or state is damaged.
            FencedError, ConflictError, UnavailableError, UnknownOutcomeError: run it again.
        """
        begun, done = self._clock.monotonic(), 0
        while (job := self._next_job(table, bytes_max)) and self._run_job.run(table, job):
            done += 1
            if self._clock.monotonic() - begun >= seconds:
                break
        return done

    def _next_job(self, table: OpenTable, bytes_max: int) -> JobId | None:
        """Return a job to run: one that its process has left, or one that is claimed now."""
        due = _due_merges(table, bytes_max)
        lost = next((job.id for job in due.held if self._is_lost(table, job)), None)
        if lost is not None or due.plan is None:
            return lost
        claim = ClaimFiles(JobId(table.fresh_id()), *due.plan)
        table.head.commit(table.own(due.start, claim))
        self._reports.report(table.id, claim.job, "created")
        return claim.job

    def _is_lost(self, table: OpenTable, job: CompactionJob) -> bool:
        """Return whether nothing was heard of a job for so long. By this machine's clock: if it is
        wrong, the job is run twice, or later."""
        try:
            last = self._tracker.last(table.id, job.id)
        except LakebedError as error:  # reports are hints, and hold up no new job
            events.emit(events.REPORTS_DAMAGED, table=table.name, jobs_count=1, reason=error)
            return False
        if last is not None and last.event == "rejected":
            return False
        heard = job.at if last is None else max(job.at, last.at)
        return self._clock.now() - heard >= LOST_SECONDS * MICROS_PER_SECOND


def _due_merges(table: OpenTable, bytes_max: int) -> _DueMerges:
    with table.head.reading() as state:
        start = start_of(state)
        if state.head().dropped:
            return _DueMerges(start)
        settings = state.settings()
        files_min = max(FULL_FILES_MIN, settings.leaf_files_max // FULL_SHARE)
        full = [leaf for leaf in fullest_first(state)[:LEAVES_MAX] if leaf.files >= files_min]
        held = _small_jobs(state, full, bytes_max)
        return _DueMerges(start, held, _plan(state, full, settings, files_min, bytes_max))


def _small_jobs(
    state: TableState, full: Sequence[LeafFigures], bytes_max: int
) -> list[CompactionJob]:
    """Return the jobs in some leaves that are as small as those that are made here."""
    found: dict[JobId, CompactionJob] = {}
    for leaf in full:
        if not leaf.claimed:
            continue
        for _, id_ in state.references(leaf.partition):
            job = state.job(id_) if id_ is not None and id_ not in found else None
            if job is not None:
                found[job.id] = job
    return [job for job in found.values() if bytes_of(state, state.claimed(job.id)) <= bytes_max]


def _plan(
    state: TableState,
    full: Sequence[LeafFigures],
    settings: TableSettings,
    files_min: int,
    bytes_max: int,
) -> tuple[PartitionId, tuple[FileName, ...]] | None:
    """Return small files of a leaf for one job. They are chosen as scheduled compaction does in a
    leaf that is full: as many at once as there are, and some in any case."""
    if settings.compaction_strategy not in OUR_STRATEGIES:
        return None
    if not full or len(state.jobs()) >= settings.table_jobs_max:
        return None
    sooner = msgspec.structs.replace(settings, leaf_files_max=files_min)
    for leaf in free_leaves(state, full, files_min=lambda _: files_min):
        sizes = dict(
            zip((r.file.name for r in leaf.files), sizes_of(state, leaf.files), strict=True)
        )
        small = [r for r in leaf.files if sizes[r.file.name] <= bytes_max / 2]
        for file_group in plan_compactions(small, sooner):
            files = _fitting(file_group, sizes, bytes_max)
            if len(files) > 1:
                return leaf.partition, files
    return None


def _fitting(
    file_group: tuple[FileName, ...], sizes: Mapping[FileName, float], bytes_max: int
) -> tuple[FileName, ...]:
    """Return as many of the first files of a group as one job may have."""
    size = 0.0
    for count, name in enumerate(file_group):
        size += sizes[name]
        if size > bytes_max:
            return file_group[:count]
    return file_group
