"""Where a story about a whole lake takes place: memory, a directory, a deployed instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import pyarrow as pa

from lakebed.lake import Lake
from lakebed.table import Table

Work = Literal["ingest", "commits", "splitting", "compaction", "garbage"]
"""A kind of work that users' messages or schedules ask for."""

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

    def work(self, *kinds: Work) -> None:
        """Do work of each kind until none is left. Fails if any of it failed."""
        ...

    def advance(self, seconds: float) -> None:
        """Let time pass; no schedule goes off meanwhile."""
        ...

    def waiting(self, queue: str) -> int:
        """Return how many messages a queue has, hidden ones too. NAME-dead: its dead letters."""
        ...

    def stored_files(self, table: Table) -> int:
        """Return how many files of rows a table has in its store, referred to or not."""
        ...


def work_until_done(create_jobs: Callable[[], int], run_jobs: Callable[[], None]) -> None:
    """Create jobs and run them until none is created. create_jobs: returns how many."""
    for _ in range(ROUNDS_MAX):
        if not create_jobs():
            return
        run_jobs()
    raise AssertionError("jobs lead to more jobs without end")
