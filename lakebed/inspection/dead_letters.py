"""Dead letters: how many there are, what each says, and why it was given up as far as is known."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from lakebed.config.sent.arrived_files import arrived_file
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    did_you_mean,
)
from lakebed.inspection.leased_dead_letters import leased_dead_letters
from lakebed.model.jobs import (
    BATCHING,
    BULK_IMPORT_QUEUE,
    COMPACTION_QUEUE,
    INGEST_QUEUE,
    QUERY_QUEUE,
    SUBMISSIONS_QUEUE,
    TICK_KINDS,
    decode_message,
    decode_table_message,
)
from lakebed.model.names import MICROS_PER_SECOND, JobId, TableId, TableName, job_id, table_name
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues, Received, message_job
from lakebed.ports.job_tracker import NO_TABLE, JobTracker
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.statestore.queued_commits import COMMIT_QUEUE, decode_commits
from lakebed.tasks.watched_folders import watching_table

OPTIONAL_QUEUES = (INGEST_QUEUE, SUBMISSIONS_QUEUE, QUERY_QUEUE, BULK_IMPORT_QUEUE, BATCHING)
Tables = Mapping[TableId, TableEntry]
"""Tables by their ids."""
LETTERS_COUNTED_MAX = 1_000
"""Most letters of one queue that are read to learn their tables."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The table and the jobs that a message is about, by its own account.

    table: None: it names none that there is.
    called: its name, or id where it has none any more; "": none.
    jobs: whose it is.
    named: by its sender.
    """

    table: TableId | None = None
    called: str = ""
    jobs: tuple[JobId, ...] = ()
    named: bool = True


class TableLetters(msgspec.Struct, frozen=True, kw_only=True):
    """Letters of one table among those that were looked at.

    table: "": they name none.
    """

    table: str
    letters: int
    oldest_seconds: int


class QueueLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters of a queue.

    waiting, dead: about how many messages and letters there are.
    """

    queue: str
    waiting: int
    dead: int
    tables: tuple[TableLetters, ...] = ()


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter.

    age_seconds: since it was sent, or since its death where that is not known.
    job: its sender's name for it, or ours.
    reason: the last report on the job; else, why the letter cannot be read; "":
        nothing is known.
    receives: SQS counts looks, too.
    body: as it is, or "base64:..." if it is no text.
    """

    queue: str
    table: str
    job: str
    age_seconds: int
    receives: int
    reason: str
    body: str


class DeadLetters:
    """Looks at what was given up. Changes nothing."""

    def __init__(
        self,
        *,
        queues: JobQueues,
        registry: TableRegistry,
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._queues = queues
        self._registry = registry
        self._tracker = tracker
        self._clock = clock

    def count(self, kinds: Sequence[str] = ()) -> list[QueueLetters]:
        """Return the queues, or those of some kinds, with their letters by table.

        Raises:
            InvalidError: there is no such queue. UnavailableError.
        """
        tables = self.tables()
        return [self._counted(kind, tables) for kind in self.known(kinds)]

    def show(self, kinds: Sequence[str], table: str | None, *, letters_max: int) -> list[Letter]:
        """Return letters of some queues, none: all, and of one table, None: all. Takes letters out
        of sight, a few at a time, until there are enough; at most LETTERS_COUNTED_MAX of a queue.

        Raises:
            As `count`.
        """
        tables, shown = self.tables(), list[Letter]()
        for kind in self.known(kinds):
            missing = letters_max - len(shown)
            if missing <= 0:
                break
            looked_at_max = missing if table is None else LETTERS_COUNTED_MAX
            with leased_dead_letters(self._queues.open(kind), self._clock) as hand:
                letters = hand.each_once(looked_at_max)
                all_of_queue = (self._letter(kind, letter, tables) for letter in letters)
                found = (one for one in all_of_queue if table is None or one.table == table)
                shown += islice(found, missing)
        return shown

    def known(self, kinds: Sequence[str]) -> list[str]:
        """Return queues by their kinds; none: all. Raises: InvalidError: there is no such."""
        every = {COMPACTION_QUEUE, COMMIT_QUEUE, *self._queues.names()}
        for kind in kinds:
            if kind not in every:
                if kind in OPTIONAL_QUEUES:
                    self._queues.open(kind)  # an instance says that it was deployed without it
                hint = did_you_mean(kind, every, what="queue")
                raise InvalidError("there is no such queue", queue=kind, hint=hint)
        return sorted(set(kinds) or every)

    def loads(self) -> dict[str, tuple[int, int]]:
        """Return how many messages and dead letters each queue of the lake has. About."""
        return {kind: self._queues.open(kind).depth() for kind in self.known(())}

    def tables(self) -> Tables:
        """Return all tables by id."""
        return {entry.id: entry for entry in self._registry.list()}

    def _counted(self, kind: str, tables: Tables) -> QueueLetters:
        queue = self._queues.open(kind)
        waiting, dead = queue.depth()
        ages: dict[str, list[int]] = {}
        with leased_dead_letters(queue, self._clock) as hand:
            letters = list(hand.each_once(LETTERS_COUNTED_MAX if dead else 0))
        for letter in letters:
            try:
                called = said_by(kind, letter, tables).called
            except LakebedError:
                called = ""
            ages.setdefault(called, []).append(self._age(letter))
        by_table = tuple(
            TableLetters(table=called, letters=len(found), oldest_seconds=max(found))
            for called, found in sorted(ages.items())
        )
        return QueueLetters(queue=kind, waiting=waiting, dead=dead, tables=by_table)

    def _letter(self, kind: str, letter: Received, tables: Tables) -> Letter:
        said, reason = Said(), ""
        try:
            said = said_by(kind, letter, tables)
            reason = self._reason(said)
        except (InvalidError, CorruptError, NewerFormatError) as error:
            reason = f"{error.code()}: {error.message}"
        return Letter(
            queue=kind,
            table=said.called,
            job=", ".join(said.jobs),
            age_seconds=self._age(letter),
            receives=letter.receives,
            reason=reason,
            body=_text(letter.body),
        )

    def _reason(self, said: Said) -> str:
        for job in said.jobs:
            for table in (said.table, NO_TABLE):
                report = None if table is None else self._tracker.last(table, job)
                if report is not None and report.reason:
                    return report.reason
        return ""

    def _age(self, letter: Received) -> int:
        return max(0, self._clock.now() - letter.sent_at) // MICROS_PER_SECOND


def said_by(kind: str, letter: Received, tables: Tables) -> Said:
    """Return what a letter of a queue says.

    Raises:
        InvalidError, CorruptError, NewerFormatError: it is not what is sent to that queue.
    """
    if kind == COMMIT_QUEUE:
        commits = decode_commits(letter.body)
        return _of_table(
            commits.table, tables, *(requester.job for requester in commits.requesters)
        )
    if kind == COMPACTION_QUEUE:
        message = decode_message(letter.body)
        return _of_table(message.table, tables, message.job)
    if kind in {BATCHING, *TICK_KINDS}:
        return _of_table(decode_table_message(letter.body).table, tables)
    return _of_users(kind, letter, tables)


def _of_table(table: TableId, tables: Tables, *jobs: JobId) -> Said:
    return Said(table=table, called=tables[table].name if table in tables else table, jobs=jobs)


def _of_users(kind: str, letter: Received, tables: Tables) -> Said:
    file = arrived_file(letter.body) if kind == SUBMISSIONS_QUEUE else None
    if file is not None:
        entry = watching_table(file, list(tables.values()))
        return Said() if entry is None else Said(table=entry.id, called=entry.name)
    try:
        decoded = msgspec.json.decode(letter.body, type=dict[str, object])
        name = table_name(decoded.get("table"))
        if kind == SUBMISSIONS_QUEUE:  # each of its files stands for itself, whoever sends it
            return Said(table=_called(name, tables), called=name)
        named = decoded.get("id") is not None
        job = job_id(decoded["id"]) if named else message_job(letter.body, letter.sent_at)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidError(
            "the message is not one that users send",
            reason=error,
            hint="send a JSON object that names its table, and delete this letter",
        ) from None
    return Said(table=_called(name, tables), called=name, jobs=(job,), named=named)


def _called(name: TableName, tables: Tables) -> TableId | None:
    return next((id_ for id_, entry in tables.items() if entry.name == name), None)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(body).decode()
