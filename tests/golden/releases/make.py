"""Make the stored forms of a release: `python -m tests.golden.releases.make FOLDER`, run once over
the sources of that release. What it made is never made again; tests read it for ever. Its
digests are in `tests/golden/kept.txt` from when the next release is in the making.

`lake.tar.xz`: the directory of a lake. `expected.json`: what its tables hold. `more.json`: what
else it holds, since 0.3.0. `export.tar.xz`: an export of one of its tables. `messages.json`: bodies
of internal messages, the parameter of an instance, and what they say.

FOLDER is named after the release. That of a release without a tag may be made again.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.bulk_import.requests import ImportRequest
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.instance import InstanceId
from lakebed.lake import Lake
from lakebed.model.jobs import (
    CompactionMessage,
    TableMessage,
    encode_message,
    encode_table_message,
)
from lakebed.model.names import JobId, Micros, TableId
from lakebed.model.releases import THIS
from lakebed.ports.job_queue import Message
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from tests.golden.releases.make_more import make_bodies, make_feeds, make_versions
from tests.golden.releases.rows import rows_text

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = {"job_files_max": 3, "size_ratio": 2}
SCHEMA = {
    "format": 1,
    "row_keys": [{"name": "id", "type": "string"}, {"name": "n", "type": "int32"}],
    "sort_keys": [{"name": "at", "type": "timestamp[us, UTC]"}],
    "values": [
        {"name": name, "type": type_, "nullable": True}
        for name, type_ in (
            ("fare", "float32"),
            ("tags", {"list": "string"}),
            ("counts", {"map": ["string", "int64"]}),
            (
                "place",
                {"struct": [{"name": "x", "type": "float64"}, {"name": "y", "type": "float64"}]},
            ),
            ("raw", "binary"),
            ("ok", "bool"),
        )
    ],
}


def trips(first: int, count: int, schema: pa.Schema) -> pa.Table:
    """Return rows of the table `trips`."""
    rows = [
        {
            "id": f"{'az'[n % 2]}-{n:04d}",
            "n": n - 20,
            "at": START + timedelta(seconds=n),
            "fare": None if n % 5 == 0 else n / 4,
            "price": None if n % 5 == 0 else n / 4,
            "tags": None if n % 7 == 0 else [f"t{n % 3}"] * (n % 4),
            "counts": None if n % 6 == 0 else [(f"k{i}", n * i) for i in range(n % 3)],
            "place": None if n % 8 == 0 else {"x": n / 2, "y": -n / 2},
            "raw": None if n % 9 == 0 else bytes([n % 256, 0, 255]),
            "ok": None if n % 4 == 0 else n % 2 == 0,
            "note": None if n % 3 == 0 else f"note {n}",
        }
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def make_lake(folder: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Make a lake with what a lake may hold, and beside it an export. Returns rows of its tables,
    and what else is expected of it."""
    clock = VirtualClock()
    app = open_local(folder, clock=clock)
    lake = Lake(app)
    schema = lakebed.schema_from_json(SCHEMA)
    table = lake.create_table("trips", schema, split_points=["m"], settings=SETTINGS)
    for n in range(3):
        clock.advance(60)
        table.ingest(trips(40 * n, 40, table.arrow_schema), job=f"day-{n}")
    table.compact()
    lake.close()  # a process that has not watched the log tells it of a leap of its clock (H35)
    clock.advance(90_000)
    app = open_local(folder, clock=clock)
    lake = Lake(app)
    table = lake.table("trips")
    table.change_settings(size_ratio=3, job_files_max=5)
    clock.advance(700)  # by its uptime it is believed
    table.change_fields(
        rename={"fare": "price"}, add={"note": "string?"}, widen={"fare": "float64"}
    )
    table.ingest(trips(120, 40, table.arrow_schema), job="day-3")
    table.write_snapshot()
    table.change_settings(job_files_max=4)
    table.ingest(trips(160, 40, table.arrow_schema), job="day-4")

    keys = lakebed.schema_of(row_keys={"day": "date32"}, values={"rides": "int64"})
    sums = lake.create_table(
        "sums", keys, processing=lakebed.processing_from_json({"aggregate": {"rides": "sum"}})
    )
    for n in (1, 2):
        days = [START.date(), START.date() + timedelta(days=n)]
        sums.ingest(pa.table({"day": days, "rides": [n, 10 * n]}, schema=sums.arrow_schema))
    lake.create_table("gone", keys).ingest(pa.table({"day": [START.date()], "rides": [1]}))
    lake.drop_table("gone")
    lake.create_table("old", keys)
    lake.rename_table("old", "rides")
    lake.set_online("rides", online=False)
    clock.advance(60)
    more: dict[str, object] = {
        **make_versions(lake, folder.parent / "export"),
        **make_feeds(app, lake, folder.parent / "records"),
    }
    expected: dict[str, object] = {
        name: rows_text(lake.table(name).query().read_all()) for name in lake.tables()
    }
    queued = pa.table({"day": [START.date()], "rides": [7]}, schema=sums.arrow_schema)
    lake.table("rides").ingest(queued, job="queued", queued=True)
    app.create_jobs.run(app.catalog.find("trips"), everything=True)
    letters = app.queues.open("ingest")
    letters.send([Message(b'{"id":"dead","table":"trips","files":["s3://landing/a.csv"]}')])
    letters.give_up(letters.receive(messages_max=1, hidden_seconds=60)[0])
    lake.close()
    return expected, more


def make_messages(lake: Path) -> dict[str, object]:
    """Return internal messages, as hexadecimal digits, and the parameter of an instance."""
    clock = VirtualClock()
    clock.advance(10 * 86_400)
    app = open_local(lake, clock=clock)
    (commits,) = app.queues.open(COMMIT_QUEUE).receive(messages_max=1, hidden_seconds=0)
    app.close()
    request = ImportRequest(
        name="0a" * 16,
        table=TableId("1b" * 16),
        job=JobId("2026"),
        body='{"id": "2026", "table": "trips", "files": ["s3://landing/2026/"]}',
        digest="2c" * 16,
        at=Micros(1_767_225_600_000_000),
    )
    resources = InstanceResources(
        instance=InstanceId("dev"),
        bucket="lakebed-dev-data",
        log_table="lakebed-dev-log",
        registry_table="lakebed-dev-registry",
        tracker_table="lakebed-dev-tracker",
        queues={"compaction": "https://sqs/lakebed-dev-compaction.fifo"},
        quotas={"L-B99A9384": 10},
        release=THIS.name,
    )
    return {
        "compaction": encode_message(CompactionMessage(TableId("1b" * 16), JobId("j"))).hex(),
        "tick": encode_table_message(TableMessage(TableId("1b" * 16))).hex(),
        "commits": commits.body.hex(),
        "import request": msgspec.json.encode(request).hex(),
        "parameter": encode_resources(resources),
        **make_bodies(),
    }


def packed(folder: Path) -> bytes:
    """Return a directory as an archive that depends on nothing but its files."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(folder)))
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            if entry.isdir():
                archive.addfile(entry)
            elif entry.isfile() and not path.name.endswith(".lock"):
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return sink.getvalue()


def main(target: Path) -> None:
    """Write a release's folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        lake = Path(scratch) / "lake"
        expected, more = make_lake(lake)
        (target / "lake.tar.xz").write_bytes(packed(lake))
        (target / "export.tar.xz").write_bytes(packed(Path(scratch) / "export"))
        messages = make_messages(lake)
    for name, told in (
        ("expected.json", expected),
        ("more.json", more),
        ("messages.json", messages),
    ):
        text = json.dumps(told, indent=1, sort_keys=True) + "\n"
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
