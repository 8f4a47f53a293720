"""Landing tables of feeds, looked at by the names of feeds."""

from __future__ import annotations

import msgspec

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pipelines import id_of
from lakebed.config.feeds import landing_table_name
from lakebed.feeds.known_definitions import read_definitions
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


def where_landed(app: App, feed: str, source_split: str, position: int) -> list[TakenRange]:
    """Return the commits that took a position of a source split. Raises: as `verify_landing`."""
    _, taken, _ = _landed(app, feed)
    return [t for t in taken if t.source_split == source_split and t.begin <= position < t.end]


def _landed(app: App, feed: str) -> tuple[OpenTable, list[TakenRange], int]:
    definition = read_definitions(app.feeds.definitions).feed(feed)
    table = app.catalog.find(landing_table_name(feed))
    id_ = id_of(definition.id, b"feed", feed, table)
    taken, oldest = taken_ranges(app.logs.open(table.id), id_)
    return table, taken, oldest
