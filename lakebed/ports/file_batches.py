"""The door to files that wait to be ingested, and to the batches that they become.

Files of a table wait until they are planned into its next batch. Batches are numbered; one at a
time is open. What a batch holds never changes; what became of it is in the table's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from lakebed.errors import ConflictError, InvalidError
from lakebed.model.names import JobId, Micros, RequestDigest, TableId, digest_of

BatchTarget = Literal["ingest", "bulk-import"]

NAME_BYTES_MAX = 2_048
LIST_BYTES_MAX = 360_000
"""Most bytes of a batch's list of files, with the reasons for which they may be refused: a batch is
one item of DynamoDB, which has 400 KB."""
REASON_BYTES_MAX = 200
FILE_BYTES = REASON_BYTES_MAX + 64
"""Bytes of a file in a batch's list, besides its name and its version."""
BATCHES_MAX = 100
"""Most batches on a page, unless the caller wants fewer."""


class SubmittedFile(msgspec.Struct, frozen=True):
    """A file as it was when it was submitted.

    version: another one when the file was changed, such as an ETag.
    size: in bytes.
    seen: when it was first submitted as it is, in microseconds of the epoch.
    """

    name: str
    size: int
    version: str
    seen: Micros

    @property
    def digest(self) -> RequestDigest:
        """Stands for the file as it is: for its name and its version."""
        return digest_of(self.name.encode(), self.version.encode())

    @property
    def list_bytes(self) -> int:
        """Return how many bytes of a batch's list it takes."""
        return len(self.name.encode()) + len(self.version.encode()) + FILE_BYTES


