"""Very many jobs of one table: few log entries, few requests, and nobody forgotten."""

from collections.abc import Sequence
from itertools import count

import pytest

from lakebed.backends.aws.transaction_logs import BODY_BYTES_MAX
from lakebed.backends.memory import MemoryJobQueues, MemoryJobTracker
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.errors import LakebedError, UnavailableError
from lakebed.model.jobs import COMPACTION_QUEUE, decode_message
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.statestore.answers import Retry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from tests.dsl import TableStory

LEAVES, FILES = 500, 4


class JobCreation:
    """A story about a table of many leaves, each with files to merge. jobs: creates them."""

    def __init__(self) -> None:
        names = count()
        leaves = " | ".join(f"L{n}" + f" | {n:04}" * (n < LEAVES - 1) for n in range(LEAVES))
        self.story = TableStory(leaves)
        files = []
        for n in range(LEAVES):
            new = {f"file-{next(names)}": 10 for _ in range(FILES)}
            files += self.story.new_files(f"L{n}", **new)
        self.story.when_committed(AddFiles(tuple(files)))
        self.first = self.story.state.head().number + 1
        self.queue = MemoryJobQueues(self.story.clock).open(COMPACTION_QUEUE)
        self.tracker = MemoryJobTracker()
        self.jobs = CreateCompactionJobs(
            queue=self.queue,
            tracker=self.tracker,
            clock=self.story.clock,
            strategies=StrategyProcesses(),
        )
        head = self.story.another_head(retry=Retry(seconds_max=0.0))
        self.table = OpenTable(id_=TableId("t"), name=TableName("t"), head=head, rng=self.story.rng)

    def entries(self) -> list[bytes]:
        """Return the claims' entries."""
        return [body for _, body in self.story.log.read_after(TransactionNumber(self.first - 1))]

    def sent(self) -> set[str]:
        """Return the jobs that the queue has, each once."""
        found = []
        while more := self.queue.receive(messages_max=10, hidden_seconds=900):
            found += [decode_message(message.body).job for message in more]
        assert len(set(found)) == len(found)
        return set(found)

    def claimed(self) -> set[str]:
        """Return the jobs of the state."""
        self.story.head.follow()
        return {job.id for job in self.story.state.jobs()}


def test_claims_of_many_leaves_are_few_entries_that_lie_in_the_log_itself() -> None:
    creation = JobCreation()
    assert creation.jobs.run(creation.table, everything=True) == LEAVES
    sizes = [len(body) for body in creation.entries()]
    assert len(sizes) == 3
    assert max(sizes) < BODY_BYTES_MAX < sum(sizes)
    assert creation.sent() == creation.claimed()
    assert all(creation.tracker.last(TableId("t"), job) for job in creation.claimed())


def test_what_was_claimed_is_sent_though_claiming_fails_later_on() -> None:
    creation = JobCreation()
    creation.story.log.appends = ["good", "throttled", "throttled"]
    with pytest.raises(UnavailableError):
        creation.jobs.run(creation.table, everything=True)
    claimed = creation.claimed()
    assert 0 < len(claimed) < LEAVES
    assert creation.sent() == claimed


def test_a_claim_without_an_answer_does_not_keep_its_neighbours_from_being_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    creation = JobCreation()
    commit = creation.table.head.commit_group

    def without_one(group: Sequence[Transaction]) -> list[TransactionNumber | LakebedError]:
        return [*commit(group[:-1]), UnavailableError("reading a log was throttled")]

    monkeypatch.setattr(creation.table.head, "commit_group", without_one)
    with pytest.raises(UnavailableError):
        creation.jobs.run(creation.table, everything=True)
    claimed = creation.claimed()
    assert claimed
    assert creation.sent() == claimed
