"""Files that wait, and batches, whose requests are lost, late or unanswered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from lakebed.backends.faulty.registry_faults import RegistryFaults
from lakebed.model.names import Micros, TableId
from lakebed.ports.file_batches import (
    BATCHES_MAX,
    Batch,
    BatchHead,
    FileBatches,
    Refusal,
    SubmitCounts,
    SubmittedFile,
    check_files,
)


class FaultyFileBatches:
    """Files and batches as one submitter, batcher or task meets them."""

    def __init__(self, batches: FileBatches, faults: RegistryFaults) -> None:
        self._batches = batches
        self._faults = faults

    def submit(self, table: TableId, files: Sequence[SubmittedFile]) -> SubmitCounts:
        """Let files wait, perhaps: each is a request of its own."""
        check_files(files)
        counts = [
            self._faults.write("submit", partial(self._batches.submit, table, [file]))
            for file in files
        ]
        return SubmitCounts(*map(sum, zip(*counts, strict=True))) if counts else SubmitCounts()

    def pending(self, table: TableId, *, files_max: int) -> list[SubmittedFile]:
        """Return files that wait."""
        return self._faults.read(lambda: self._batches.pending(table, files_max=files_max))

    def tables(self) -> list[TableId]:
        """Return the tables with something to do."""
        return self._faults.read(self._batches.tables)

    def rest(self, table: TableId) -> None:
        """Take a table off that list, perhaps."""
        self._faults.write("rest", lambda: self._batches.rest(table))

    def head(self, table: TableId) -> BatchHead:
        """Return how far a table's batches are."""
        return self._faults.read(lambda: self._batches.head(table))

    def plan(self, table: TableId, batch: Batch, head: BatchHead) -> None:
        """Put the next batch, perhaps."""
        self._faults.write("plan", lambda: self._batches.plan(table, batch, head))

    def take(self, table: TableId, batch: Batch, *, until: Micros) -> None:
        """Remember the files of a batch as taken, perhaps some."""
        for one in _file_by_file(batch):
            self._faults.write("take", partial(self._batches.take, table, one, until=until))

    def remove(self, table: TableId, batch: Batch) -> None:
        """Let the files of a batch wait no more, perhaps some."""
        for one in _file_by_file(batch):
            self._faults.write("remove", partial(self._batches.remove, table, one))

    def finish(self, table: TableId, number: int, *, sent: Micros) -> None:
        """Close the open batch, perhaps."""
        self._faults.write("finish", lambda: self._batches.finish(table, number, sent=sent))

    def sent_again(self, table: TableId, number: int, *, sends: int, sent: Micros) -> None:
        """Tell that a job was sent again, perhaps."""
        self._faults.write(
            "sent again",
            lambda: self._batches.sent_again(table, number, sends=sends, sent=sent),
        )

    def refuse(
        self, table: TableId, number: int, refused: Sequence[Refusal], *, known: int
    ) -> None:
        """Leave more files out of a batch, perhaps."""
        self._faults.write(
            "refuse", lambda: self._batches.refuse(table, number, refused, known=known)
        )

    def end(self, table: TableId, number: int, *, free: Sequence[SubmittedFile]) -> None:
        """Tell that a batch is at an end, perhaps."""
        self._faults.write("end", lambda: self._batches.end(table, number, free=free))

    def batch(self, table: TableId, number: int) -> Batch | None:
        """Return a batch."""
        return self._faults.read(lambda: self._batches.batch(table, number))

    def batches(
        self, table: TableId, *, below: int | None = None, batches_max: int = BATCHES_MAX
    ) -> list[Batch]:
        """Return batches, the newest first."""
        return self._faults.read(
            lambda: self._batches.batches(table, below=below, batches_max=batches_max)
        )

    def forget(self, table: TableId, *, before: Micros, now: Micros) -> None:
        """Drop old batches, perhaps."""
        self._faults.write("forget", lambda: self._batches.forget(table, before=before, now=now))

    def drop(self, table: TableId) -> None:
        """Drop all of a table, perhaps."""
        self._faults.write("drop", lambda: self._batches.drop(table))


def _file_by_file(batch: Batch) -> Iterator[Batch]:
    """Yield the batch with each of its files alone: some may be done when an error comes."""
    for file in batch.files:
        yield msgspec.structs.replace(batch, files=(file,))
