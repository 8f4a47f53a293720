"""Frees the claims of what reached the dead letters, by a transaction: its files can be compacted
again.

A run that finishes late finds its claim gone: it is refused, and what it wrote is swept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lakebed.compaction.run_job import BUG, GiveUpCompactionJob
from lakebed.errors import InvalidError, LakebedError, NewerFormatError, OutOfMemoryError
from lakebed.model.jobs import CompactionMessage, decode_message
from lakebed.model.names import JobId, TableId
from lakebed.observe import events
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import JobReport, JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.statestore.log_entries.file_changes import ReplaceFiles
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import decode_commits, read_commits

OUTDATED = f"{NewerFormatError.code()}: "
"""No task could read what such a job needs: nothing is wrong with it. It keeps its files and is
sent again, as a job that no worker started."""

OUT_OF_MEMORY = f"{OutOfMemoryError.code()}: "
LASTING = (OUT_OF_MEMORY, BUG)
"""Another job of the same files would end alike: this one keeps them."""

JOB_LETTERS_MAX = 1_000
COMMIT_LETTERS_MAX = 100
"""Most letters of a queue that one run looks at, so that letters which stay hide no later ones. A
queue that hides what was looked at gives fewer, and others the next time. Letters of commits are
large, so these are few."""


class GiveUpDeadJobs:
    """Ends the claims of compaction jobs whose messages, or whose commits, were given up.

    find_table: None for a table that was dropped: the job went with it. Safe to kill anywhere.
    """

    def __init__(
        self,
        *,
        jobs: JobQueue,
        commits: JobQueue,
        objects: ObjectStore,
        find_table: Callable[[TableId], OpenTable | None],
        give_up: GiveUpCompactionJob,
        tracker: JobTracker,
    ) -> None:
        self._jobs = jobs
        self._commits = commits
        self._objects = objects
        self._find_table = find_table
        self._give_up = give_up
        self._tracker = tracker

    def run(self) -> int:
        """Give up what the letters of each queue are about. Returns how many claims ended. A bug
        that one of them meets is raised in the end."""
        ended = 0
        failing, bugs = set[TableId](), list[Exception]()
        jobs = self._jobs.dead_letters(messages_max=JOB_LETTERS_MAX)
        commits = self._commits.dead_letters(messages_max=COMMIT_LETTERS_MAX)
        for end in (
            *(partial(self._end_job, letter, failing) for letter in jobs),
            *(partial(self._end_commits, letter) for letter in commits),
        ):
            try:
                ended += end()
            except Exception as bug:  # noqa: BLE001 - one letter hides no other
                bugs.append(bug)
        if bugs:
            raise bugs[0]
        return ended

    def _end_job(self, letter: Received, failing: set[TableId]) -> int:
        """Free what the job of a message holds. The letter says nothing else: it goes.

        failing: tables whose letters are left for the next run, all with the first one.
        """
        try:
            message = decode_message(letter.body)
        except InvalidError as error:  # it names no job
            events.emit(events.JOB_FAILED, code=error.code(), reason=error)
            self._jobs.delete(letter.receipt)
            return 0
        except LakebedError as error:
            events.emit(events.JOB_FAILED, code=error.code(), reason=error)
            return 0
        if message.table in failing:
            return 0
        try:
            ended = self._end(message, letter)
        except LakebedError as error:  # not now: the next run finds the letter again
            events.emit(events.JOB_FAILED, code=error.code(), reason=error)
            failing.add(message.table)
            return 0
        self._jobs.delete(letter.receipt)
        return ended

    def _end(self, message: CompactionMessage, letter: Received) -> int:
        history = self._tracker.history(message.table, message.job)
        reason = last_failure(history, letter.receives)
        if reason.startswith(LASTING):
            self._reject(message, reason)
        elif not reason.startswith(OUTDATED):
            return self._free(message.table, [message.job], letter)
        return 0

    def _end_commits(self, letter: Received) -> int:
        """Free what the jobs of queued commits hold. Other commits are for people to send again."""
        try:
            message = decode_commits(letter.body)
            commits = read_commits(self._objects, message).commits()
            jobs = [commit.requester.job for commit in commits if _replaces(commit.transaction)]
            ended = self._free(message.table, jobs, letter)
        except LakebedError as error:
            events.emit(events.JOB_FAILED, code=error.code(), reason=error)
            return 0
        if len(jobs) == len(commits):
            self._commits.delete(letter.receipt)
        return ended

    def _reject(self, message: CompactionMessage, reason: str) -> None:
        table = self._find_table(message.table)
        if table is not None:
            self._give_up.reject(table, message.job, reason=reason)

    def _free(self, id_: TableId, jobs: Sequence[JobId], letter: Received) -> int:
        table = self._find_table(id_)
        if table is None:
            return 0
        reason = f"its message was received {letter.receives} times"
        return sum(self._give_up.run(table, job, reason=reason) for job in jobs)


def last_failure(history: Sequence[JobReport], receives: int) -> str:
    """Return why the last run of a job failed; "": its reports do not say. One that begins with a
    prefix of `LASTING` would be that of another job of the same files, too.

    receives: how often the job was to be run. A run that the kernel or ECS kills for memory reports
        nothing after its start: so it was if each ended so.
    """
    killed = 0
    for report in reversed(history):
        if report.event == "started":
            killed += 1
        elif report.event not in ("created", "sent"):
            break
    if killed and killed >= receives:
        return (
            f"{OUT_OF_MEMORY}each of {killed} runs was stopped before it could report an end, as a "
            "task is that needs more memory than it has"
        )
    return history[-1].reason if history else ""


def _replaces(transaction: Transaction) -> bool:
    return any(isinstance(change, ReplaceFiles) for change in transaction.changes)
