"""Run a compaction job: merge its inputs into one file, replace them. Harmless to run twice
(H19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from lakebed.compaction.rejected_jobs import basis_of
from lakebed.errors import (
    ClaimLostError,
    CorruptError,
    GenerationError,
    IteratorError,
    LakebedError,
    MergeMemoryError,
    NewerFormatError,
    ObjectMissingError,
    ObjectTooLargeError,
    SumTooLargeError,
    TableMissingError,
)
from lakebed.model.disk_errors import out_of_memory
from lakebed.model.files import FilePart, FileReference
from lakebed.model.names import FileName, JobId, PartitionId, file_name, run_name
from lakebed.model.paths import file_path
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema
from lakebed.observe import events, usage
from lakebed.observe.usage import counted_as
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobEvent, JobTracker
from lakebed.ports.sorted_files import FileWritten, SortedFiles
from lakebed.statestore.log_entries.file_changes import ReleaseClaim, ReplaceFiles
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit, SendCommits
from lakebed.statestore.table_state.placing import own_key_range, reached_leaves
from lakebed.statestore.table_state.state import CompactionJob, TableState
from lakebed.tasks.job_reports import JobReports

BatchT = TypeVar("BatchT")


class TakenJob(msgspec.Struct, frozen=True):
    """A job as a run has read it, all from one state."""

    job: CompactionJob
    start: Start
    schema: Schema
    inputs: dict[FileName, FilePart]
    processing: ProcessingPass | None
    value_statistics: bool
    basis: str


FINAL = (CorruptError, SumTooLargeError, ObjectTooLargeError, MergeMemoryError, IteratorError)
"""Errors with which another try would end alike: the job is rejected."""

BUG = "bug: "
"""Prefix of the reason of a run that ended in an error that is none of ours."""
PROBLEM_CHARACTERS_MAX = 200
"""Most characters of such an error's text in the reason; the log has all of it."""


class _UnfitInputsError(Exception):
    """The inputs of a job cannot be merged as they are."""

    def __init__(self, why: LakebedError) -> None:
        super().__init__(str(why))
        self.why = why


class RunCompactionJob(Generic[BatchT]):
    """Merges what a job has claimed. The first run to commit wins; a loser deletes nothing.

    commits: sends them to the committer; None: they are committed directly.
    """

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        clock: Clock,
        tracker: JobTracker,
        commits: SendCommits | None = None,
    ) -> None:
        self._files = files
        self._commits = commits
        self._clock = clock
        self._tracker = tracker
        self._reports = JobReports("compaction", tracker=tracker, clock=clock)

    @counted_as("compaction")
    def run(
        self,
        table: OpenTable,
        job: JobId,
        *,
        rejected: Callable[[LakebedError], None] = lambda _: None,
    ) -> bool:
        """Merge and commit. False: the job had ended already, or ended while this run was merging,
        or cannot be done as it is: an input is damaged, a sum or the output too large, the memory
        of a merge too small, an iterator fails. Then it is reported as rejected and keeps its
        files, so that they are not planned again; `rejected` is reported with the reason.

        A commit that is sent may still be refused; the job's tracker gets a report.

        Raises:
            NewerFormatError: this release cannot read the table; the job is sound and waits.
            CorruptError: the table's log or state is damaged; the message comes back.
            FencedError, ConflictError, UnavailableError, UnknownOutcomeError: run it again.
        """
        try:
            return self._run(table, job, rejected)
        except (LakebedError, MemoryError):
            raise
        except Exception as error:  # the message comes back; who ends dead jobs has the reason
            self._reports.report(table.id, job, "failed", reason=_bug_reason(error))
            raise

    def _run(self, table: OpenTable, job: JobId, rejected: Callable[[LakebedError], None]) -> bool:
        began = self._clock.monotonic()
        try:
            taken = taken_job(table, job)
        except NewerFormatError as error:  # who ends dead jobs must know that this one is sound
            self._reports.report(table.id, job, "failed", reason=f"{error.code()}: {error}")
            raise
        if taken is None:
            self._reports.report_lost(table.id, job, reason="its claim had ended before it began")
            return False
        if self._was_rejected(table, taken):
            return False
        run = table.fresh_run()
        self._reports.report(table.id, job, "started", run=run_name(run))
        try:
            rows = self._merge(table, taken, run, began)
        except (ClaimLostError, GenerationError, TableMissingError) as error:
            self._report_lost(table, job, run, error)
            return False
        except _UnfitInputsError as error:
            reason = f"{error.why.code()}: {error.why}"
            self._reports.report(table.id, job, "rejected", reason=reason, basis=taken.basis)
            events.emit(events.COMPACTION_REJECTED, table=table.name, job=job, reason=reason)
            rejected(error.why)
            return False
        except LakebedError as error:
            reason = f"{error.code()}: {error}"
            self._reports.report(table.id, job, "failed", reason=reason, run=run_name(run))
            raise
        seconds = self._clock.monotonic() - began
        done: JobEvent = "committed" if self._commits is None else "finished"
        self._reports.report(table.id, job, done, rows=rows, seconds=seconds, run=run_name(run))
        if done == "committed":
            events.emit(
                events.COMPACTION_COMMITTED,
                table=table.name,
                job=job,
                files_in_count=len(taken.inputs),
                rows_count=rows,
                seconds=round(seconds, 3),
            )
        return True

    def _was_rejected(self, table: OpenTable, taken: TakenJob) -> bool:
        """Return whether the job was rejected as it is, and was not sent again since. Of one job
        several messages may be on their way."""
        try:
            last = self._tracker.last(table.id, taken.job.id)
        except LakebedError:  # it is a hint: at worst the merge is tried once more
            return False
        return last is not None and last.event == "rejected" and last.basis == taken.basis

    def _merge(self, table: OpenTable, taken: TakenJob, run: int, began: float) -> int:
        job, start, inputs = taken.job.id, taken.start, taken.inputs
        key_range = next(iter(inputs.values())).key_range
        name = file_name(base=start.base, job=job, run=run, sequence=0)
        try:
            written = self._files.merge_into_file(
                taken.schema,
                list(inputs.values()),
                name=name,
                path=file_path(table.id, name),
                key_range=key_range,
                processing=taken.processing,
                value_statistics=taken.value_statistics,
            )
        except FINAL as error:
            raise _UnfitInputsError(error) from error
        except ObjectMissingError as error:
            raise self._missing(table, job, error) from error
        except MemoryError as error:  # nothing was committed
            raise out_of_memory(error) from error
        output = output_reference(written, taken.job.partition)
        change = ReplaceFiles(job, taken.job.partition, tuple(inputs), output)
        transaction, rows = table.own(start, change), output.rows if output else 0
        usage.count("rows_merged", rows)
        if self._commits is None:
            table.head.commit(transaction)
        else:
            seconds = self._clock.monotonic() - began
            requester = CommitRequester("compaction", job, run_name(run), rows, seconds)
            self._commits.run(table.id, [QueuedCommit(transaction, requester)])
        return rows

    def _report_lost(self, table: OpenTable, job: JobId, run: int, error: LakebedError) -> None:
        reason = f"{error.code()}: {error}"
        self._reports.report_lost(table.id, job, reason=reason, run=run_name(run))
        events.emit(events.COMPACTION_LOST, table=table.name, job=job, reason=error.code())

    def _missing(self, table: OpenTable, job: JobId, error: ObjectMissingError) -> Exception:
        """Return the error of a missing input: damage while the job holds its claim; else another
        process was faster."""
        with table.head.reading() as state:
            if state.job(job) is None:
                return ClaimLostError("an input was collected", hint=None, **error.facts)
        return _UnfitInputsError(
            CorruptError("an input of a job is missing", hint=None, **error.facts)
        )


