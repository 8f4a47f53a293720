"""A lake with a feed of events, and tables of which each gets its own."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakebed
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.errors import LakebedError
from lakebed.feeds.run_feeds import FeedDone
from lakebed.feeds.worker import FeedWorker
from lakebed.model.feeds.tallies import Tally

TEXT = """
[feed.events]
files = "{folder}/*.json"
decoder = {{ format = "json" }}
[connection.by-type]
feed = "events"
route = {route}
{more}
"""
WEB_APP = '{ field = "type", tables = { WEB = "web", APP = "app" } }'
WITH_REST = '{ field = "type", tables = { WEB = "web", APP = "app" }, otherwise = "rest" }'
SCHEMAS = {
    "web": ({"id": "int64"}, {"url": "string?"}),
    "app": ({"id": "int64"}, {"screen": "int64"}),
    "rest": ({"id": "int64"}, {"type": "string?"}),
}
TABLES = tuple(SCHEMAS)


class Events:
    """A lake with tables of events, and a file of them that grows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        for name, (keys, values) in SCHEMAS.items():
            self.lake.create_table(name, lakebed.schema_of(row_keys=keys, values=values))
        self.failures: dict[str, LakebedError] = {}

    def text(self, route: str = WEB_APP, more: str = "") -> str:
        return TEXT.format(folder=self.folder, route=route, more=more)

    def write(self, *events: object) -> None:
        """Append records: bytes as text where it is one."""
        lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
        with (self.folder / "events.json").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def run(self, route: str = WEB_APP, more: str = "") -> dict[str, FeedDone]:
        """Run the feed from a file once. Returns what each table got."""
        feeds = lakebed.Feeds(self.lake, self.text(route, more))
        return self.taken(feeds)

    def feeds(self) -> lakebed.Feeds:
        """Return what the lake's definitions say."""
        return lakebed.Feeds(self.lake)

    def taken(self, feeds: lakebed.Feeds) -> dict[str, FeedDone]:
        def failed(done: FeedDone, error: LakebedError) -> None:
            self.failures[done.name] = error

        return {one.table: one for one in feeds.run(failed=failed)}

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.lake.table(table).query().read_all().to_pylist()

    def ids(self, table: str) -> list[int]:
        return sorted(row["id"] for row in self.rows(table))

    def quarantined(self) -> Counter[tuple[str, bytes]]:
        if "events_quarantine" not in self.lake.tables():
            return Counter()
        return Counter((row["verdict"], row["value"]) for row in self.rows("events_quarantine"))

    def ledger(self, table: str) -> Tally:
        total = Tally()
        for row in self.lake.table(table).ledger():
            total = total.plus(row.tally)
        return total

    def check(self) -> None:
        found = self.lake.fsck(deep=True).findings
        assert [one.code for one in found if one.severity != "notice"] == []


def turn_until(worker: FeedWorker[Any], is_so: Callable[[], bool]) -> bool:
    """Let a worker take turns until something is so, at most for twenty seconds. Returns whether it
    is."""
    end = time.monotonic() + 20
    while not is_so():
        if time.monotonic() >= end:
            return False
        worker.turn()
        time.sleep(0.01)
    return True


def work(events: Events, is_done: Callable[[], bool]) -> bool:
    """Let a new worker take turns until something is so: see `turn_until`."""
    worker = feed_worker(events.lake._app)
    try:
        return turn_until(worker, is_done)
    finally:
        worker.close()
