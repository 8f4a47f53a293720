"""Feeds, put together from the services of a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.decoders import resources_of
from lakebed.bootstrap.feeds.policies import (
    check_policy,
    old_items_of,
    once_column,
    verdicts_of,
)
from lakebed.bootstrap.feeds.pushed_feeds import pushed_segments
from lakebed.bootstrap.feeds.record_sources import SourceParts, amazon_clients, record_source
from lakebed.bootstrap.feeds.spools import spilling_as
from lakebed.bootstrap.feeds.staging import staging_of
from lakebed.config.decoders import DecoderSettings, decoder_settings_of
from lakebed.config.definitions.connections import DefinedConnection
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feeds import Feed, landing_table_name, quarantine_name
from lakebed.config.policies import Policy
from lakebed.decoding.routing import table_decoder
from lakebed.errors import InvalidError, TableExistsError, TableMissingError
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.committed import FeedConnection, taken_before
from lakebed.feeds.decode_records import DecodeRecords, RecordRules
from lakebed.feeds.known_definitions import (
    ConnectionDefinition,
    FeedDefinition,
    is_landed,
)
from lakebed.feeds.land_records import LandRecords
from lakebed.feeds.owned_splits import OwnedSplits, OwnsAll
from lakebed.feeds.pacing.congestion import CongestionRules
from lakebed.feeds.pacing.known_items import OldItems
from lakebed.feeds.pacing.once_values import VALUES_MAX
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pipeline import Pipeline
from lakebed.feeds.quarantine import Quarantine
from lakebed.feeds.reading.read_once import SharedSources
from lakebed.feeds.rotation import RotationLimits
from lakebed.feeds.run_feeds import RunningFeed
from lakebed.landing.landing_source import LandingSource
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.landing.quarantine_table import QUARANTINE_SCHEMA
from lakebed.model.feeds.positions import connection_id
from lakebed.model.feeds.windows import WindowRules
from lakebed.model.names import ConnectionId, TableName, digest_of, table_name
from lakebed.model.predicates.language import Predicate, checked_predicate
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.schema import Schema
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.open_table import OpenTable

Share = Callable[[ConnectionId, Policy], OwnedSplits]
"""Gives what this process owns of a connection's source splits."""


def running_feeds(
    app: App,
    feeds: Sequence[FeedDefinition],
    connections: Sequence[ConnectionDefinition],
    share: Share = lambda _id, _policy: OwnsAll(),
) -> Iterator[RunningFeed[pa.RecordBatch]]:
    """Yield feeds that are landed, and connections, each at work on its own. Landing and quarantine
    tables are created where there are none.

    Raises:
        InvalidError: a definition does not fit its table; a table of a name that is needed is
            another one.
        TableMissingError: a connection's table is not there.
        UnavailableError: try again.
    """
    for definition in feeds:
        if is_landed(definition, connections):
            yield RunningFeed(definition.feed.name, landed_feed(app, definition, share))
    for connection in connections:
        yield RunningFeed(connection.connection.name, connected_feed(app, connection, share))


def landed_feed(app: App, definition: FeedDefinition, share: Share) -> Pipeline[pa.RecordBatch]:
    """Return what lands a feed. Raises: as `running_feeds`."""
    table, connection = landing_of(app, definition.feed, definition.id, definition.version)
    old_items = old_items_of(definition.feed, table)
    segments = pushed_segments(app.objects, definition)
    return Pipeline[pa.RecordBatch](
        table=table,
        connection=connection,
        source=source_of(app, definition.feed, _taken_by(table, connection), segments),
        rounds=CommitRound(
            stage=staging_of(app),
            make_rows=LandRecords(),
            clock=app.clock,
            old_items=old_items,
        ),
        clock=app.clock,
        rules=PipelineRules(
            limits=_limits(definition.feed),
            records_gaps=definition.policy.gap == "record",
            records_per_second=definition.policy.rate_records_max,
            congestion=CongestionRules(lag_seconds_max=definition.policy.lag_seconds_max),
            stops_when_lagging=definition.policy.on_lag == "fail",
        ),
        splits=share(connection.id, definition.policy),
        held=app.feeds.held,
    )


def landing_of(app: App, feed: Feed, id_: str, version: int) -> tuple[OpenTable, FeedConnection]:
    """Return the landing table of a feed, and what fills it. It is created where there is none."""
    table = _table_of(app, landing_table_name(feed.name), LANDING_SCHEMA, "landing")
    return table, FeedConnection(id_of(id_, b"feed", feed.name, table), version)


