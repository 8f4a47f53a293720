"""A worker of feeds, put together from the services of a lake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple, TypedDict

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import INSTANCE_SCHEME, App
from lakebed.bootstrap.feeds.endings import end_connections
from lakebed.bootstrap.feeds.pipelines import Share, connected_feed, landed_feed
from lakebed.config.policies import Policy
from lakebed.errors import InvalidError, did_you_mean
from lakebed.feeds.known_definitions import (
    ConnectionDefinition,
    FeedDefinition,
    KnownDefinitions,
    is_landed,
    read_definitions,
)
from lakebed.feeds.living_workers import DEAD_SECONDS, LivingWorkers
from lakebed.feeds.operating.taking_worker import TakingWorker
from lakebed.feeds.owned_splits import LeasedSplits, OwnedSplits
from lakebed.feeds.pacing.wanted_workers import workers_of
from lakebed.feeds.pacing.worker_names import TAKE_PREFIX, sharing, worker_name
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.reading.read_once import SharedSources
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.worker import FeedWorker, WantedPipeline
from lakebed.model.feeds.definitions import DefinitionKind, FeedFailure
from lakebed.model.feeds.flushes import Flushes
from lakebed.model.names import ConnectionId
from lakebed.ports.clock import Clock
from lakebed.ports.leases import Leases, WorkerId

ENDINGS_SECONDS = 60.0
"""Seconds between two searches of a worker for connections that a table has not forgotten. The
process that drops a connection forgets it at once, unless it dies."""


class WorkerParts(TypedDict):
    """The parts of a feed worker, as `FeedWorker` takes them."""

    worker: WorkerId
    leases: Leases
    living: LivingWorkers
    clock: Clock
    wanted: Callable[[], Sequence[WantedPipeline[pa.RecordBatch]]]
    note_failure: Callable[[WantedPipeline[pa.RecordBatch], FeedFailure], None]


class _Wishes(NamedTuple):
    """The requests to feeds at work: that they are flushed, or, by their names, suspended."""

    flushes: Flushes
    suspended: frozenset[str]


def is_instance(app: App) -> bool:
    """Return whether a lake is an instance on AWS, which may have functions."""
    return app.location.startswith(INSTANCE_SCHEME)


def running_definitions(
    known: KnownDefinitions,
    only: Collection[str] = (),
    *,
    has_functions: bool = False,
    with_suspended: bool = False,
) -> tuple[list[FeedDefinition], list[ConnectionDefinition]]:
    """Return what is to run: feeds that were started, and their connections, but for what failed.

    only: names of feeds; empty: all.
    has_functions: whether the lake may have a function for feeds that ask for it: those are left to
        it then, unless they are named.
    with_suspended: whether feeds that are suspended are returned, too.

    Raises:
        InvalidError: there is none of that name.
    """
    names = sorted(known.file.feeds)
    for name in only:
        if name not in names:
            hint = did_you_mean(name, names, what="feed")
            raise InvalidError("no feed has this name", feed=ascii(name)[:80], hint=hint)
    states = {"running", "suspended"} if with_suspended else {"running"}
    feeds = [
        feed
        for feed in known.feeds()
        if feed.wanted in states
        and (feed.feed.name in only if only else not (has_functions and feed.runs_in_function))
    ]
    connections = [one for feed in feeds for one in known.connections_of(feed.feed.name)]
    return feeds, connections


def feed_worker(
    app: App,
    only: Collection[str] = (),
    *,
    name: WorkerId | None = None,
    living: LivingWorkers | None = None,
) -> FeedWorker[pa.RecordBatch]:
    """Return a worker that does its share of what the lake's definitions say.

    only: names of feeds; empty: all that are started.
    name: of the worker, never used before; None: one by chance.
    living: is kept up to date with the workers that live; None: the worker keeps its own.
    """
    return FeedWorker(**_parts(app, only, name, living))


def _parts(
    app: App, only: Collection[str], name: WorkerId | None, living: LivingWorkers | None
) -> WorkerParts:
    """Return what a worker is made of."""
    worker = name or worker_name(app.rng.getrandbits(64), only)
    living = living or LivingWorkers()

    def share(connection: ConnectionId, policy: Policy) -> OwnedSplits:
        _check_share(worker, policy)
        return LeasedSplits(
            worker=worker,
            leases=app.feeds.leases,
            living=lambda: {worker, *living.living()},
            connection=connection,
            monotonic=app.clock.monotonic,
            stops_at_loss=policy.on_worker_failure == "stop",
            sharing=partial(sharing, worker),
        )

    def note_failure(one: WantedPipeline[pa.RecordBatch], failure: FeedFailure) -> None:
        name, _, table = one.name.partition("/")
        failed = msgspec.structs.replace(failure, table=table)
        app.feeds.definitions.note_failure(one.kind, name, failed)

    shared = SharedSources[pa.RecordBatch](app.clock.monotonic)
    forget_ended = _forgetting(app)

    def wanted() -> list[WantedPipeline[pa.RecordBatch]]:
        forget_ended()
        return _wanted(app, only, share, shared)

    return WorkerParts(
        worker=worker,
        leases=app.feeds.leases,
        living=living,
        clock=app.clock,
        wanted=wanted,
        note_failure=note_failure,
    )


def _forgetting(app: App) -> Callable[[], None]:
    """Return what is called often, and lets tables forget what was dropped now and then. In an
    instance a worker changes no list of the registry: the next command crosses out what is done."""
    end = end_connections(app, may_cross_out=not is_instance(app))
    looked: float | None = None

    def forget_ended() -> None:
        nonlocal looked
        now = app.clock.monotonic()
        if looked is None or now - looked >= ENDINGS_SECONDS:
            looked = now
            end.run_quietly()

    return forget_ended


def _check_share(worker: WorkerId, policy: Policy) -> None:
    """Raise InvalidError if a policy asks for what a run of the function cannot do."""
    if worker.startswith(TAKE_PREFIX) and policy.on_worker_failure == "stop":
        hint = 'choose a policy with `on_worker_failure = "resume"`, or leave `run` out of the feed'
        raise InvalidError("no run of a function lives long enough to miss another one", hint=hint)


def taking_worker(app: App) -> TakingWorker[pa.RecordBatch] | None:
    """Return a worker that takes what there is of the feeds that ask for a function, and ends.
    None: no such feed was started."""
    feeds = read_definitions(app.feeds.definitions).feeds()
    only = [one.feed.name for one in feeds if one.wanted == "running" and one.runs_in_function]
    if not only:
        return None
    name = WorkerId(f"{TAKE_PREFIX}{app.rng.getrandbits(64):016x}")
    living = LivingWorkers(forget_seconds=DEAD_SECONDS)
    return TakingWorker(**_parts(app, only, name, living))


def _wanted(
    app: App, only: Collection[str], share: Share, shared: SharedSources[pa.RecordBatch]
) -> list[WantedPipeline[pa.RecordBatch]]:
    """Return what is to run, or is suspended, as the registry says now."""
    known, has_functions = read_definitions(app.feeds.definitions), is_instance(app)
    feeds, connections = running_definitions(
        known, only, has_functions=has_functions, with_suspended=True
    )
    suspended = frozenset(one.feed.name for one in feeds if one.wanted == "suspended")
    wishes = _Wishes(app.feeds.definitions.flushes(), suspended)
    landed = [
        _pipeline("feed", one.feed.name, one, partial(landed_feed, app, one, share), wishes)
        for one in feeds
        if one.failed is None and is_landed(one, connections)
    ]
    connected = [
        _pipeline(
            "connection",
            one.connection.name,
            one,
            partial(connected_feed, app, one, share, shared),
            wishes,
        )
        for one in connections
        if one.failed is None
    ]
    return landed + connected


def _pipeline(
    kind: DefinitionKind,
    name: str,
    definition: FeedDefinition | ConnectionDefinition,
    open_: Callable[[], Pipeline[pa.RecordBatch]],
    wishes: _Wishes,
) -> WantedPipeline[pa.RecordBatch]:
    policy = definition.policy
    return WantedPipeline(
        kind=kind,
        name=name,
        version=definition.version,
        restarts=restarts_of(policy),
        statistics_seconds=policy.statistics_seconds,
        workers=workers_of(policy),
        flush=wishes.flushes.of(definition.feed.name),
        is_suspended=definition.feed.name in wishes.suspended,
        open=open_,
    )


def restarts_of(policy: Policy) -> RestartRules:
    """Return when a policy lets work begin again that failed."""
    return RestartRules(
        max=policy.restarts_max,
        seconds_min=policy.restart_seconds_min,
        seconds_max=policy.restart_seconds_max,
    )
