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
from lakebed.feed_errors import DefinitionChangedError, DefinitionMovedError, OwnerFencedError
from lakebed.feeds.living_workers import BEAT_SECONDS, LivingWorkers
from lakebed.feeds.meanwhile import meanwhile
from lakebed.feeds.operating.suspended_pipelines import SuspendedPipelines, end, release
from lakebed.feeds.pacing.elasticity import WorkerLoad, WorkersAsked
from lakebed.feeds.pipeline import Pipeline, Turn
from lakebed.feeds.restarts import BUG, RestartRules, Restarts, failure_of
from lakebed.model.feeds.definitions import DefinitionKind, FeedFailure
from lakebed.model.feeds.tallies import Tally
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.leases import REPORT_BYTES_MAX, Leases, WorkerId

BatchT = TypeVar("BatchT")

DEFINITIONS_SECONDS = 5.0
BUSY_SECONDS_MAX = 60.0
"""Most seconds that a turn of one pipeline may take, such as a commit to a store that is slow, or
waiting for a broker's answer, before its worker counts as dead."""
REST_SECONDS = 0.1
"""Seconds that a worker rests when it found nothing to do."""

PASSING = (UnavailableError, UnknownOutcomeError, ConflictError, OwnerFencedError)
"""Errors that say nothing of the feed: it is tried again as long as it takes."""


class WantedPipeline(msgspec.Struct, Generic[BatchT], frozen=True, kw_only=True):
    """A feed that is landed, or a connection, which is to run, or is suspended.

    version: of all that its rows are made by. Another version is another pipeline.
    statistics_seconds: time between two events that measure it.
    workers: that its policy asks for.
    flush: number of the last wish that its feed commits what it holds.
    is_suspended: whether a worker that has it is to end it, and to keep its source splits.
    open: makes it.
    """

    kind: DefinitionKind
    name: str
    version: int
    restarts: RestartRules
    open: Callable[[], Pipeline[BatchT]]
    statistics_seconds: float = 5.0
    workers: WorkersAsked = WorkersAsked()
    flush: int = 0
    is_suspended: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """Return kind, name and version, which distinguish it from other pipelines."""
        return self.kind, self.name, self.version


class FeedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's report of one pipeline, as its beats carry it.

    behind: positions beyond those that were read.
    waiting: bytes that are read and not committed.
    spooled: bytes that wait on the worker's disk, in the spool of a policy.
    lag_seconds: how long the oldest record waits that is not committed.
    congested_by: what is done because the source is too fast; "": it is not.
    load, workers_min, workers_max, is_asking: see `LoadReport`.
    flushed: number of the last wish of which all is committed that was held when it was seen.
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
    lag_seconds: float = 0.0
    congested_by: str = ""
    load: float = 0.0
    workers_min: int = 0
    workers_max: int = 0
    is_asking: bool = False
    flushed: int = 0
    spooled: int = 0


@dataclass
class _Work(Generic[BatchT]):
    """A pipeline at work.

    again: when it is tried again, of the monotonic clock.
    failure: why it does not go on; it is kept until the registry has it.
    measured: when an event said how it does, of the monotonic clock.
    flush: number of the last wish to flush that was seen.
    """

    wanted: WantedPipeline[BatchT]
    restarts: Restarts
    pipeline: Pipeline[BatchT] | None = None
    again: float = 0.0
    failure: FeedFailure | None = None
    failing: str = ""
    commits: int = 0
    tally: Tally = field(default_factory=Tally)
    measured: float | None = None
    load: WorkerLoad = field(default_factory=WorkerLoad)
    flush: int = 0


