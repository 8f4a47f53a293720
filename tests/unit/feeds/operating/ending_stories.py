"""A lake with a feed that is dropped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lakebed
from lakebed.bootstrap.feeds.pipelines import connected_feed, landed_feed
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pipeline import Pipeline
from lakebed.inspection.log_listing import list_log
from lakebed.model.names import table_name
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import all_positions

ROWS = {"web": 1, "app": 1, "events_quarantine": 2, "events_landing": 3}
"""Of its tables, by the records that were taken."""
TEXT = """
[feed.events]
files = "{folder}/*.json"
decoder = {{ format = "json" }}
landing = true
[connection.by-type]
feed = "events"
route = {{ field = "type", tables = {{ WEB = "web", APP = "app" }} }}
policy = "FaultTolerant"
"""
TABLES = ("web", "app", "events_quarantine", "events_landing")
RECORDS = ('{"type": "WEB", "id": 1}', '{"type": "APP", "id": 2}', "no json")


def share(*_: object) -> OwnsAll:
    return OwnsAll()


def take_turns(pipeline: Pipeline[Any]) -> None:
    """Let it read and commit, a few times."""
    for count in range(6):
        pipeline.turn(is_draining=count % 2 == 1)


class Events:
    """A lake whose definitions lead a feed into a landing table and, by a route, into two more."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.app = self.lake._app
        for name in ("web", "app"):
            self.lake.create_table(name, lakebed.schema_of(row_keys={"id": "int64"}, values={}))
        self.feeds = lakebed.FeedDefinitions(self.lake)
        self.apply()
        self.write(*RECORDS)
        self.run()
        self.feeds.stop("events")

    def apply(self) -> list[str]:
        plan = self.feeds.apply(TEXT.format(folder=self.folder))
        self.feeds.start("events")
        return [one.name for one in plan if one.goes_on]

    def write(self, *lines: str) -> None:
        with (self.folder / "events.json").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def run(self) -> None:
        assert not [one.code for one in lakebed.Feeds(self.lake).run() if one.code]

    def table(self, name: str) -> OpenTable:
        return self.app.catalog.find(table_name(name))

    def rows(self) -> dict[str, int]:
        return {name: self.lake.table(name).query().read_all().num_rows for name in TABLES}

    def pipelines(self) -> list[Pipeline[Any]]:
        """Return what a worker runs by the definitions of now, and keeps when it falls asleep."""
        known = read_definitions(self.app.feeds.definitions)
        connected = known.connections("by-type")
        return [
            *(connected_feed(self.app, one, share) for one in connected),
            landed_feed(self.app, known.feed("events"), share),
        ]

    def positions(self) -> dict[str, int]:
        """Return how many positions each table knows."""
        found = {}
        for name in TABLES:
            head = self.table(name).head
            head.follow()
            with head.reading() as state:
                found[name] = sum(1 for _ in all_positions(state))
        return found

    def forgotten(self) -> Counter[str]:
        """Return how many entries of each table's log forget a connection."""
        found = Counter[str]()
        for name in TABLES:
            log = self.app.logs.open(self.table(name).id)
            for entry in list_log(log, entries_max=1_000).entries:
                found[name] += str(entry).count("forget connection")
        return found

    def check_forgotten(self) -> None:
        """Look that all is forgotten, once by each table; two connections share the quarantine."""
        assert self.positions() == dict.fromkeys(TABLES, 0)
        assert self.forgotten() == {name: 1 + (name == "events_quarantine") for name in TABLES}
        for name in TABLES:
            table = self.lake.table(name)
            assert (table.positions(), table.ledger(), table.gaps()) == ([], [], [])
            (status,) = self.lake.status(name)
            assert status.connections == ()
        found = self.lake.fsck(deep=True).findings
        assert [one.code for one in found if one.severity != "notice"] == []
        assert self.app.feeds.definitions.endings().waiting == ()
