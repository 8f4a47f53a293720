"""Where a story about a whole lake takes place: memory, a directory, a deployed instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import pyarrow as pa

from lakebed.ingest.submit_files import Submitted
from lakebed.lake import Lake
from lakebed.table import Table

Work = Literal[
    "batching",
    "ingest",
    "commits",
    "splitting",
    "compaction-creation",
    "compaction",
    "dead-letters",
    "garbage",
    "snapshots",
    "query",
]
"""A kind of work that users' messages or schedules ask for. "compaction" creates jobs, too."""

ROUNDS_MAX = 20
"""How often jobs may lead to more jobs."""


class Stage(Protocol):
    """A lake, who works on it, and its time."""

    @property
    def lake(self) -> Lake:
        """The lake as its users have it."""
        ...

    def put(self, name: str, rows: pa.Table) -> str:
        """Write a file of rows where messages may name it. Returns its name in messages."""
        ...

    def send(self, queue: str, message: Mapping[str, object]) -> None:
        """Send a user's message; it has the group of its id."""
        ...

    def submit(self, table: Table, names: Sequence[str]) -> Submitted:
        """Submit files that were put, as users do."""
        ...

    def work(self, *kinds: Work) -> None:
        """Do work of each kind until none is left. Fails if any of it failed, but on a damaged
        table."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass; no schedule goes off meanwhile."""
        ...

    def waiting(self, queue: str) -> int:
        """Return how many messages a queue has, hidden ones too. NAME-dead: its dead letters."""
        ...

    def lose_messages(self, queue: str) -> None:
        """Let a queue forget its messages."""
        ...

    def give_up_messages(self, queue: str) -> None:
        """Let the messages of a queue be dead letters, for each was received too often."""
        ...

    def damaged(self, table: Table) -> AbstractContextManager[None]:
        """Until the block ends, a table's log ends with a damaged entry."""
        ...

    def result(self, table: Table, job: str) -> pa.Table:
        """Return all rows of a query's result that was written down."""
        ...

    def stored_files(self, table: Table) -> int:
        """Return how many files of rows a table has in its store, referred to or not."""
        ...


class FunctionStage(Stage, Protocol):
    """A stage where functions do the work of queues."""

    def kill_next(self, work: Work) -> None:
        """Let the next function that does this work die before it deletes its messages."""
        ...

    def deliver_twice(self) -> None:
        """Let each batch of messages be delivered a second time, once the first was worked on."""
        ...

    def fire_schedule(self, work: Work, at: str) -> None:
        """Let the trigger of a schedule send what is due, for this time of it, and no more."""
        ...

    def redeliver(self, work: Work) -> None:
        """Let messages come again that a dead function held, and be worked on."""
        ...


def work_until_done(create_jobs: Callable[[], int], run_jobs: Callable[[], None]) -> None:
    """Create jobs and run them until none waits. create_jobs: returns how many wait."""
    for _ in range(ROUNDS_MAX):
        if not create_jobs():
            return
        run_jobs()
    raise AssertionError("jobs lead to more jobs without end")