class Refusal(msgspec.Struct, frozen=True):
    """A file of a batch that its job leaves out, and why.

    at: its index among the files of the batch.
    """

    at: int
    reason: str


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Files that one job takes in.

    planned: when, in microseconds of the epoch.
    sends: how often its job was sent.
    sent: when last.
    refused: files that were left out so far, in the order in which that was found.
    """

    number: int
    files: tuple[SubmittedFile, ...]
    target: BatchTarget
    planned: Micros
    sends: int = 0
    sent: Micros = Micros(0)
    refused: tuple[Refusal, ...] = ()

    @property
    def bytes(self) -> int:
        """Return the size of all files, in bytes."""
        return sum(file.size for file in self.files)

    def left(self, refused_count: int | None = None) -> tuple[SubmittedFile, ...]:
        """Return the files that are not among the first refusals. None: not among any."""
        out = {one.at for one in self.refused[:refused_count]}
        return tuple(file for at, file in enumerate(self.files) if at not in out)


class BatchHead(NamedTuple):
    """The progress of the batches of a table, in numbers of batches.

    planned: the last one. More than `closed`: it is open.
    closed: the last one whose job was sent.
    ended: up to which all are at an end.
    """

    planned: int = 0
    closed: int = 0
    ended: int = 0


class SubmitCounts(NamedTuple):
    """The counts of submitted files, by what became of them.

    added: they wait now.
    doubles: they wait already, or were taken into a batch, as they are.
    """

    added: int = 0
    doubles: int = 0


class FileBatches(Protocol):
    """Files that wait, and batches. Reading is strongly consistent.

    Every implementation passes `tests/contracts/batches/test_file_batches.py`.

    Any of its methods raises UnavailableError when the store is busy; one that writes raises
    UnknownOutcomeError when no answer came: call it again.
    """

    def submit(self, table: TableId, files: Sequence[SubmittedFile]) -> SubmitCounts:
        """Let files wait, each by itself: one that waits as it is, or was taken as it is and is
        still remembered when it is seen, is a double. Another version of a file is another one."""
        ...

    def pending(self, table: TableId, *, files_max: int) -> list[SubmittedFile]:
        """Return files that wait, the oldest first: all, or `files_max` of them that may not be the
        oldest."""
        ...

    def tables(self) -> list[TableId]:
        """Return the tables with files that wait, or batches that have not ended; perhaps more."""
        ...

    def rest(self, table: TableId) -> None:
        """Take a table off that list, if it has none of these."""
        ...

    def head(self, table: TableId) -> BatchHead:
        """Return how far a table's batches are."""
        ...

    def plan(self, table: TableId, batch: Batch, head: BatchHead) -> None:
        """Put the next batch, which is open until `finish`. Numbers may be left out.

        Raises:
            ConflictError: the head is another one by now, perhaps by an earlier try of this call.
        """
        ...

    def take(self, table: TableId, batch: Batch, *, until: Micros) -> None:
        """Remember the files of a batch as taken, but for those that a later batch took."""
        ...

    def remove(self, table: TableId, batch: Batch) -> None:
        """Let the files of a batch wait no more. Other versions of them go on to wait, and files
        that were submitted again since, for they had been set free."""
        ...

    def finish(self, table: TableId, number: int, *, sent: Micros) -> None:
        """Close the open batch: its job was sent. Of another batch it does nothing."""
        ...

    def sent_again(self, table: TableId, number: int, *, sends: int, sent: Micros) -> None:
        """Tell that a job was sent again, `sends` times by now. A lower count does nothing."""
        ...

    def refuse(
        self, table: TableId, number: int, refused: Sequence[Refusal], *, known: int
    ) -> None:
        """Leave more files out of a batch.

        Raises:
            ConflictError: there are not `known` refusals any more, perhaps by an earlier try.
        """
        ...

    def end(self, table: TableId, number: int, *, free: Sequence[SubmittedFile]) -> None:
        """Tell that a batch is at an end, and all before it. free: files of it that may be
        submitted again as they are, unless a later batch took them."""
        ...

    def batch(self, table: TableId, number: int) -> Batch | None:
        """Return a batch; None: there is none, or it is forgotten."""
        ...

    def batches(
        self, table: TableId, *, below: int | None = None, batches_max: int = BATCHES_MAX
    ) -> list[Batch]:
        """Return batches with numbers below one, the newest first. None: from the newest on."""
        ...

    def forget(self, table: TableId, *, before: Micros, now: Micros) -> None:
        """Drop batches that ended and were planned before a time, and what was taken until `now`. A
        store that does so by itself does nothing."""
        ...

    def drop(self, table: TableId) -> None:
        """Drop all that waits and all batches of a table that is gone."""
        ...


def check_files(files: Sequence[SubmittedFile]) -> None:
    """Raise InvalidError for a file whose name cannot be kept."""
    for file in files:
        try:
            size = len(file.name.encode())
        except UnicodeEncodeError:
            size = 0
        if not 0 < size <= NAME_BYTES_MAX or not file.name.isprintable():
            hint = f"rename it: 1 to {NAME_BYTES_MAX} bytes of printable text"
            raise InvalidError(
                "a file's name cannot be kept", file=ascii(file.name)[:80], hint=hint
            )


def check_batch(batch: Batch, head: BatchHead) -> None:
    """Raise an error for a batch that does not follow on a head, or is too large."""
    if head.planned != head.closed or batch.number <= head.planned:
        raise ConflictError("another batch is open", planned=head.planned, closed=head.closed)
    size = sum(file.list_bytes for file in batch.files)
    if not 0 < size <= LIST_BYTES_MAX:
        raise AssertionError(f"the planner bounds lists, got {size} bytes")


def head_after(batch: Batch, head: BatchHead) -> BatchHead:
    """Return the head once a batch was planned. Numbers that were left out are at an end."""
    before = batch.number - 1
    return BatchHead(batch.number, before, before if head.ended == head.planned else head.ended)


def digest_of_batch(job: JobId, files: Sequence[SubmittedFile]) -> RequestDigest:
    """Return what stands for a job that takes these files in, as they were submitted."""
    return digest_of(job.encode(), *(file.digest for file in files))
