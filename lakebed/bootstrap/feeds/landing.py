"""Landing tables of feeds, looked at by the names of feeds."""

from __future__ import annotations

import msgspec

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pipelines import id_of, target_of
from lakebed.config.feeds import landing_table_name
from lakebed.errors import TableMissingError
from lakebed.feeds.known_definitions import read_definitions
from lakebed.landing.find_record import RecordInTable, find_connected, find_landed
from lakebed.landing.verify_landing import LandingFinding, TakenRange, taken_ranges, verified
from lakebed.statestore.open_table import OpenTable


class LandingVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared.

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
