"""Landing tables of feeds, looked at by the names of feeds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pipelines import id_of, target_of
from lakebed.config.feeds import landing_table_name
from lakebed.errors import InvalidError, TableMissingError, did_you_mean
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.operating.position_admin import positions as kept_positions
from lakebed.landing.find_record import RecordInTable, find_connected, find_landed
from lakebed.landing.landing_listing import LandedRecord, landed_records
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.landing.verify_landing import LandingFinding, TakenRange, taken_ranges, verified
from lakebed.statestore.open_table import OpenTable

LIMIT_MAX = 1_000_000


class LandingVerified(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of verifying a landing table.

    oldest: the first log entry that there is; commits before it were not compared.
    """

    table: str
    oldest: int
    commits: int
    findings: tuple[LandingFinding, ...]


def verify_landing(app: App, feed: str) -> LandingVerified:
    """Compare what a feed landed with the rows that are there.

    Raises:
        InvalidError: no such feed. TableMissingError: nothing was landed.
    """
    table, taken, oldest = _landed(app, feed)
    findings = verified(app.query, table, taken, is_whole=oldest == 1)
    return LandingVerified(
        table=table.name, oldest=oldest, commits=len(taken), findings=tuple(findings)
    )


def landed(
    app: App,
    feed: str,
    source_split: str | None,
    positions: tuple[int, int | None],
    *,
    limit: int,
    with_values: bool,
) -> Iterator[LandedRecord]:
    """Yield the first records that a feed landed, also one that only a file defines.

    Raises:
        InvalidError: no such feed, source split or range; a table of that name is another one.
        TableMissingError: nothing was landed.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidError("not a limit", limit=limit, hint=f"give 1 to {LIMIT_MAX:,}")
    begin, end = positions
    if end is not None and end <= begin:
        hint = "give an end behind the beginning"
        raise InvalidError("not a range of positions", begin=begin, end=end, hint=hint)
    table = _found_landing(app, feed)
    if source_split is not None:
        names = sorted({one.source_split for one in kept_positions(table)})
        if source_split not in names:
            hint = did_you_mean(source_split, names, what="source split")
            raise InvalidError(
                "nothing was landed of it", source_split=ascii(source_split)[:200], hint=hint
            )
    return landed_records(
        app.query, table, source_split, positions, limit=limit, with_values=with_values
    )


def _found_landing(app: App, feed: str) -> OpenTable:
    try:
        table = app.catalog.find(landing_table_name(feed))
    except TableMissingError:
        read_definitions(app.feeds.definitions).feed(feed)
        raise
    if table.schema.fields != LANDING_SCHEMA.fields:
        raise InvalidError(
            "a table of that name is no landing table: it has other fields",
            table=table.name,
            hint="rename that table: a feed makes its landing table when it first lands records",
        )
    return table


def _landed(app: App, feed: str) -> tuple[OpenTable, list[TakenRange], int]:
    definition = read_definitions(app.feeds.definitions).feed(feed)
    table = app.catalog.find(landing_table_name(feed))
    id_ = id_of(definition.id, b"feed", feed, table)
    taken, oldest = taken_ranges(app.logs.open(table.id), id_)
    return table, taken, oldest


def find_record(app: App, feed: str, source_split: str, position: int) -> list[RecordInTable]:
    """Return what became of a record: in the landing table, if there is one, then in the table of
    each connection. A table that is gone is left out.

    Raises:
        InvalidError: no such feed.
        TableMissingError: there is no table at all.
    """
    known = read_definitions(app.feeds.definitions)
    definition, at = known.feed(feed), (source_split, position)
    found: list[RecordInTable] = []
    missing: TableMissingError | None = None
    try:
        landing = app.catalog.find(landing_table_name(feed))
        id_ = id_of(definition.id, b"feed", feed, landing)
        found.append(find_landed(app.files, landing, app.logs.open(landing.id), id_, at))
    except TableMissingError as error:
        missing = error
    for one in known.connections_of(feed):
        try:
            table, target = target_of(app, one)
        except TableMissingError as error:
            missing = missing or error
            continue
        log, connection = app.logs.open(table.id), (one.connection.name, target.id)
        found.append(
            find_connected(
                app.files, table, log, connection, at, has_lineage=one.connection.lineage
            )
        )
    if not found and missing is not None:
        raise missing
    return found
