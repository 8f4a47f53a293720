"""A story whose table has a name, and an operator who looks at dead letters."""

import json

from lakebed.backends.memory import MemoryTableRegistry
from lakebed.errors import LakebedError
from lakebed.inspection.dead_letters import DeadLetters
from lakebed.inspection.redrive import Redrive, Redriven
from lakebed.model.names import TableId, TableName
from lakebed.ports.job_queue import Message
from lakebed.statestore.committer import HIDDEN_SECONDS
from lakebed.statestore.head import TableHead
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from tests.dsl.commit_queue_story import TABLE, CommitQueueStory

NAME = "trips"


class DeadLettersStory(CommitQueueStory):
    """A story whose table has a name, and an operator who looks at dead letters."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = registry = MemoryTableRegistry()
        registry.claim(TableName(NAME), TABLE)
        self.letters = DeadLetters(
            queues=self.queues, registry=registry, tracker=self.tracker, clock=self.clock
        )
        head = self.table.another_head()
        self.heads_fail: LakebedError | None = None

        def heads(_: TableId) -> TableHead:
            if self.heads_fail is not None:
                raise self.heads_fail
            return head

        self.service = Redrive(self.letters, queues=self.queues, heads=heads, clock=self.clock)

    def redrive(self, *kinds: str, table: str | None = None) -> Redriven:
        return self.service.run(kinds, table, letters_max=10)

    def given_up(self, kind: str, body: bytes) -> None:
        """Send a message, and receive it until it is a dead letter."""
        self.queues.open(kind).send([Message(body)])
        self.given_dead(kind)

    def given_dead(self, kind: str = COMMIT_QUEUE) -> None:
        queue = self.queues.open(kind)
        for _ in range(4):
            queue.receive(messages_max=10, hidden_seconds=1)
            self.clock.advance(HIDDEN_SECONDS)


def asked(**fields: object) -> bytes:
    return json.dumps(fields).encode()
