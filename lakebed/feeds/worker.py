"""A worker: one process that takes its share of all feeds that are to run.

It holds no state of its own that matters. It may be killed at any moment, and any number of them
may run: leases say who reads what, and the tables' logs say how far it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import (
    ConflictError,
    DeniedError,
    LakebedError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.feed_errors import DefinitionMovedError, OwnerFencedError
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.pipeline import Pipeline, Turn
from lakebed.feeds.restarts import RestartRules, Restarts
from lakebed.model.feeds.definitions import DefinitionKind, FeedFailure
from lakebed.model.feeds.tallies import Tally
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases, WorkerId

BatchT = TypeVar("BatchT")

BEAT_SECONDS = 2.0
DEFINITIONS_SECONDS = 5.0
REST_SECONDS = 0.1
"""Of a worker that found nothing to do."""
DRAINS_MAX = 5
"""Rounds that a pipeline may be refused while it drains: then what it holds is dropped."""

PASSING = (UnavailableError, UnknownOutcomeError, ConflictError, OwnerFencedError)
"""Errors that say nothing of the feed: it is tried again as long as it takes."""


class WantedPipeline(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """A feed that is landed, or a connection, which is to run.

    version: of its definition. Another version is another pipeline.
    open: makes it.
    """

    kind: DefinitionKind
    name: str
    version: int
    restarts: RestartRules
    open: Callable[[], Pipeline[BatchT]]

    @property
    def key(self) -> tuple[str, str, int]:
        """What it is told apart by."""
        return self.kind, self.name, self.version


class FeedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of one pipeline in its beats.

    behind: positions beyond those that were read.
    waiting: bytes that are read and not committed.
    """

    kind: str
    name: str
    version: int
    splits: int
    behind: int
    waiting: int
    commits: int
    tally: Tally
    failing: str = ""


@dataclass
class _Work(Generic[BatchT]):
    """A pipeline at work. again: when it is tried again, of the monotonic clock."""

    wanted: WantedPipeline[BatchT]
    restarts: Restarts
    pipeline: Pipeline[BatchT] | None = None
    again: float = 0.0
    is_failed: bool = False
    failing: str = ""
    commits: int = 0
    tally: Tally = field(default_factory=Tally)