def source_of(
    app: App,
    feed: Feed,
    is_taken: Callable[[bytes], bool] = lambda _: False,
    segments: SegmentStore | None = None,
) -> RecordSource[pa.RecordBatch]:
    """Return the source of a feed. is_taken, segments: as `SourceParts`."""
    parts = SourceParts(
        clock=app.clock,
        secrets=app.feeds.secrets,
        files=app.source_files,
        clients=lambda: amazon_clients(app.clock, app.rng),
        is_taken=is_taken,
        segments=segments,
    )
    return record_source(feed.source, parts)


def _taken_by(table: OpenTable, connection: FeedConnection) -> Callable[[bytes], bool]:
    return lambda item: bool(taken_before(table, connection, [item]))


def connected_feed(
    app: App,
    definition: ConnectionDefinition,
    share: Share,
    shared: SharedSources[pa.RecordBatch] | None = None,
) -> Pipeline[pa.RecordBatch]:
    """Return what takes a feed into a table. shared: of tables of one route; None: each has its
    own. Raises: as `running_feeds`."""
    target = target_of(app, definition)
    make = partial(_source_for, app, definition, target)
    source: RecordSource[pa.RecordBatch]
    if shared is not None and definition.connection.route:
        source = shared.join((definition.defined_as, definition.version), make)
    else:
        source = make()
    try:
        splits = share(target[1].id, definition.policy)
        return pipeline_from(app, definition, target, source, splits)
    except Exception:  # whatever it was: a shared source counts who reads it
        source.close()
        raise


def _source_for(
    app: App, definition: ConnectionDefinition, target: tuple[OpenTable, FeedConnection]
) -> RecordSource[pa.RecordBatch]:
    """Return what a connection reads: of a source without order, the feed's landing table."""
    feed = definition.feed
    if feed.source.is_ordered:
        return source_of(app, feed, _taken_by(*target))
    landing, landed_by = landing_of(app, feed, definition.feed_id, definition.version)
    return LandingSource(landing, landed_by.id, app.query, app.logs.open(landing.id))


def target_of(app: App, definition: ConnectionDefinition) -> tuple[OpenTable, FeedConnection]:
    """Return the table that a connection fills, and what fills it. Raises: as `running_feeds`."""
    connection = definition.connection
    table = app.catalog.find(table_name(connection.table))
    id_ = id_of(definition.id, b"connection", connection.name, table)
    return table, FeedConnection(id_, definition.version)


def quarantine_of(app: App, feed: str) -> OpenTable:
    """Return the quarantine table of a feed, which is created where there is none. Raises: as
    `running_feeds`."""
    return _table_of(app, quarantine_name(feed), QUARANTINE_SCHEMA, "quarantine")


def pipeline_from(
    app: App,
    definition: ConnectionDefinition,
    target: tuple[OpenTable, FeedConnection],
    source: RecordSource[pa.RecordBatch],
    splits: OwnedSplits,
) -> Pipeline[pa.RecordBatch]:
    """Return what takes records of a source into a connection's table. target: as `target_of`.
    Raises: as `running_feeds`."""
    (table, to_table), policy = target, definition.policy
    check_policy(policy, table, at=at_of("connection", definition.connection.name, "policy"))
    stage = staging_of(app)
    open_quarantine = partial(quarantine_of, app, definition.feed.name)
    rounds = CommitRound(
        stage=stage,
        make_rows=decoding_of(app, definition, to_table.id, table.schema),
        clock=app.clock,
        quarantine=Quarantine(stage=stage, query=app.query, open_table=open_quarantine),
        errors_fraction_max=policy.errors_fraction_max,
        old_items=OldItems(policy.once_seconds) if policy.dedupe == "window" else None,
    )
    return Pipeline[pa.RecordBatch](
        table=table,
        connection=to_table,
        source=spilling_as(app, policy, source, table, to_table),
        rounds=rounds,
        clock=app.clock,
        rules=PipelineRules(
            limits=_limits(policy),
            records_gaps=policy.gap == "record",
            idle_seconds=policy.idle_seconds if definition.connection.window_seconds else None,
            records_per_second=policy.rate_records_max,
            congestion=congestion_rules(policy),
            stops_when_lagging=policy.on_lag == "fail",
        ),
        splits=splits,
        held=app.feeds.held,
    )


def congestion_rules(policy: Policy) -> CongestionRules:
    """Return what a policy says of a source that is too fast."""
    return CongestionRules(
        rungs=policy.on_congestion,
        throttle_floor=policy.throttle_floor,
        discard_fraction=policy.discard_fraction,
        lag_seconds_max=policy.lag_seconds_max,
    )


