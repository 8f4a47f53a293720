"""What lakes hold since 0.3.0: versions, deletes, feeds with their leases, exports. Part of
`python -m tests.golden.releases.make`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

import lakebed
from lakebed.bootstrap.app import App
from lakebed.feed import FeedDefinitions, Feeds
from lakebed.lake import Lake
from lakebed.landing.push.segments import encode_segment, segment_of_key
from lakebed.model.names import Micros
from lakebed.model.releases import THIS
from lakebed.ports.job_tracker import TaskReport
from lakebed.ports.leases import WorkerId
from lakebed.ports.processes import ProcessReport, encode_process

FEED = """
[feed.orders]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
[connection.orders-in]
feed = "orders"
table = "orders"
"""
AT = Micros(1_767_225_600_000_000)


def make_versions(lake: Lake, export: Path) -> dict[str, Any]:
    """Make a table whose rows were replaced and deleted, with a tag and a follower, and an export
    of it. Returns what is expected beside its rows."""
    table = lake.create_table(
        "prices",
        lakebed.schema_of(row_keys={"id": "int64"}, values={"seq": "int64", "price": "float64?"}),
        processing=lakebed.processing_from_json({"latest": {"sequence": "seq"}}),
    )

    def rows(first: int, count: int, seq: int) -> pa.Table:
        ids = range(first, first + count)
        columns = {"id": ids, "seq": [seq] * count, "price": [n / seq for n in ids]}
        return pa.table({k: list(v) for k, v in columns.items()}, schema=table.arrow_schema)

    table.upsert(rows(0, 60, 1), job="first")
    table.tag("before")
    table.upsert(rows(20, 20, 2), job="second")
    table.delete(ranges={"id": (50, 60)}, job="gone")
    follower = table.follow("reports", after=0)
    follower.acknowledge(next(iter(follower)))
    exported = table.export(export)
    return {
        "tags": [tag.name for tag in table.tags()],
        "before": table.count(as_of="before"),
        "follower": follower.position,
        "exported": exported.rows,
    }


def make_feeds(app: App, lake: Lake, folder: Path) -> dict[str, Any]:
    """Make a feed that has read a file, and what its workers keep. Returns what is expected."""
    folder.mkdir()
    table = lake.create_table("orders", lakebed.schema_of(row_keys={"id": "int64"}))
    FeedDefinitions(lake).apply(FEED.format(folder=folder))
    (folder / "a.json").write_text('{"id": 1}\n{"id": 2}\n{"none": 3}\n', encoding="utf-8")
    FeedDefinitions(lake).start("orders")
    Feeds(lake).run()
    app.feeds.leases.beat(WorkerId("worker-1"), b"a report")
    owner = app.feeds.leases.claim("orders-in:split", WorkerId("worker-1"), 7)
    app.tracker.report_task(
        TaskReport(task="t", kind="ingest", started=AT, at=AT, jobs=3, ended=True)
    )
    return {
        "positions": len(table.positions()),
        "ledger": [msgspec.to_builtins(row.tally) for row in table.ledger()],
        "owner": owner,
        "feeds": [one.feed for one in FeedDefinitions(lake).feeds()],
    }


def make_bodies() -> dict[str, str]:
    """Return bodies that processes hand to each other, as hexadecimal digits."""
    report = ProcessReport(
        process="p",
        program="function lakebed-dev-garbage-handle",
        release=THIS.name,
        reads=msgspec.structs.asdict(THIS.formats),
        started=AT,
        at=AT,
    )
    segment = segment_of_key(b"key", "lines", AT, b'{"id": 1}\n{"id": 2}\n')
    return {"process": encode_process(report).hex(), "segment": encode_segment(segment).hex()}
