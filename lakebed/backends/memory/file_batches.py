"""Files that wait, and batches, in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from lakebed.errors import ConflictError
from lakebed.model.names import Micros, RequestDigest, TableId
from lakebed.ports.file_batches import (
    BATCHES_MAX,
    Batch,
    BatchHead,
    Refusal,
    SubmitCounts,
    SubmittedFile,
    check_batch,
    check_files,
    head_after,
)


class _Taken(NamedTuple):
    """A file that is in a batch.

    number: of the batch.
    until: when it is remembered.
    is_free: it may be submitted again.
    """

    number: int
    until: Micros
    is_free: bool = False


NEVER = _Taken(0, Micros(0), is_free=True)


@dataclass
class _OfTable:
    """taken: by digest."""

    head: BatchHead = field(default_factory=BatchHead)
    pending: dict[RequestDigest, SubmittedFile] = field(default_factory=dict)
    taken: dict[RequestDigest, _Taken] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)


class MemoryFileBatches:
    """Files that wait, and batches."""

    def __init__(self) -> None:
        self._tables: dict[TableId, _OfTable] = {}
        self._lock = threading.Lock()

    def submit(self, table: TableId, files: Sequence[SubmittedFile]) -> SubmitCounts:
        """Let files wait."""
        check_files(files)
        added = 0
        with self._lock:
            own = self._of(table)
            for file in files:
                taken = own.taken.get(file.digest, NEVER)
                may_wait = taken.is_free or taken.until <= file.seen
                if may_wait and file.digest not in own.pending:
                    own.pending[file.digest] = file
                    added += 1
        return SubmitCounts(added, len(files) - added)

    def pending(self, table: TableId, *, files_max: int) -> list[SubmittedFile]:
        """Return files that wait."""
        with self._lock:
            found = sorted(self._of(table).pending.values(), key=lambda f: (f.seen, f.name))
        return found[:files_max]

    def tables(self) -> list[TableId]:
        """Return the tables with something to do."""
        with self._lock:
            return sorted(t for t, own in self._tables.items() if own.pending or _is_open(own.head))

    def rest(self, table: TableId) -> None:
        """Nothing: the list is made when it is asked for."""

    def head(self, table: TableId) -> BatchHead:
        """Return how far a table's batches are."""
        with self._lock:
            return self._of(table).head

    def plan(self, table: TableId, batch: Batch, head: BatchHead) -> None:
        """Put the next batch."""
        check_batch(batch, head)
        with self._lock:
            own = self._of(table)
            if own.head[:2] != head[:2]:
                raise ConflictError("another batch was planned", table=table, number=batch.number)
            own.batches[batch.number] = batch
            own.head = head_after(batch, own.head)

    def take(self, table: TableId, batch: Batch, *, until: Micros) -> None:
        """Remember the files of a batch as taken."""
        with self._lock:
            taken = self._of(table).taken
            for file in batch.files:
                if taken.get(file.digest, NEVER).number < batch.number:
                    taken[file.digest] = _Taken(batch.number, until)

    def remove(self, table: TableId, batch: Batch) -> None:
        """Let the files of a batch wait no more."""
        with self._lock:
            pending = self._of(table).pending
            for file in batch.files:
                if pending.get(file.digest) == file:
                    del pending[file.digest]

    def finish(self, table: TableId, number: int, *, sent: Micros) -> None:
        """Close the open batch."""
        with self._lock:
            own = self._of(table)
            if own.head.planned == number == own.head.closed + 1:
                batch = own.batches[number]
                own.batches[number] = msgspec.structs.replace(batch, sends=1, sent=sent)
                own.head = own.head._replace(closed=number)

    def sent_again(self, table: TableId, number: int, *, sends: int, sent: Micros) -> None:
        """Tell that a job was sent again."""
        with self._lock:
            batches = self._of(table).batches
            if number in batches and batches[number].sends < sends:
                batches[number] = msgspec.structs.replace(batches[number], sends=sends, sent=sent)

    def refuse(
        self, table: TableId, number: int, refused: Sequence[Refusal], *, known: int
    ) -> None:
        """Leave more files out of a batch."""
        with self._lock:
            batches = self._of(table).batches
            batch = batches.get(number)
            if batch is None or len(batch.refused) != known:
                raise ConflictError("another run refused files", table=table, number=number)
            every = (*batch.refused, *refused)
            batches[number] = msgspec.structs.replace(batch, refused=every)

    def end(self, table: TableId, number: int, *, free: Sequence[SubmittedFile]) -> None:
        """Tell that a batch is at an end."""
        with self._lock:
            own = self._of(table)
            for file in free:
                taken = own.taken.get(file.digest, NEVER)
                if taken.number == number:
                    own.taken[file.digest] = taken._replace(is_free=True)
            if own.head.ended < number <= own.head.closed:
                own.head = own.head._replace(ended=number)

    def batch(self, table: TableId, number: int) -> Batch | None:
        """Return a batch."""
        with self._lock:
            return self._of(table).batches.get(number)

    def batches(
        self, table: TableId, *, below: int | None = None, batches_max: int = BATCHES_MAX
    ) -> list[Batch]:
        """Return batches, the newest first."""
        with self._lock:
            batches = self._of(table).batches
            numbers = sorted((n for n in batches if below is None or n < below), reverse=True)
            return [batches[number] for number in numbers[:batches_max]]

    def forget(self, table: TableId, *, before: Micros, now: Micros) -> None:
        """Drop old batches, and what is not remembered any more."""
        with self._lock:
            own = self._of(table)
            ended = own.head.ended
            old = [n for n, b in own.batches.items() if n <= ended and b.planned < before]
            for number in old:
                del own.batches[number]
            own.taken = {d: known for d, known in own.taken.items() if known.until > now}

    def drop(self, table: TableId) -> None:
        """Drop all of a table."""
        with self._lock:
            self._tables.pop(table, None)

    def _of(self, table: TableId) -> _OfTable:
        return self._tables.setdefault(table, _OfTable())


def _is_open(head: BatchHead) -> bool:
    return head.planned > head.ended
