"""Stories about a table with a queue of commits before it, and committers that work on it."""

import random

from lakebed.backends.memory import (
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryObjectStore,
)
from lakebed.model.names import JobId, TableId
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.committer import HIDDEN_SECONDS, Committer
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.queued_commits import (
    COMMIT_QUEUE,
    CommitRequester,
    QueuedCommit,
    SendCommits,
)
from tests.dsl import TableStory

TABLE = TableId("t1")


class CommitQueueStory:
    """A table with a queue of commits before it."""

    def __init__(self, *, body_bytes_max: int = 180_000) -> None:
        self.table = TableStory()
        self.clock = self.table.clock
        self.queues = MemoryJobQueues(self.clock, receives_max=3)
        self.queue = self.queues.open(COMMIT_QUEUE)
        self.tracker = MemoryJobTracker()
        self.objects = MemoryObjectStore(self.clock)
        self.send = SendCommits(
            queue=self.queue,
            objects=self.objects,
            rng=random.Random(1),
            body_bytes_max=body_bytes_max,
        )
        self.committer = self.another_committer()

    def another_committer(self, head: TableHead | None = None) -> Committer:
        own = head or self.table.another_head()
        return Committer(
            queue=self.queue,
            objects=self.objects,
            heads=lambda _: own,
            tracker=self.tracker,
            clock=self.clock,
        )

    def adding(self, name: str, **more: object) -> Transaction:
        change = AddFiles(self.table.new_files("all", **{name: 1}))
        return self.table.transaction(change, id_=name, **more)

    def given_sent(self, *transactions: Transaction) -> None:
        """Send them; each one's job has the name of its id."""
        self.send.run(TABLE, [queued(t) for t in transactions])

    def report_of(self, job: str) -> JobReport:
        report = self.tracker.last(TABLE, JobId(job))
        assert report is not None, f"job {job} has no report"
        return report

    def events(self, *jobs: str) -> list[str]:
        return [self.report_of(job).event for job in jobs]

    def when_messages_come_again(self) -> None:
        self.clock.advance(HIDDEN_SECONDS + 1)


def queued(transaction: Transaction) -> QueuedCommit:
    requester = CommitRequester("ingest", JobId(transaction.id), run="run-1", rows=5, seconds=0.5)
    return QueuedCommit(transaction, requester)