class FeedWorker(Generic[BatchT]):
    """Runs what is wanted.

    wanted: gives all pipelines that are to run. Asked now and then.
    fail: is told of one that cannot go on, for all workers to see.
    """

    def __init__(
        self,
        *,
        worker: WorkerId,
        leases: Leases,
        living: LivingWorkers,
        clock: Clock,
        wanted: Callable[[], Sequence[WantedPipeline[BatchT]]],
        fail: Callable[[WantedPipeline[BatchT], FeedFailure], None],
    ) -> None:
        self._worker = worker
        self._leases = leases
        self._living = living
        self._clock = clock
        self._wanted = wanted
        self._fail = fail
        self._work: dict[tuple[str, str, int], _Work[BatchT]] = {}
        self._beaten: float | None = None
        self._asked: float | None = None

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Work until it is to stop; then commit what is held, and let go of everything."""
        try:
            while not should_stop():
                if not self.turn():
                    self._clock.sleep(REST_SECONDS)
        finally:
            self.close()

    def turn(self) -> bool:
        """Do one turn of everything. Returns whether there was something to do."""
        self._beat()
        self._ask()
        has_done = False
        for work in list(self._work.values()):
            has_done |= self._turn(work)
            self._beat()
        return has_done

    def flush(self) -> None:
        """Commit with the next turn what is held then."""
        for work in self._work.values():
            if work.pipeline is not None:
                work.pipeline.flush()

    def reports(self) -> list[FeedReport]:
        """Return how each pipeline does."""
        return [_report(work) for work in self._work.values()]

    def close(self) -> None:
        """Commit what is held, give up what is owned, and leave."""
        for work in self._work.values():
            self._end(work)
        self._work.clear()
        self._leases.leave(self._worker)

    def _beat(self) -> None:
        """Say that this worker lives, and listen for the others. A store that is away is no reason
        to stop: the others take this worker for dead, and it is fenced."""
        now = self._clock.monotonic()
        if self._beaten is not None and now - self._beaten < BEAT_SECONDS:
            return
        self._beaten = now
        try:
            self._leases.beat(self._worker, msgspec.json.encode(self.reports()))
            self._living.see(self._leases.workers(), now)
            for gone in self._living.forgotten():
                self._leases.leave(gone)
        except (UnavailableError, UnknownOutcomeError) as error:
            events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))

    def _ask(self) -> None:
        """Look what is wanted, begin what is new, and end what is no longer."""
        now = self._clock.monotonic()
        if self._asked is not None and now - self._asked < DEFINITIONS_SECONDS:
            return
        self._asked = now
        try:
            wanted = {one.key: one for one in self._wanted()}
        except (UnavailableError, UnknownOutcomeError) as error:
            events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))
            return
        for key in [key for key in self._work if key not in wanted]:
            self._end(self._work.pop(key))
        for key, one in wanted.items():
            if key not in self._work:
                self._work[key] = _Work(one, Restarts(one.restarts))

    def _turn(self, work: _Work[BatchT]) -> bool:
        """Take a turn of one pipeline. Whatever it meets harms no other."""
        if work.is_failed or self._clock.monotonic() < work.again:
            return False
        try:
            if work.pipeline is None:
                work.pipeline = work.wanted.open()
            turn = work.pipeline.turn()
        except LakebedError as error:
            self._met(work, error)
            return False
        self._note(work, turn)
        return turn.has_read or turn.committed is not None

    def _note(self, work: _Work[BatchT], turn: Turn) -> None:
        if turn.committed is not None:
            work.commits += 1
            work.tally = work.tally.plus(turn.committed.tally)
            work.restarts.worked()
            work.failing = ""

    def _met(self, work: _Work[BatchT], error: LakebedError) -> None:
        """Wait and try again, or say that it failed."""
        if work.pipeline is not None:
            work.pipeline.forget()
        work.failing = f"{error.code()}: {error}"
        if isinstance(error, DefinitionMovedError):  # a newer one is wanted, or will be
            self._asked = None
        is_passing = isinstance(error, PASSING)
        may_pass = is_passing or isinstance(error, DeniedError)
        wait = (
            work.restarts.waits(self._clock.monotonic(), is_counted=not is_passing)
            if may_pass
            else None
        )
        if wait is not None:
            work.again = self._clock.monotonic() + wait
            return
        work.is_failed = True
        events.emit(
            events.FEED_FAILED,
            feed=work.wanted.name,
            kind=work.wanted.kind,
            code=error.code(),
            reason=str(error),
        )
        self._report_failure(work, FeedFailure(error.code(), str(error), work.wanted.version))
        self._end(work)

    def _report_failure(self, work: _Work[BatchT], failure: FeedFailure) -> None:
        try:
            self._fail(work.wanted, failure)
        except (UnavailableError, UnknownOutcomeError, ConflictError):
            work.is_failed = False  # it fails again, and is reported then
            work.again = self._clock.monotonic() + BEAT_SECONDS

    def _end(self, work: _Work[BatchT]) -> None:
        """Commit what is held, as far as that works, then let go."""
        pipeline, work.pipeline = work.pipeline, None
        if pipeline is None:
            return
        try:
            for _ in range(DRAINS_MAX):
                if pipeline.turn(is_draining=True).committed is None:
                    break
        except LakebedError as error:  # it is read again by who comes next
            events.emit(events.FEED_DROPPED, feed=work.wanted.name, code=error.code())
        try:
            pipeline.close()
        except LakebedError as error:  # others take it over when this worker is silent
            events.emit(events.FEED_DROPPED, feed=work.wanted.name, code=error.code())


def _report(work: _Work[BatchT]) -> FeedReport:
    splits, behind, waiting = (0, 0, 0) if work.pipeline is None else work.pipeline.figures()
    return FeedReport(
        kind=work.wanted.kind,
        name=work.wanted.name,
        version=work.wanted.version,
        splits=splits,
        behind=behind,
        waiting=waiting,
        commits=work.commits,
        tally=work.tally,
        failing=work.failing[:500],
    )
