"""Commits what is queued, in a process that does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from lakebed.bootstrap.app import App
from lakebed.statestore.committer import Committer


def commit_queued(
    app: App,
    *,
    states_bytes_max: int,
    wait_seconds: float,
    should_stop: Callable[[], bool],
    on_progress: Callable[[int], None],
) -> int:
    """Commit what is queued, as `Committer.run`, with states of tables of its own."""
    with closing(app.open_heads(states_bytes_max)) as heads:
        committer = Committer(
            queue=app.commit_queue,
            objects=app.objects,
            heads=heads,
            tracker=app.tracker,
            clock=app.clock,
        )
        return committer.run(
            wait_seconds=wait_seconds, should_stop=should_stop, on_progress=on_progress
        )