def decoding_of(
    app: App, definition: ConnectionDefinition, id_: ConnectionId, schema: Schema
) -> DecodeRecords:
    """Return what makes rows for a connection. Raises: InvalidError: it does not fit its table; and
    as `resources_of`."""
    connection, feed, policy = definition.connection, definition.feed, definition.policy
    at = at_of("connection", connection.name)
    if not feed.decoder:
        hint = f'say how its records are read: [feed.{feed.name}] decoder = {{ format = "json" }}'
        raise InvalidError("a connection of a feed without a decoder", at=at, hint=hint)
    decoder_at = at_of("feed", feed.name, "decoder")
    settings = decoder_settings_of(feed.decoder, at=decoder_at)
    columns = connection.columns_settings(policy)
    columns = msgspec.structs.replace(columns, feed=_named_for_keys(app, feed))
    decoder = table_decoder(
        settings,
        columns,
        schema,
        connection.routing,
        connection.table,
        version=definition.version,
        resources=resources_of(app, settings, at=decoder_at),
        at=at,
    )
    rules = RecordRules(
        on_error=policy.on_record_error,
        errors_in_row_max=policy.errors_in_row_max,
        refused=verdicts_of(policy, "freeze"),
        left_out=verdicts_of(policy, "discard_record"),
        where=_where_of(connection, schema, at),
        windows=_windows_of(definition, settings, at),
        drops_equal=policy.dedupe == "adjacent",
        once_column=once_column(policy, settings, columns, schema, at=at),
    )
    return DecodeRecords(FeedConnection(id_, definition.version), schema, decoder, rules)


def _named_for_keys(app: App, feed: Feed) -> str:
    """Return what ids of a feed's records are made of, beside source split and position: its name,
    and where positions count what was landed, the landing table."""
    if feed.source.is_ordered:
        return feed.name
    with suppress(TableMissingError):
        return f"{feed.name}/{app.catalog.find(landing_table_name(feed.name)).id}"
    return feed.name


def _windows_of(
    definition: ConnectionDefinition, settings: DecoderSettings, at: str
) -> WindowRules | None:
    """Return how rows are counted by event time."""
    connection, policy = definition.connection, definition.policy
    if not connection.window_seconds:
        return None
    if settings.time is None:
        hint = f'say which: [feed.{definition.feed.name}] decoder = {{ time = {{ path = "..." }} }}'
        raise InvalidError(
            "windows of records without a time", at=f"{at}.window_seconds", hint=hint
        )
    rules = WindowRules(
        window_seconds=connection.window_seconds,
        disorder_seconds=connection.disorder_seconds,
        seal_seconds=connection.seal_seconds,
        idle_seconds=policy.idle_seconds,
        ahead_seconds_max=connection.ahead_seconds_max,
        late=policy.late,
    )
    rules.check()
    return rules


def _where_of(connection: DefinedConnection, schema: Schema, at: str) -> Predicate | None:
    if not connection.where:
        return None
    try:
        return checked_predicate(predicate_from_text(connection.where), schema)
    except InvalidError as error:
        facts = {name: fact for name, fact in error.facts.items() if name != "at"}
        raise InvalidError(error.message, at=f"{at}.where", hint=error.hint, **facts) from None


def _limits(said: Feed | Policy) -> RotationLimits:
    is_once = isinstance(said, Policy) and said.dedupe == "window"
    return RotationLimits(
        size=said.rotate_bytes,
        records=min(said.rotate_records, VALUES_MAX) if is_once else said.rotate_records,
        seconds=said.rotate_seconds,
        idle_seconds=said.rotate_idle_seconds,
        at_minutes=isinstance(said, Policy) and said.rotate_at_minutes,
    )


def id_of(id_: str, kind: bytes, name: str, table: OpenTable) -> ConnectionId:
    """Return the id of a connection; of one that no registry knows, that of its name and table."""
    return connection_id(id_ or digest_of(kind, name.encode(), table.id.encode()).hex())


def _table_of(app: App, name: TableName, schema: Schema, kind: str) -> OpenTable:
    """Return a table that feeds need, which is created where there is none."""
    try:
        table = app.catalog.find(name)
    except TableMissingError:
        try:
            return app.catalog.create(name, schema)
        except TableExistsError:  # another process was faster
            table = app.catalog.find(name)
    if table.schema.fields != schema.fields:
        hint = "give the feed another name, or the table"
        raise InvalidError(f"a table of that name is no {kind} table", table=name, hint=hint)
    return table
