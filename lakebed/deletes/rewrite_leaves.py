"""Deletes rows that are no whole ranges of keys: files that hold such are written again without
them, leaf after leaf.

Each leaf is a job like a compaction: its files are claimed, then replaced (H18, H21). Files that a
job holds already are rewritten as that job: the first to commit wins (H19), and who comes second
looks again. So a delete waits for no job, and what a killed one has claimed is free for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from lakebed.compaction.run_job import (
    GiveUpCompactionJob,
    RunCompactionJob,
    TakenJob,
    output_reference,
    taken_job,
)
from lakebed.deletes.requests import AskDelete, Deleted
from lakebed.errors import (
    ClaimLostError,
    ConflictError,
    GenerationError,
    LakebedError,
    TableBusyError,
    UnknownOutcomeError,
)
from lakebed.model.files import FilePart, FileReference
from lakebed.model.names import FileName, JobId, PartitionId, TransactionNumber, file_name
from lakebed.model.paths import file_path
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.ports.clock import Clock
from lakebed.ports.sorted_files import Selection, SortedFiles
from lakebed.query.asked_files import AskedKeys
from lakebed.query.conditions import keys_only
from lakebed.statestore.log_entries.file_changes import ClaimFiles, ReplaceFiles
from lakebed.statestore.log_entries.range_deletes import DELETE_FORMAT, RecordDeleted
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.kept_versions import horizon_of
from lakebed.statestore.table_state.placing import reached_leaves

BatchT = TypeVar("BatchT")
TRIES_MAX = 12
"""Most tries to rewrite one leaf. Each is lost to another job that made progress."""
WAIT_SECONDS, WAIT_SECONDS_MAX = 0.1, 5.0
"""Seconds to wait before the second try, and at the most before a later one."""


class _AskedLeaf(msgspec.Struct, frozen=True):
    """A leaf in one state.

    own: the range of its keys.
    selection: what is asked for, in the words of its schema.
    met: those of its files that may hold keys that are asked for.
    jobs: those that hold files of it.
    of_job: where each job of the table claimed.
    """

    id: PartitionId
    own: KeyRange
    start: Start
    schema: Schema
    selection: Selection
    parts: tuple[FilePart, ...]
    met: tuple[FilePart, ...]
    jobs: dict[FileName, JobId]
    of_job: dict[JobId, PartitionId]
    processing: ProcessingPass | None
    job_files_max: int

    @property
    def folds(self) -> bool:
        """Return whether rows of several files become one."""
        return self.processing is not None and self.processing.processing.merges_rows


class RewriteLeaves(Generic[BatchT]):
    """Rewrites files without some rows. Safe to kill anywhere, and to call again."""

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        clock: Clock,
        run_job: RunCompactionJob[BatchT],
        give_up: GiveUpCompactionJob,
    ) -> None:
        self._files = files
        self._clock = clock
        self._run_job = run_job
        self._give_up = give_up

    def run(self, table: OpenTable, ask: AskDelete) -> Deleted:
        """Delete all rows that are asked for and were committed when this was called. Rows that are
        committed while it works may go or stay.

        Raises:
            TableBusyError: other jobs were faster again and again; what is gone stays gone, and
                the error tells how many rows: call again.
            CorruptError: a file is damaged. UnavailableError, UnknownOutcomeError: call again.
        """
        with table.head.reading() as state:
            schema = state.schema()
            asked = AskedKeys(schema, ask(schema).reached)
            number = state.head().number
            key_ranges = [
                own
                for leaf, own in reached_leaves(state, state.head().root, asked.keys)
                if asked.may_be_in(own) and state.file_count(leaf)
            ]
        rows = 0
        for key_range in key_ranges:
            for gone, at in self._rewritten(table, key_range, ask, rows):
                rows, number = rows + gone, max(number, at)
        return Deleted(rows=rows, number=number)

    def _rewritten(
        self, table: OpenTable, key_range: KeyRange, ask: AskDelete, rows: int
    ) -> Iterator[tuple[int, TransactionNumber]]:
        """Rewrite what lies in a key range, on whatever leaves by now. Yields how many rows each
        entry took away, and its number: or that of a state in which none were left."""
        wait = WAIT_SECONDS
        for tried in range(1, TRIES_MAX + 1):
            try:
                for leaf in self._leaves(table, key_range, ask):
                    yield 0, leaf.start.base  # another delete may have been here
                    for done in self._rewrite(table, leaf, ask):
                        rows += done[0]
                        yield done
            except ConflictError as error:
                if tried == TRIES_MAX:
                    hint = "call again: what is gone stays gone"
                    raise TableBusyError(
                        "other jobs were faster on a leaf", deleted=rows, hint=hint
                    ) from error
                self._clock.sleep(wait)
                wait = min(2 * wait, WAIT_SECONDS_MAX)
            else:
                return

    def _leaves(self, table: OpenTable, key_range: KeyRange, ask: AskDelete) -> list[_AskedLeaf]:
        with table.head.reading() as state:
            state.require_table()
            schema = state.schema()
            selection = ask(schema)
            asked = AskedKeys(schema, selection.reached)
            of_job = {job.id: job.partition for job in state.jobs()}
            found = []
            for leaf, own in reached_leaves(state, state.head().root, (key_range,)):
                references = state.references(leaf)
                met = (r for r, _ in references if asked.may_be_in(r.bounds.as_range().meets(own)))
                found.append(
                    _AskedLeaf(
                        id=leaf,
                        own=own,
                        start=start_of(state),
                        schema=schema,
                        selection=selection,
                        parts=tuple(table.part(r, own) for r, _ in references),
                        met=tuple(table.part(r, own) for r in met),
                        jobs={r.file.name: job for r, job in references if job is not None},
                        of_job=of_job,
                        processing=table.shown_until_gone(state),
                        job_files_max=state.settings().job_files_max,
                    )
                )
            return found

    def _rewrite(
        self, table: OpenTable, leaf: _AskedLeaf, ask: AskDelete
    ) -> Iterator[tuple[int, TransactionNumber]]:
        """Rewrite the files of a leaf that hold rows of a selection.

        Raises:
            ConflictError: another job was faster: look again.
        """
        if leaf.folds:
            yield from self._rewrite_whole(table, leaf, ask)
            return
        names = [part.file.name for part in leaf.met if self._holds_some(leaf, [part])]
        for job in dict.fromkeys(leaf.jobs[name] for name in names if name in leaf.jobs):
            yield self._run(table, job, ask)
        free = [name for name in names if name not in leaf.jobs]
        for at in range(0, len(free), leaf.job_files_max):
            yield self._run_claimed(table, leaf, free[at : at + leaf.job_files_max], ask)

    def _rewrite_whole(
        self, table: OpenTable, leaf: _AskedLeaf, ask: AskDelete
    ) -> Iterator[tuple[int, TransactionNumber]]:
        """Rewrite a leaf whose rows fold: only all files together say what a row is (H41)."""
        if not self._holds_some(leaf, leaf.met):
            return
        jobs = set(leaf.jobs.values())
        is_held_by_one = len(jobs) == 1 and len(leaf.jobs) == len(leaf.parts)
        if not jobs:
            names = [part.file.name for part in leaf.parts]
            yield self._run_claimed(table, leaf, names, ask)
        elif is_held_by_one and leaf.of_job[next(iter(jobs))] == leaf.id:
            yield self._run(table, jobs.pop(), ask)
        else:
            for job in sorted(jobs):
                self._run_job.run(table, job)
            raise ConflictError("jobs held parts of a leaf", partition=leaf.id)

    def _holds_some(self, leaf: _AskedLeaf, parts: Sequence[FilePart]) -> bool:
        """Return whether queries would give some row of these files."""
        condition = keys_only(leaf.schema, leaf.selection)
        batches = self._files.merge(leaf.schema, parts, condition, leaf.processing)
        return any(map(self._files.rows, batches))

    def _run_claimed(
        self, table: OpenTable, leaf: _AskedLeaf, names: Sequence[FileName], ask: AskDelete
    ) -> tuple[int, TransactionNumber]:
        """Claim files, and rewrite them."""
        job = JobId(f"delete-{table.fresh_id()}")
        table.head.commit(table.own(leaf.start, ClaimFiles(job, leaf.id, tuple(names))))
        try:
            return self._run(table, job, ask)
        except (ClaimLostError, GenerationError, UnknownOutcomeError):
            raise
        except LakebedError as error:
            with suppress(LakebedError):  # else a compaction does what the job holds
                self._give_up.run(table, job, reason=f"{error.code()}: {error}")
            raise

    def _run(self, table: OpenTable, job: JobId, ask: AskDelete) -> tuple[int, TransactionNumber]:
        """Merge what a job holds, without rows that are asked for, and replace it. Returns how many
        rows are gone, and since which entry."""
        taken = taken_job(table, job)
        if taken is None:
            raise ClaimLostError("another run of the job finished first", job=job)
        selection, run = ask(taken.schema), table.fresh_run()
        merged = self._merged(taken, None)
        left = self._files.without(taken.schema, merged, selection, taken.processing)
        output = self._written(table, taken, run, left, sequence=0)
        reached = self._merged(taken, Selection(selection.reached))
        gone = self._files.left_out(taken.schema, reached, selection, taken.processing)
        deleted = self._written(table, taken, run, gone, sequence=1)
        change = ReplaceFiles(job, taken.job.partition, tuple(taken.inputs), output)
        number = table.head.commit(table.own(taken.start, change, *_recorded(table, deleted)))
        return 0 if deleted is None else deleted.rows, number

    def _merged(self, taken: TakenJob, reached: Selection | None) -> Iterator[BatchT]:
        parts = list(taken.inputs.values())
        return self._files.merge(taken.schema, parts, reached, taken.processing)

    def _written(
        self, table: OpenTable, taken: TakenJob, run: int, rows: Iterable[BatchT], *, sequence: int
    ) -> FileReference | None:
        job, partition = taken.job.id, taken.job.partition
        name = file_name(base=taken.start.base, job=job, run=run, sequence=sequence)
        parts = taken.inputs.values()
        written = self._files.write(
            taken.schema,
            rows,
            name=name,
            path=file_path(table.id, name),
            key_ranges=[next(iter(parts)).key_range],
            job_rows=sum(part.rows for part in parts),
            value_statistics=taken.value_statistics,
        )
        return output_reference(written, partition)


def _recorded(table: OpenTable, deleted: FileReference | None) -> Iterator[RecordDeleted]:
    """Yield what tells followers of the rows that are gone (H42), where the lake allows it. A table
    with a horizon may have followers: there it does, whatever this process last read of that."""
    if deleted is None:
        return
    with table.head.reading() as state:
        may_be_followed = horizon_of(state) is not None
    if may_be_followed or table.head.formats().entry >= DELETE_FORMAT:
        yield RecordDeleted(deleted.file, deleted.rows)
