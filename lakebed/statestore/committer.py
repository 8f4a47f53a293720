"""The committer: takes commits from a queue, puts many into one log entry, answers each by its id.

It makes commits cheaper and nothing else: who commits directly goes on beside it, and any number of
committers may work on one table (H30). A message may come twice, or never; its commits are known by
their ids. A commit that was refused stays refused, however often it is delivered: where time could
undo a refusal, the id enters the log with nothing to do, under another digest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count, islice

import msgspec

from lakebed.errors import (
    ClaimLostError,
    CorruptError,
    DeniedError,
    FencedError,
    GenerationError,
    InvalidError,
    JobIdReusedError,
    LakebedError,
    LogConflictError,
    NewerFormatError,
    ObjectMissingError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.feed_errors import PositionMovedError, WindowSealedError
from lakebed.model.names import MICROS_PER_SECOND, TableId, TransactionNumber, digest_of
from lakebed.observe import events, usage
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import (
    MESSAGES_AT_ONCE_MAX,
    JobQueue,
    Received,
    upgrade_wait_seconds,
)
from lakebed.ports.job_tracker import NOT_COMMITTED, JobEvent, JobReport, JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.queued_commits import (
    CommitRequester,
    QueuedCommit,
    decode_commits,
    read_commits,
)

HIDDEN_SECONDS = 900.0
"""A commit tries for 60 s, and a batch may hold ten tables, each asked up to three times: mostly it
is a few milliseconds. What comes back sooner does no harm."""
RETRY_SECONDS = 30.0
"""Seconds until a message comes back whose commits could not all be answered."""

Answer = TransactionNumber | LakebedError

NO_ANSWER = (
    UnavailableError,
    DeniedError,
    UnknownOutcomeError,
    LogConflictError,
    NewerFormatError,
    CorruptError,
)
"""The commit may still be done, by another try or another committer: its message comes back."""

FINAL = (
    FencedError,
    GenerationError,
    ClaimLostError,
    TableMissingError,
    PositionMovedError,
    WindowSealedError,
)
"""Refusals that no time undoes: floors, generations, revisions of positions and watermarks only
rise, a claim that ended is no more."""


CLAIM_ENDED = (GenerationError, ClaimLostError, TableMissingError)
"""Errors of a compaction job that ended without effect, and needs no action."""


class _Arrived(msgspec.Struct, frozen=True):
    message: Received
    table: TableId
    commits: list[QueuedCommit]
    path: str


class _TableAnswers(msgspec.Struct, frozen=True):
    """The messages that arrived for a table, and the answers to their commits, in order."""

    id: TableId
    arrived: Sequence[_Arrived]
    answers: Sequence[Answer]


class Committer:
    """Commits what is queued. Safe to kill anywhere, and to run several times at once.

    heads: of tables, see `WarmHeads`.
    """

    def __init__(
        self,
        *,
        queue: JobQueue,
        objects: ObjectStore,
        heads: Callable[[TableId], TableHead],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._objects = objects
        self._heads = heads
        self._tracker = tracker
        self._clock = clock

    def run(
        self,
        *,
        batches_max: int | None = None,
        wait_seconds: float = 0.0,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Work until the queue gives nothing, `batches_max` batches were taken, or told to stop.

        on_progress: called after each batch, with how many commits were answered so far.
        Returns how many.
        """
        answered = 0
        for batches in count():
            if should_stop() or batches == batches_max:
                break
            done = self.step(wait_seconds=wait_seconds)
            if done is None:
                break
            answered += done
            on_progress(answered)
        return answered

    def step(self, *, wait_seconds: float = 0.0) -> int | None:
        """Take one batch of messages. Returns how many commits were answered; None: no message."""
        received = self._queue.receive(
            messages_max=MESSAGES_AT_ONCE_MAX,
            hidden_seconds=HIDDEN_SECONDS,
            wait_seconds=wait_seconds,
        )
        if not received:
            return None
        tables: dict[TableId, list[_Arrived]] = {}
        for message in received:
            arrived = self._open(message)
            if arrived is not None:
                tables.setdefault(arrived.table, []).append(arrived)
        answered, bugs = [], list[Exception]()
        for table, some in tables.items():
            try:
                with usage.work("commits", table):
                    answered.append(self._commit(table, some))
            except Exception as bug:  # noqa: BLE001 - its messages come back, others are answered
                bugs.append(bug)
        done = self._report_answers([one for one in answered if one is not None])
        if bugs:
            raise bugs[0]
        return done

    def _open(self, message: Received) -> _Arrived | None:
        """Return what a message brings; None: nothing that can be committed now."""
        try:
            decoded = decode_commits(message.body)
            commits = read_commits(self._objects, decoded).commits()
        except ObjectMissingError as error:  # another committer was done with it, or it was swept
            events.emit(events.COMMITS_GONE, reason=error)
            self._queue.delete(message.receipt)
            return None
        except NewerFormatError as error:
            self._log_failed(error, message)
            self._give_back(message, error)
            return None
        except LakebedError as error:  # it comes back, or ends among the dead letters
            self._log_failed(error, message)
            return None
        return _Arrived(message, decoded.table, commits, decoded.path)

    def _commit(self, table: TableId, arrived: Sequence[_Arrived]) -> _TableAnswers | None:
        """Commit what arrived for a table. None: its state cannot be opened."""
        try:
            head = self._heads(table)
        except LakebedError as error:  # one table's damage does not delay other tables
            self._give_all_back(arrived, error)
            return None
        transactions = [commit.transaction for one in arrived for commit in one.commits]
        return _TableAnswers(table, arrived, answers_of(head, transactions))

    def _report_answers(self, tables: Sequence[_TableAnswers]) -> int:
        """Report all answers together: a request takes as long for many as for one. A message whose
        commits all have answers is deleted then. Returns how many were reported."""
        reports = [self._reports(table) for table in tables]
        try:
            self._tracker.report_many([*chain.from_iterable(reports)])
        except LakebedError as error:  # reports may be lost: the messages come back
            for table in tables:
                self._give_all_back(table.arrived, error)
            return 0
        self._end([message for table in tables for message in self._fully_answered(table)])
        for table, some in zip(tables, reports, strict=True):
            if some:
                first_sent = min(one.message.sent_at for one in table.arrived)
                events.emit(
                    events.COMMITS_ANSWERED,
                    table=table.id,
                    commits_count=len(some),
                    lag_seconds=max(0, self._clock.now() - first_sent) // MICROS_PER_SECOND,
                )
        return sum(map(len, reports))

    def _reports(self, table: _TableAnswers) -> list[JobReport]:
        commits = (commit for one in table.arrived for commit in one.commits)
        return [
            self._report(table.id, commit.requester, answer)
            for commit, answer in zip(commits, table.answers, strict=True)
            if not isinstance(answer, NO_ANSWER)
        ]

    def _fully_answered(self, table: _TableAnswers) -> list[_Arrived]:
        """Return the messages whose commits all have answers; let the others come back."""
        left, ended = iter(table.answers), list[_Arrived]()
        for one in table.arrived:
            own = list(islice(left, len(one.commits)))
            unanswered = [answer for answer in own if isinstance(answer, NO_ANSWER)]
            if unanswered:
                self._log_failed(unanswered[0], one.message)
                self._give_back(one.message, *unanswered)
            else:
                ended.append(one)
        return ended

    def _end(self, arrived: Sequence[_Arrived]) -> None:
        """Delete messages, then their objects: one that is left is swept, a message comes back."""
        paths = [one.path for one in arrived if one.path]
        try:
            if arrived:
                self._queue.delete(*(one.message.receipt for one in arrived))
            if paths:
                self._objects.delete(paths)
        except LakebedError as error:
            self._log_failed(error, arrived[0].message)

    def _give_all_back(self, arrived: Sequence[_Arrived], error: LakebedError) -> None:
        for one in arrived:
            self._log_failed(error, one.message)
            self._give_back(one.message, error)

    def _give_back(self, message: Received, *errors: LakebedError) -> None:
        """Let a message come back: soon, or when this installation may be upgraded."""
        seconds = RETRY_SECONDS
        if any(isinstance(error, NewerFormatError) for error in errors):
            seconds = upgrade_wait_seconds(message.receives)
        try:
            self._queue.extend(message.receipt, hidden_seconds=seconds)
        except LakebedError as error:  # it comes back later
            self._log_failed(error, message)

    def _report(self, table: TableId, requester: CommitRequester, answer: Answer) -> JobReport:
        number, reason = NOT_COMMITTED, ""
        if isinstance(answer, LakebedError):
            reason = f"{answer.code()}: {answer}"
        else:
            number = answer
        return JobReport(
            table=table,
            job=requester.job,
            kind=requester.kind,
            event=_event_of(answer, requester),
            at=self._clock.now(),
            reason=reason,
            rows=requester.rows,
            filtered=requester.filtered,
            seconds=requester.seconds,
            run=requester.run,
            number=number,
        )

    def _log_failed(self, error: LakebedError, message: Received) -> None:
        events.emit(events.JOB_FAILED, code=error.code(), reason=error, receives=message.receives)


