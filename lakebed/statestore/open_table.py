"""A table in the hands of a service: its head, and transactions that begin where the service
read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.errors import CacheDamagedError
from lakebed.model.files import FilePart, FileReference
from lakebed.model.names import (
    CommitId,
    Generation,
    JobId,
    Micros,
    RequestDigest,
    TableId,
    TableName,
    TransactionNumber,
    digest_of,
)
from lakebed.model.paths import file_path
from lakebed.model.processing import ProcessingPass, Stage
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.time_records import time_without_leap

Read = TypeVar("Read")


class Start(msgspec.Struct, frozen=True):
    """The facts that a worker read before its first effect: base (H11) and generation (H16)."""

    base: TransactionNumber
    generation: Generation


class OpenTable:
    """A table: what services are given instead of names. rng: source of ids."""

    def __init__(
        self, *, id_: TableId, name: TableName, head: TableHead, rng: random.Random
    ) -> None:
        self.id = id_
        self.name = name
        self.head = head
        self._rng = rng

    @property
    def schema(self) -> Schema:
        """Return the table's schema, read anew. Who reads files too takes both from one state: then
        no file is newer than the schema."""
        with self.head.reading() as state:
            return state.schema()

    def settings(self) -> TableSettings:
        """Return the table's settings, read anew."""
        with self.head.reading() as state:
            return state.settings()

    def processing(
        self, state: TableState, stage: Stage, *, at: Micros | None = None
    ) -> ProcessingPass | None:
        """Return what is done with rows; None: nothing. at: the time by which rows are old; None:
        now."""
        processing = state.processing()
        if processing is None:
            return None
        if at is None:
            at = Micros(0) if processing.age_off is None else self._row_time(stage)
        return ProcessingPass(processing, at, stage)

    def shown_until_gone(self, state: TableState) -> ProcessingPass | None:
        """Return what queries do with rows, but for rows that only this machine's clock calls old:
        other machines show them, so a delete must find them. None: nothing is done."""
        return self.processing(state, "query", at=self._row_time("compaction"))

    def _row_time(self, stage: Stage) -> Micros:
        """Return the time by which rows are old: that of this machine's clock, and where they are
        gone for good, no later than log time (H36)."""
        now = self.head.times.now()
        return now if stage == "query" else min(self.head.log_time(), now)

    def due_time(self, is_due: Callable[[Micros], bool]) -> Micros:
        """Return log time, so that what is due by then may be done.

        Where this machine's clock is a leap ahead of it, and something is due by the clock, the log
        is told: else no time would pass on a table without commits (H35).

        Raises:
            ClockAheadError: this machine's clock is more than ten minutes ahead of the store's.
        """
        with self.head.reading() as state:
            times, head = self.head.times, state.head()
            ahead = bool(times.next_time(state).changes) and head.root and not head.dropped
        if ahead and is_due(times.now()):
            self.head.record_time()
        return self.head.log_time()

    def forgetting_time(self, seconds: int, is_due: Callable[[Micros], bool]) -> Micros:
        """Return the log time by which something that lies beside the log is judged to be old: as
        `time_without_leap` says (H35).

        seconds: for so long it is kept. is_due, and raises: as `due_time`.
        """
        log_time = self.due_time(is_due)
        with self.head.reading() as state:
            return time_without_leap(state, log_time, seconds)

    def number_of(self, job: JobId, digest: RequestDigest) -> TransactionNumber | None:
        """Return the log entry in which a user's request was committed; None: it was not.

        Raises:
            JobIdReusedError: the id stands for another request. TableMissingError: it was dropped.
        """
        id_ = CommitId(job)
        with self.head.reading() as state:
            state.require_table()
            return state.landed((id_,)).number_of(id_, digest)

    def fresh_id(self) -> str:
        """Return 128 random bits as text."""
        return f"{self._rng.getrandbits(128):032x}"

    def fresh_run(self) -> int:
        """Return 32 random bits that distinguish one run of a job from another."""
        return self._rng.getrandbits(32)

    def own(self, start: Start, *changes: Change) -> Transaction:
        """Return a transaction of the system's own, under a fresh id."""
        id_ = self.fresh_id()
        return Transaction(
            CommitId(id_), digest_of(id_.encode()), start.base, start.generation, changes
        )

    def of_user(
        self, start: Start, id_: CommitId, digest: RequestDigest, *changes: Change
    ) -> Transaction:
        """Return a transaction under the id that a user gave to the request."""
        return Transaction(id_, digest, start.base, start.generation, changes, user=True)

    def part(self, reference: FileReference, key_range: KeyRange) -> FilePart:
        """Return what to read of a file: its rows inside `key_range`."""
        path = file_path(self.id, reference.file.name)
        return FilePart(reference.file, path, key_range, reference.rows)


def start_of(state: TableState) -> Start:
    """Return where a worker that has read this state begins."""
    head = state.head()
    return Start(head.number, head.generation)


def again_if_damaged(read: Callable[[], Read]) -> Read:
    """Return what is read of a table's state. Where that did not prove itself, the state was made
    anew, and is read once more (H37).

    Raises:
        As `read`.
    """
    try:
        return read()
    except CacheDamagedError:
        return read()
