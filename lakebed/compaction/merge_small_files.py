"""Merges small files of full leaves where they are written: a job is claimed and run in one go.

Such a job lives in the state with its claim, as each does (H20), and may be run twice (H19). No
message of it is sent. One whose process died is run by the next one that looks, up to five times,
and is sent by who creates jobs as one of which nothing was heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from lakebed.compaction.dead_letters import LASTING, last_failure
from lakebed.compaction.free_leaves import free_leaves, fullest_first
from lakebed.compaction.plan import plan_compactions
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.config.settings import OUR_STRATEGIES, TableSettings
from lakebed.errors import LakebedError, UnknownOutcomeError
from lakebed.model.files import FileReference
from lakebed.model.names import MICROS_PER_SECOND, FileName, JobId, PartitionId, TableId
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobTracker
from lakebed.statestore.log_entries.file_changes import ClaimFiles
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.file_parts import ReferenceSizes
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
RUNS_MAX = 5
"""Most runs of a job that end without a word, or in a bug, before it is rejected: as many as of a
job with a message."""


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

    is_online: whether a table may have new jobs; those that it has are run in any case.
    """

    def __init__(
        self,
        *,
        run_job: RunCompactionJob[BatchT],
        give_up: GiveUpCompactionJob,
        is_online: Callable[[TableId], bool],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._run_job = run_job
        self._give_up = give_up
        self._is_online = is_online
        self._tracker = tracker
        self._clock = clock
        self._reports = JobReports("compaction", tracker=tracker, clock=clock)

    def run(self, table: OpenTable, *, bytes_max: int, seconds: float) -> int:
        """Merge small files of leaves that are full, a job at a time. Returns how many jobs were
        committed.

        bytes_max: of all files of a job; a file of more than half of that is not small. A merge
            takes up to five times as much memory. A caller gives the same each time: a job of more
            is not run again here when its process has died.
        seconds: when they are over, no other job is begun.

        Raises:
            NewerFormatError: this release cannot read the table.
            CorruptError: the table's log or state is damaged.
            FencedError, ConflictError, UnavailableError, UnknownOutcomeError: run it again.
        """
        begun, done = self._clock.monotonic(), 0
        while self._run_next(table, bytes_max):
            done += 1
            if self._clock.monotonic() - begun >= seconds:
                break
        return done

    def _run_next(self, table: OpenTable, bytes_max: int) -> bool:
        """Run a job that its process has left, or one that is claimed now. False: there is none, or
        it was not committed."""
        due = _due_merges(table, bytes_max)
        lost = next((job.id for job in due.held if self._is_to_run(table, job)), None)
        if lost is not None:
            return self._run_job.run(table, lost)
        if due.plan is None or not self._is_online(table.id):
            return False
        claim = ClaimFiles(JobId(table.fresh_id()), *due.plan)
        table.head.commit(table.own(due.start, claim))
        self._reports.report(table.id, claim.job, "created")
        return self._run_claimed(table, claim.job)

    def _run_claimed(self, table: OpenTable, job: JobId) -> bool:
        """Run a job that this process has just claimed. Where it fails, its files are let go."""
        try:
            return self._run_job.run(table, job)
        except UnknownOutcomeError:  # it may be done
            raise
        except LakebedError as error:  # its files are free for who has more luck, or memory
            with suppress(LakebedError):  # else it is run again as one whose process died
                self._give_up.run(table, job, reason=f"{error.code()}: {error}")
            raise

    def _is_to_run(self, table: OpenTable, job: CompactionJob) -> bool:
        """Return whether a job is lost, and may end well. Else it is rejected, as one is whose
        message was received as often."""
        try:
            if not self._is_lost(table, job):
                return False
            history = self._tracker.history(table.id, job.id)
        except LakebedError as error:  # reports are hints, and hold up no new job
            events.emit(events.REPORTS_DAMAGED, table=table.name, jobs_count=1, reason=error)
            return False
        reason = last_failure(history, RUNS_MAX)
        runs = sum(report.event == "started" for report in history)
        if runs < RUNS_MAX or not reason.startswith(LASTING):
            return True
        self._give_up.reject(table, job.id, reason=reason)
        return False

    def _is_lost(self, table: OpenTable, job: CompactionJob) -> bool:
        """Return whether nothing was heard of a job for so long. By this machine's clock: if it is
        wrong, the job is run twice, or later."""
        last = self._tracker.last(table.id, job.id)
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
        sizes = ReferenceSizes(state)
        held = [j for j in _jobs_in(state, full) if sizes.sum_of(state.claimed(j.id)) <= bytes_max]
        return _DueMerges(start, held, _plan(state, full, sizes, files_min, bytes_max))


def _jobs_in(state: TableState, full: Sequence[LeafFigures]) -> list[CompactionJob]:
    """Return the jobs in some leaves."""
    found: dict[JobId, CompactionJob] = {}
    for leaf in full:
        if not leaf.claimed:
            continue
        for _, id_ in state.references(leaf.partition):
            job = state.job(id_) if id_ is not None and id_ not in found else None
            if job is not None:
                found[job.id] = job
    return list(found.values())


def _plan(
    state: TableState,
    full: Sequence[LeafFigures],
    sizes: ReferenceSizes,
    files_min: int,
    bytes_max: int,
) -> tuple[PartitionId, tuple[FileName, ...]] | None:
    """Return small files of a leaf for one job. They are chosen as scheduled compaction does, or,
    where it would choose none, as it does in a leaf that is full: some in any case."""
    settings = state.settings()
    if settings.compaction_strategy not in OUR_STRATEGIES:
        return None
    if not full or len(state.jobs()) >= settings.table_jobs_max:
        return None
    for leaf in free_leaves(state, full, files_min=lambda _: files_min):
        known = {reference.file.name: sizes.of(reference) for reference in leaf.files}
        small = [r for r in leaf.files if known[r.file.name] <= bytes_max / 2]
        for file_group in _file_groups(small, settings, files_min):
            files = _fitting(file_group[: settings.job_files_max], known, bytes_max)
            if len(files) > 1:
                return leaf.partition, files
    return None


def _file_groups(
    small: Sequence[FileReference], settings: TableSettings, files_min: int
) -> Iterator[tuple[FileName, ...]]:
    """Yield files that may be merged: those that cost least for each row first."""
    for full_from in (len(small) + 1, files_min):
        yield from plan_compactions(
            small, msgspec.structs.replace(settings, leaf_files_max=full_from)
        )


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