def _event_of(answer: Answer, requester: CommitRequester) -> JobEvent:
    if not isinstance(answer, LakebedError):
        return "committed"
    if requester.kind == "compaction" and isinstance(answer, CLAIM_ENDED):
        return "lost"
    return "rejected" if isinstance(answer, InvalidError) else "failed"


def answers_of(head: TableHead, transactions: Sequence[Transaction]) -> list[Answer]:
    """Commit as a group; answer each, and see to it that what is refused stays refused."""
    answers = head.commit_group(transactions)
    refused = [
        n
        for n, answer in enumerate(answers)
        if isinstance(answer, LakebedError) and not isinstance(answer, NO_ANSWER + FINAL)
    ]
    if not refused:
        return answers
    refusals = head.commit_group([refusal_of(transactions[n]) for n in refused])
    landed = []
    for n, refusal in zip(refused, refusals, strict=True):
        if isinstance(refusal, NO_ANSWER):
            answers[n] = refusal
        elif isinstance(refusal, JobIdReusedError):  # its id is in the log: its own, or another's
            landed.append(n)
    again = head.commit_group([transactions[n] for n in landed])
    for n, answer in zip(landed, again, strict=True):
        answers[n] = answer
    return answers


def refusal_of(transaction: Transaction) -> Transaction:
    """Return what takes a commit's id and does nothing: after it the commit cannot land.

    It is forgotten when the floor passes its base, and then the base refuses the commit.
    """
    return msgspec.structs.replace(
        transaction,
        digest=digest_of(b"refused", transaction.digest),
        changes=(),
        positions=(),
        user=False,
    )
