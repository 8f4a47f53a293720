"""A worker with an end: it takes what there is, and leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakebed.feeds.worker import FeedWorker

BatchT = TypeVar("BatchT")


class TakingWorker(FeedWorker[BatchT]):
    """Does as `FeedWorker` until all pipelines have taken what there was, or cannot now.

    It ends no sooner than it knows of each other worker whether that lives: one that was killed
    holds its source splits until it was silent for long enough, and a worker that always ended
    before would leave them for ever.
    """

    def take(self, should_stop: Callable[[], bool]) -> None:
        """Take what there is, then commit what is held, and let go. should_stop: asked all the
        time."""
        seen: int | None = None

        def is_over() -> bool:
            nonlocal seen
            if should_stop():
                return True
            if not self._is_idle() or self._undecided():
                return False
            commits = sum(work.commits for work in self._work.values())
            if commits == seen:
                return True
            seen = commits  # what one has landed, another may take now
            self._look_again()
            return False

        self.run(is_over)

    def _is_idle(self) -> bool:
        """Return whether each pipeline has nothing to read or to commit, or waits to be tried
        again."""
        now = self._clock.monotonic()
        return self._asked is not None and all(
            work.again > now or (work.pipeline is not None and work.pipeline.is_idle)
            for work in self._work.values()
        )

    def _undecided(self) -> bool:
        return any(worker != self._worker for worker in self._living.undecided())

    def _look_again(self) -> None:
        for work in self._work.values():
            if work.pipeline is not None:
                work.pipeline.look_again()
