"""The job of a batch: its files become rows with one commit, but for those that cannot be read.

A file that was changed since it was submitted, is gone, or cannot be taken in is refused: that is
written down with the batch, and the job begins again without it. Two runs that leave out other
files have other digests, and the log takes one (protocol H5): what it has is what was taken in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from lakebed.errors import ConflictError, InvalidError, JobIdReusedError, TableMissingError
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import BatchMessage, batch_job
from lakebed.model.names import JobId, RequestDigest, TableId
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.file_batches import (
    REASON_BYTES_MAX,
    Batch,
    FileBatches,
    Refusal,
    SubmittedFile,
    digest_of_batch,
)
from lakebed.ports.job_tracker import NOT_COMMITTED
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.user_jobs import Ingested

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)

TRIES_MAX = 20
"""Files of bad content that one run finds: each begins the job again. Then its message waits."""


class SubmittedRows(Protocol[BatchT_co]):
    """Rows of submitted files."""

    def rows(self, file: SubmittedFile, schema: Schema) -> Iterator[BatchT_co]:
        """Yield the rows of a file as it was submitted.

        Raises:
            InvalidError: it was changed, is gone, or does not fit. UnavailableError: ask again.
        """
        ...

    def problem(self, file: SubmittedFile) -> str:
        """Return why a file is not there as it was submitted; "": it is. Raises:
        UnavailableError."""
        ...


class BatchSource(Generic[BatchT]):
    """The rows of what is left of a batch. reading: gets the file whose rows are being taken."""

    def __init__(
        self,
        job: JobId,
        files: Sequence[SubmittedFile],
        schema: Schema,
        rows: SubmittedRows[BatchT],
        reading: list[SubmittedFile],
    ) -> None:
        self._job = job
        self._files = files
        self._rows = rows
        self._reading = reading
        self.schema = schema

    @property
    def digest(self) -> RequestDigest:
        """Stands for the files, as they were submitted."""
        return digest_of_batch(self._job, self._files)

    def batches(self) -> Iterator[BatchT]:
        """Yield the rows, file after file."""
        for file in self._files:
            self._reading[:] = [file]
            yield from self._rows.rows(file, self.schema)
        self._reading.clear()


class RunBatches(Generic[BatchT]):
    """Runs jobs of batches. find_table: by id; None: it was dropped. Safe to run twice, to kill
    anywhere."""

    def __init__(
        self,
        *,
        ingest: IngestRows[BatchT],
        batches: FileBatches,
        find_table: Callable[[TableId], OpenTable | None],
        rows: SubmittedRows[BatchT],
    ) -> None:
        self._ingest = ingest
        self._batches = batches
        self._find_table = find_table
        self._rows = rows

    def run(self, message: BatchMessage) -> Ingested:
        """Do the job of a batch, unless there is nothing to do: it was committed before, perhaps
        without other files, its table was dropped, or the batch is forgotten.

        Raises:
            Errors of `IngestRows.run` but InvalidError: run it again.
        """
        table = self._find_table(message.table_id)
        job = batch_job(message.table_id, message.batch)
        nothing = Ingested(job=job, number=NOT_COMMITTED, repeated=True)
        if table is None:
            return nothing
        for _ in range(TRIES_MAX):
            batch = self._batches.batch(table.id, message.batch)
            if batch is None:
                return nothing
            reading: list[SubmittedFile] = []
            try:
                source = BatchSource(job, batch.left(), table.schema, self._rows, reading)
                return self._ingest.run(table, source, job)
            except (JobIdReusedError, TableMissingError):
                return nothing
            except InvalidError as error:
                self._refuse(table, batch, reading[0] if reading else None, error)
        raise ConflictError(
            "files of a batch are refused one after the other", table=table.name, job=job
        )

    def _refuse(
        self, table: OpenTable, batch: Batch, file: SubmittedFile | None, error: InvalidError
    ) -> None:
        """Leave a file out, with others that are not there any more. None: it is no file's fault,
        so that no file can be taken in."""
        reason = _reason(error)
        if file is None:
            refused = [Refusal(at, _cut(reason)) for at in _left(batch)]
        else:
            refused = [Refusal(batch.files.index(file), _cut(reason))]
            if self._rows.problem(file):  # then perhaps all of a folder
                others = [at for at in _left(batch) if batch.files[at] != file]
                found = ((at, self._rows.problem(batch.files[at])) for at in others)
                refused += [Refusal(at, _cut(problem)) for at, problem in found if problem]
        try:
            self._batches.refuse(table.id, batch.number, refused, known=len(batch.refused))
        except ConflictError:  # another run refused some, or an earlier try did
            return
        events.emit(
            events.FILES_REFUSED,
            table=table.name,
            job=batch_job(table.id, batch.number),
            files_count=len(refused),
            reason=reason,
        )


def _left(batch: Batch) -> list[int]:
    out = {one.at for one in batch.refused}
    return [at for at in range(len(batch.files)) if at not in out]


def _reason(error: InvalidError) -> str:
    """Return what is wrong, without the file's name, which stands beside it."""
    facts = {name: fact for name, fact in error.facts.items() if name not in {"path", "file"}}
    listed = ", ".join(f"{name}={fact}" for name, fact in facts.items())
    text = f"{error.code()}: {error.message}"
    return f"{text} ({listed})" if listed else text


def _cut(reason: str) -> str:
    return reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