class FeedWorker(Generic[BatchT]):
    """Runs what is wanted.

    wanted: gives all pipelines that are to run. Asked now and then.
    note_failure: is called with one that cannot go on, for all workers to see.
    """

    def __init__(
        self,
        *,
        worker: WorkerId,
        leases: Leases,
        living: LivingWorkers,
        clock: Clock,
        wanted: Callable[[], Sequence[WantedPipeline[BatchT]]],
        note_failure: Callable[[WantedPipeline[BatchT], FeedFailure], None],
    ) -> None:
        self._worker = worker
        self._leases = leases
        self._living = living
        self._clock = clock
        self._wanted = wanted
        self._note_failure = note_failure
        self._work: dict[tuple[str, str, int], _Work[BatchT]] = {}
        self._suspended = SuspendedPipelines[BatchT]()
        self._beaten: float | None = None
        self._begun = 0.0
        self._said = b""
        self._asked: float | None = None

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Work until it is to stop; then commit what is held, and let go of everything."""
        try:
            with meanwhile(self._beat_meanwhile, every_seconds=BEAT_SECONDS):
                try:
                    while not should_stop():
                        if not self.turn():
                            self._clock.sleep(REST_SECONDS)
                finally:
                    self._end_all()
        finally:
            self.close()

    def turn(self) -> bool:
        """Do one turn of everything. Returns whether there was something to do."""
        self._beat()
        self._ask()
        has_done = False
        for work in list(self._work.values()):
            has_done |= self._turn(work)
            self._measure(work)
            self._beat()
        return has_done

    def reports(self) -> list[FeedReport]:
        """Return how each pipeline does."""
        return [_report(work) for work in self._work.values()]

    def close(self) -> None:
        """Commit what is held, give up what is owned, and leave."""
        self._end_all()
        try:
            self._leases.leave(self._worker)
        except LakebedError as error:  # silence says it, too
            _note_away(error)

    def _beat(self) -> None:
        """Say that this worker lives, and listen for the others. A store that is away is no reason
        to stop: the others take this worker for dead, and it is fenced."""
        now = self._clock.monotonic()
        if self._beaten is not None and now - self._beaten < BEAT_SECONDS:
            return
        self._beaten = now
        try:
            self._said = _encoded(self.reports())
            self._leases.beat(self._worker, self._said)
            self._living.see(self._leases.workers(), now)
            for gone in self._living.forgotten():
                self._leases.leave(gone)
        except (UnavailableError, UnknownOutcomeError) as error:
            _note_away(error)

    def _beat_meanwhile(self) -> None:
        """Say from another thread that this worker lives while it is busy with one pipeline; not
        for ever: it may hang."""
        now = self._clock.monotonic()
        if self._beaten is None or now - self._beaten < BEAT_SECONDS:
            return
        if now - self._begun < BUSY_SECONDS_MAX:
            try:
                self._leases.beat(self._worker, self._said)
            except LakebedError as error:
                _note_away(error)

    def _ask(self) -> None:
        """Look what is wanted, begin what is new, and end what is no longer. Definitions that
        cannot be read, as those of a newer release, are no reason to stop what is at work."""
        now = self._clock.monotonic()
        if self._asked is not None and now - self._asked < DEFINITIONS_SECONDS:
            return
        self._asked = now
        try:
            known = {one.key: one for one in self._wanted()}
        except LakebedError as error:
            _note_away(error)
            return
        wanted = {key: one for key, one in known.items() if not one.is_suspended}
        for key in [key for key in self._work if key not in wanted]:
            self._end(self._work.pop(key), is_suspended=key in known)
        for key, one in wanted.items():
            work = self._work.setdefault(key, _Work(one, Restarts(one.restarts), flush=one.flush))
            if work.flush != one.flush and work.pipeline is not None:
                work.pipeline.flush(one.flush)
            work.flush = one.flush
        at_work = {key for key, work in self._work.items() if work.pipeline is not None}
        self._suspended.let_go(known.keys() - at_work, now)

    def _turn(self, work: _Work[BatchT]) -> bool:
        """Take a turn of one pipeline. Whatever it meets harms no other."""
        self._begun = self._clock.monotonic()
        waits = self._begun < work.again
        if work.failure is not None and not waits:
            self._report(work, work.failure)
            return False
        try:
            if waits:
                return work.pipeline is not None and work.pipeline.read_ahead()
            if work.pipeline is None:
                work.pipeline = work.wanted.open()
                work.pipeline.flush(work.flush)
            turn = work.pipeline.turn()
        except Exception as error:  # noqa: BLE001 - a bug of one stops no other feed
            self._met(work, error)
            return False
        self._note(work, turn)
        if has_done := turn.has_read or turn.committed is not None:
            work.load.was_busy(self._clock.monotonic() - self._begun)
        return has_done

    def _measure(self, work: _Work[BatchT]) -> None:
        """Say now and then how a pipeline does."""
        now = self._clock.monotonic()
        if work.measured is not None and now - work.measured < work.wanted.statistics_seconds:
            return
        work.measured = now
        report = _report(work)
        work.load.see(now, read=work.tally.read, behind=report.behind)
        events.emit(
            events.FEED_MEASURED,
            feed=report.name,
            kind=report.kind,
            splits_count=report.splits,
            behind_count=report.behind,
            waiting_bytes=report.waiting,
            spooled_bytes=report.spooled,
            spool_percent=0 if work.pipeline is None else work.pipeline.spooled[1],
            lag_seconds=round(report.lag_seconds, 1),
            failing_count=int(bool(report.failing)),
        )

    def _note(self, work: _Work[BatchT], turn: Turn) -> None:
        if turn.committed is not None:
            work.commits += 1
            work.tally = work.tally.plus(turn.committed.tally)
            work.restarts.worked()
        if turn.committed is not None or (work.pipeline is not None and work.pipeline.is_idle):
            work.failing = ""

    def _met(self, work: _Work[BatchT], error: Exception) -> None:
        """Wait and try again, or say that it failed."""
        if work.pipeline is not None:
            work.pipeline.forget()
            if isinstance(error, OwnerFencedError):  # what the table refuses is claimed anew (R3)
                position = str(error.facts.get("position", ""))
                release(work.pipeline, work.wanted.name, position)
        failure = failure_of(error, work.wanted.version)
        before, work.failing = work.failing, f"{failure.code}: {failure.reason}"
        if isinstance(error, DefinitionMovedError):  # a newer one is wanted, or will be
            self._asked = None
        is_passing = isinstance(error, PASSING)
        may_pass = is_passing or isinstance(error, DeniedError) or failure.code == BUG
        now = self._clock.monotonic()
        wait = work.restarts.waits(now, is_counted=not is_passing) if may_pass else None
        if wait is not None:
            work.again = now + wait
            if work.failing != before:
                _note_retried(work.wanted, failure)
            return
        work.failure = failure
        events.emit(
            events.FEED_FAILED,
            feed=work.wanted.name,
            kind=work.wanted.kind,
            code=failure.code,
            reason=failure.reason,
        )
        self._end(work)
        self._report(work, failure)

    def _report(self, work: _Work[BatchT], failure: FeedFailure) -> None:
        """Let the registry know that it failed. It is wanted again when it is started."""
        try:
            self._note_failure(work.wanted, failure)
        except DefinitionChangedError:  # a newer one may work
            self._asked = None
        except LakebedError as error:
            _note_away(error)
            work.again = self._clock.monotonic() + BEAT_SECONDS
            return
        del self._work[work.wanted.key]

    def _end_all(self) -> None:
        while self._work:
            self._end(self._work.popitem()[1])
        self._suspended.let_go((), self._clock.monotonic())

    def _end(self, work: _Work[BatchT], *, is_suspended: bool = False) -> None:
        """Commit what is held, as far as that works, then let go, unless that is for later."""
        self._begun = self._clock.monotonic()
        pipeline, work.pipeline = work.pipeline, None
        if pipeline is None:
            return
        end(pipeline, work.wanted.name)
        if is_suspended:
            self._suspended.keep(work.wanted.key, pipeline, self._begun)
        else:
            release(pipeline, work.wanted.name)


def _report(work: _Work[BatchT]) -> FeedReport:
    flow = None if work.pipeline is None else work.pipeline.flow
    rung, is_lagging = (None, False) if flow is None else flow.standing
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
        lag_seconds=0.0 if flow is None else flow.lag.seconds,
        congested_by=rung or "",
        load=work.load.load,
        workers_min=work.wanted.workers.least,
        workers_max=work.wanted.workers.most,
        is_asking=rung == "elastic" or (is_lagging and work.wanted.workers.at_lag),
        flushed=work.flush if work.pipeline is None else work.pipeline.flushed,
        spooled=0 if work.pipeline is None else work.pipeline.spooled[0],
    )


def _encoded(reports: list[FeedReport]) -> bytes:
    """Return as many reports as a beat may have: of what fails first, then of what needs most."""
    given = sorted(reports, key=lambda one: (not one.failing, not one.is_asking, -one.load))
    while len(encoded := msgspec.json.encode(given)) > REPORT_BYTES_MAX:
        given = given[: len(given) // 2]
    return encoded


def _note_retried(wanted: WantedPipeline[BatchT], failure: FeedFailure) -> None:
    feed, kind, code, reason = wanted.name, wanted.kind, failure.code, failure.reason
    events.emit(events.FEED_RETRIED, feed=feed, kind=kind, code=code, reason=reason)


def _note_away(error: LakebedError) -> None:
    events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))
