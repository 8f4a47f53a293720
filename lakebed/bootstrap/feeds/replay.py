"""Replays of a feed's quarantine, put together from its definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import pipeline_from, quarantine_of, target_of
from lakebed.config.feeds import feed_file, quarantine_name
from lakebed.errors import InvalidError, LakebedError, TableMissingError, did_you_mean
from lakebed.feeds.known_definitions import ConnectionDefinition, read_definitions
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.run_feeds import FeedDone, RunningFeed, run_feeds
from lakebed.landing.quarantine_source import (
    PlannedReplay,
    QuarantineSource,
    next_replays,
    unfinished_replays,
)
from lakebed.model.feeds.positions import Position

_ERRORS_IN_ROW_MAX = 1_000_000_000
"""A replay is of nothing but records that were bad."""


class Callbacks(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks by which a replay asks its caller and reports to it.

    should_stop: asked between commits.
    on_progress: called after each commit, with what its connection has taken so far.
    failed: called with a connection whose replay failed, and why.
    """

    should_stop: Callable[[], bool]
    on_progress: Callable[[FeedDone], None]
    failed: Callable[[FeedDone, LakebedError], None]


def replay_quarantine(
    app: App,
    feed: str,
    connection: str | None,
    text: str | None,
    callbacks: Callbacks,
) -> list[FeedDone]:
    """Take a feed's records in quarantine once more, by the definitions of now. Returns what became
    of those of each connection.

    connection: only of this one.
    text: of the file that defines the feed; None: the lake does.

    Raises:
        InvalidError: no such feed or connection; a definition does not fit its table.
        TableMissingError: a connection's table is not there.
        CorruptError: an earlier replay has no position.
        UnavailableError: try again: what was committed stays.
    """
    chosen = _connections(app, feed, connection, text)
    try:
        app.catalog.find(quarantine_name(feed))
    except TableMissingError:  # nothing was ever bad
        return []
    return [_replay(app, definition, callbacks) for definition in chosen]


def _replay(app: App, definition: ConnectionDefinition, callbacks: Callbacks) -> FeedDone:
    """Finish the replay that was begun last, if there is one, and do the next one."""
    begun = unfinished_replays(_positions(app, definition))
    done = _run(app, definition, begun, callbacks)
    if done.code or callbacks.should_stop():
        return done
    after = _run(app, definition, next_replays(_positions(app, definition), begun), callbacks)
    return msgspec.structs.replace(
        after, commits=done.commits + after.commits, tally=done.tally.plus(after.tally)
    )


def _positions(app: App, definition: ConnectionDefinition) -> dict[str, Position]:
    table, to_table = target_of(app, definition)
    return positions_in(table, to_table.id)


def _run(
    app: App,
    definition: ConnectionDefinition,
    planned: Sequence[PlannedReplay],
    callbacks: Callbacks,
) -> FeedDone:
    target = target_of(app, definition)
    quarantine = quarantine_of(app, definition.feed.name)
    source = QuarantineSource(quarantine, app.query, target[1].id, planned)
    pipeline = pipeline_from(app, _lenient(definition), target, source, OwnsAll())
    running: Sequence[RunningFeed[pa.RecordBatch]] = [
        RunningFeed(definition.connection.name, pipeline)
    ]
    (done,) = run_feeds(
        running,
        should_stop=callbacks.should_stop,
        on_progress=callbacks.on_progress,
        failed=callbacks.failed,
    )
    pipeline.close()
    return done


def _lenient(definition: ConnectionDefinition) -> ConnectionDefinition:
    """Return a definition by which what is bad stays in quarantine, however much there is."""
    policy = msgspec.structs.replace(
        definition.policy,
        on_record_error="quarantine",
        errors_in_row_max=_ERRORS_IN_ROW_MAX,
        errors_fraction_max=1.0,
        lag_seconds_max=0,
        rate_records_max=0,
        dedupe="none",
        on_congestion=("backpressure",),
    )
    return msgspec.structs.replace(definition, policy=policy)


def _connections(
    app: App, feed: str, connection: str | None, text: str | None
) -> list[ConnectionDefinition]:
    if text is None:
        known = read_definitions(app.feeds.definitions)
        known.feed(feed)
        found = known.connections_of(feed)
    else:
        feeds, connections = definitions_in(feed_file(text))
        names = sorted(one.feed.name for one in feeds)
        if feed not in names:
            hint = did_you_mean(feed, names, what="feed")
            raise InvalidError("no feed has this name", feed=ascii(feed)[:80], hint=hint)
        found = [one for one in connections if one.feed.name == feed]
    if connection is None:
        return found
    chosen = [one for one in found if connection in {one.connection.name, one.defined_as}]
    if not chosen:
        names = sorted(one.connection.name for one in found)
        raise InvalidError(
            "the feed has no connection of this name",
            connection=ascii(connection)[:80],
            hint=did_you_mean(connection, names, what="connection"),
        )
    return chosen
