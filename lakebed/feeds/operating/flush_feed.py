"""Lets workers commit what they hold of a feed, and listens until they say that they did."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from lakebed.errors import InvalidError, UnavailableError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.feeds.lifecycle import FeedStanding, standing_of
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.operating.worker_reports import reports_in
from lakebed.feeds.worker import FeedReport
from lakebed.ports.clock import Clock
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.leases import Leases, WorkerBeat, WorkerId

FLUSH_SECONDS = 30.0
"""Seconds that workers have: five until they see the wish, two until a beat says that it is done,
and the commits between."""
LOOK_SECONDS = 0.5
TRIES_MAX = 10

_HINTS = {
    "stopped": "`lakebed feed start` lets workers take its records; what they held was committed"
    " when it was stopped",
    "suspended": "`lakebed feed resume` lets it go on; what workers held was committed when it was"
    " suspended",
    "failed": "mend what failed, then `lakebed feed start`",
}


class FeedFlushed(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of workers to a wish to flush.

    number: of the wish.
    is_whole: whether every worker that was heard has committed what it held when it saw the wish.
        False too where no worker says that it runs the feed.
    committed: workers that have.
    late: workers that have not, or died meanwhile, each with how it does: records that one read and
        did not commit are read again.
    silent: workers that were not heard since the wish. They count for nothing.
    """

    feed: str
    number: int
    is_whole: bool
    committed: tuple[str, ...] = ()
    late: dict[str, str] = {}
    silent: tuple[str, ...] = ()


class FlushFeed:
    """Wishes by compare and set, and listens to beats."""

    def __init__(self, registry: FeedRegistry, leases: Leases, clock: Clock) -> None:
        self._registry = registry
        self._leases = leases
        self._clock = clock

    def run(self, feed: str, *, wait_seconds: float) -> FeedFlushed:
        """Let workers commit what they hold of a feed. Returns what they said until all of them
        had, or the time was over.

        Raises:
            InvalidError: there is none of that name, or it does not run.
            DefinitionChangedError: too many are wished for at the same moment.
            UnavailableError, UnknownOutcomeError: run it again; a wish twice does no harm.
        """
        known = read_definitions(self._registry)
        standing = standing_of(known, feed)
        if standing.standing != "running":
            raise _not_running(standing)
        before = {beat.worker: beat.counter for beat in self._leases.workers()}
        number = self._wish(feed)
        answers = _Answers(_pipes_of(known, feed), number, before)
        end = self._clock.monotonic() + wait_seconds
        while not answers.are_all and self._clock.monotonic() < end:
            with suppress(UnavailableError):  # it may answer next time
                answers.see(self._leases.workers(), self._clock.monotonic())
            if not answers.are_all:
                self._clock.sleep(LOOK_SECONDS)
        return answers.given(feed)

    def _wish(self, feed: str) -> int:
        failure: DefinitionChangedError | None = None
        for _ in range(TRIES_MAX):
            try:
                return self._registry.want_flush(feed, self._registry.flushes().number)
            except DefinitionChangedError as error:
                failure = error
        assert failure is not None, "each try ends or fails"
        raise failure


class _Answers:
    """The answers to a wish, from the beats of workers since then.

    before: counters of beats before it: a beat with the same was sent before.
    """

    def __init__(
        self, pipes: set[tuple[str, str]], number: int, before: dict[WorkerId, int]
    ) -> None:
        self._pipes = pipes
        self._number = number
        self._before = before
        self._watch = LivingWorkers()
        self._heard: dict[WorkerId, list[FeedReport]] = {}
        self._listed: set[WorkerId] = set()
        self._living: set[WorkerId] = set()
        self.are_all = False

    def see(self, beats: Iterable[WorkerBeat], now: float) -> None:
        """Take in what the store says now."""
        listed = list(beats)
        self._watch.see(listed, now)
        self._living = set(self._watch.living())
        self._listed = {beat.worker for beat in listed}
        for beat in listed:
            if self._before.get(beat.worker) != beat.counter:
                self._heard[beat.worker] = [
                    one for one in reports_in(beat) if (one.kind, one.name) in self._pipes
                ]
        waits = self._living - self._heard.keys()
        self.are_all = not waits and not (self._late().keys() & self._living)

    def given(self, feed: str) -> FeedFlushed:
        """Return what was said."""
        late = self._late()
        committed = [name for name, said in self._heard.items() if said and name not in late]
        return FeedFlushed(
            feed=feed,
            number=self._number,
            is_whole=self.are_all and bool(committed) and not late,
            committed=tuple(sorted(committed)),
            late=dict(sorted(late.items())),
            silent=tuple(sorted(self._listed - self._heard.keys())),
        )

    def _late(self) -> dict[WorkerId, str]:
        """Return workers that have not committed all, and what each of them says."""
        late: dict[WorkerId, str] = {}
        for name, said in self._heard.items():
            missing = [one for one in said if one.flushed < self._number]
            if not missing:
                continue
            if name not in self._listed:
                late[name] = "it ended meanwhile"
            elif name not in self._living:
                late[name] = "it is silent since"
            else:
                waiting = sum(one.waiting for one in missing)
                failing = next((one.failing for one in missing if one.failing), "")
                late[name] = failing or f"it holds {waiting:,} bytes"
        return late


def _pipes_of(known: KnownDefinitions, feed: str) -> set[tuple[str, str]]:
    connections = known.connections_of(feed)
    return {("feed", feed), *(("connection", one.connection.name) for one in connections)}


def _not_running(standing: FeedStanding) -> InvalidError:
    return InvalidError(
        f"a feed that is {standing.standing} holds nothing",
        feed=standing.feed,
        hint=_HINTS[standing.standing],
    )