def _bug_reason(error: Exception) -> str:
    first_line = str(error).partition("\n")[0][:PROBLEM_CHARACTERS_MAX]
    return f"{BUG}{type(error).__name__}: {first_line}"


class GiveUpCompactionJob:
    """Ends a claim without a commit: its files are free again. Or leaves it to a job that could not
    be done, and reports that. Safe to repeat."""

    def __init__(self, *, clock: Clock, tracker: JobTracker) -> None:
        self._clock = clock
        self._reports = JobReports("compaction", tracker=tracker, clock=clock)

    def run(self, table: OpenTable, job: JobId, *, reason: str) -> bool:
        """Free the files of a job. False: it held nothing any more."""
        with table.head.reading() as state:
            start = start_of(state)
            if state.job(job) is None:
                return False
        try:
            table.head.commit(table.own(start, ReleaseClaim(job)))
        except (ClaimLostError, GenerationError, TableMissingError):
            return False
        self._reports.report(table.id, job, "given up", reason=reason)
        events.emit(events.COMPACTION_GIVEN_UP, table=table.name, job=job, reason=reason)
        return True

    def reject(self, table: OpenTable, job: JobId, *, reason: str) -> None:
        """Tell that a job cannot be done as it is. It keeps its files, if it still holds any."""
        with table.head.reading() as state:
            held = state.job(job)
            basis = basis_of(state, held) if held else ""
        if held is not None:
            self._reports.report(table.id, job, "rejected", reason=reason, basis=basis)
            events.emit(events.COMPACTION_REJECTED, table=table.name, job=job, reason=reason)


def taken_job(table: OpenTable, job: JobId) -> TakenJob | None:
    """Read a job; None: it holds nothing any more."""
    with table.head.reading() as state:
        held = state.job(job)
        if held is None:
            return None
        processing = table.processing(state, "compaction")
        if processing is not None and processing.processing.ages_groups:
            processing = msgspec.structs.replace(processing, whole=_has_all(state, held))
        return TakenJob(
            job=held,
            start=start_of(state),
            schema=state.schema(),
            inputs=_inputs(table, state.claimed(job), own_key_range(state, held.partition)),
            processing=processing,
            value_statistics=state.settings().value_statistics,
            basis=basis_of(state, held),
        )


def _has_all(state: TableState, job: CompactionJob) -> bool:
    """Return whether a job has all files that lie in its partition: then it has all rows of each
    key. Files that come later are newer by their rows."""
    leaves = reached_leaves(state, job.partition, (EVERYTHING,))
    return all(holder == job.id for leaf, _ in leaves for _, holder in state.references(leaf))


def _inputs(
    table: OpenTable, claimed: list[FileReference], key_range: KeyRange
) -> dict[FileName, FilePart]:
    """Return each claimed file once, with all its rows inside the partition that was claimed."""
    rows: dict[FileName, int] = {}
    for reference in claimed:
        rows[reference.file.name] = rows.get(reference.file.name, 0) + reference.rows
    files = {r.file.name: r.file for r in claimed}
    return {
        name: FilePart(file, file_path(table.id, name), key_range, rows[name])
        for name, file in files.items()
    }


def output_reference(written: FileWritten | None, partition: PartitionId) -> FileReference | None:
    """Return the reference to what a job wrote. partition: where it claimed."""
    if written is None:
        return None
    (part,) = written.key_ranges
    assert part is not None, "a file has rows"
    return FileReference(written.file, partition, part.rows, part.bounds)
