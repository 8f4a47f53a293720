"""Each release's stored forms are read, continued and found sound by this one, for ever (H14)."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakebed.backends.memory import MemoryObjectStore, VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.bulk_import.requests import ImportRequest, ImportRequests
from lakebed.config.deployments.instance_resources import decode_resources
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.errors import JobIdReusedError
from lakebed.feed import FeedDefinitions
from lakebed.lake import Lake, connect
from lakebed.landing.push.segments import decode_segment
from lakebed.model.formats import NEWEST, OLDEST
from lakebed.model.jobs import decode_message, decode_table_message
from lakebed.model.names import TransactionNumber
from lakebed.model.releases import RELEASES as KNOWN
from lakebed.model.releases import THIS, order_of
from lakebed.model.schema import schema_from_json
from lakebed.ports.processes import process_in
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.queued_commits import decode_commits
from lakebed.statestore.table_state.layout import STATE_FORMAT
from tests.golden.releases.make import SCHEMA, trips
from tests.golden.releases.rows import rows_text

RELEASES = sorted(
    (path.parent for path in Path(__file__).parent.glob("*/lake.tar.xz")),
    key=lambda folder: order_of(folder.name),
)
WITH_MORE = [folder for folder in RELEASES if (folder / "more.json").exists()]
DAYS = 3 * 86_400
"""After the lake's last entry: ids are remembered, nothing in a queue is in hand."""


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def release(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture
def folder(release: Path, tmp_path: Path) -> Path:
    """A copy of the release's lake."""
    with tarfile.open(release / "lake.tar.xz") as archive:
        archive.extractall(tmp_path / "lake", filter="data")
    return tmp_path / "lake"


@pytest.fixture
def app(folder: Path) -> Iterator[App]:
    clock = VirtualClock()
    clock.advance(DAYS)
    app = open_local(folder, create=False, clock=clock)
    yield app
    app.close()


def expected(release: Path) -> dict[str, list[str]]:
    told: dict[str, list[str]] = json.loads((release / "expected.json").read_text("utf-8"))
    return told


def rows(lake: Lake, name: str) -> list[str]:
    return rows_text(lake.table(name).query().read_all())


def without_cache(folder: Path) -> None:
    shutil.rmtree(folder / "cache")
    (folder / "cache").mkdir()


def test_there_is_a_release_to_read() -> None:
    assert [folder.name for folder in RELEASES] == [one.name for one in KNOWN]
    size = sum(file.stat().st_size for folder in RELEASES for file in folder.iterdir())
    assert size < 400_000


def test_its_rows_are_read_by_its_cache_which_is_kept(
    release: Path, folder: Path, app: App
) -> None:
    lake = Lake(app)
    caches = {path: path.stat().st_ino for path in (folder / "cache").glob("*.sqlite")}
    assert len(caches) >= 3
    assert lake.tables() == sorted(expected(release))
    assert {name: rows(lake, name) for name in lake.tables()} == expected(release)
    opened = app.catalog.find("trips")
    with opened.head.reading() as state:
        (layout,) = state.connection.execute("PRAGMA user_version").fetchone()
    assert layout == STATE_FORMAT
    assert {path: path.stat().st_ino for path in caches} == caches, "none was taken for damage"


def test_its_rows_are_read_from_snapshot_and_log(release: Path, folder: Path, app: App) -> None:
    without_cache(folder)
    lake = Lake(app)
    assert {name: rows(lake, name) for name in lake.tables()} == expected(release)


def test_its_snapshot_is_a_beginning(release: Path, folder: Path, app: App) -> None:
    without_cache(folder)
    (entry,) = [entry for entry in app.catalog.list() if entry.name == "trips"]
    ((number, path),) = app.heads.snapshots(entry.id).newest_first()
    assert app.heads.snapshots(entry.id).prove(path)
    app.logs.open(entry.id).truncate(TransactionNumber(number + 1))
    assert rows(Lake(app), "trips") == expected(release)["trips"]


def test_its_log_reports_and_letters_are_shown(app: App) -> None:
    lake = Lake(app)
    table = lake.table("trips")
    assert any(change.fields for change in table.history().changes)
    assert len(table.log(entries_max=100).entries) == table.state().number
    done = {report.job: report.event for report in table.jobs(events=["committed"], limit=100)}
    assert {"day-0", "day-4"} <= done.keys()
    (letter,) = lake.show_dead_letters(queues=["ingest"])
    assert (letter.table, letter.job) == ("trips", "dead")


def test_its_requests_are_remembered(app: App) -> None:
    table = Lake(app).table("trips")
    with pytest.raises(JobIdReusedError):
        table.ingest(trips(0, 1, table.arrow_schema), job="day-0")


def test_it_goes_on_with_us_and_is_sound(release: Path, app: App) -> None:
    lake = Lake(app)
    found = lake.fsck(deep=True)
    assert [f.code for f in found.findings if f.severity != "notice"] == []
    lake.run()
    assert rows(lake, "rides") == ['{"day": "2026-01-01", "rides": 7}'], "what was queued is done"
    for name in ("trips", "sums"):
        assert rows(lake, name) == expected(release)[name]
    table = lake.table("trips")
    table.ingest(trips(200, 40, table.arrow_schema), job="ours")
    table.write_snapshot()
    table.compact()
    lake.run()
    assert len(rows(lake, "trips")) == len(expected(release)["trips"]) + 40
    assert set(expected(release)["trips"]) <= set(rows(lake, "trips"))
    found = lake.fsck(deep=True)
    assert [f.code for f in found.findings if f.severity != "notice"] == []


def test_it_keeps_to_its_forms_until_they_are_raised(release: Path, app: App) -> None:
    lake = Lake(app)
    before = app.registry.formats()
    status = lake.upgrade_status()
    assert (status.allowed, status.newest) == (before or OLDEST, NEWEST)
    lake.create_table("more", lake.table("trips").schema)
    assert app.registry.formats() == before, "a further table makes it no new lake"
    assert lake.finish_upgrade().allowed == NEWEST == app.registry.formats()
    assert rows(lake, "trips") == expected(release)["trips"]


def test_it_is_of_the_forms_that_its_release_writes(release: Path, app: App) -> None:
    (known,) = [one for one in KNOWN if one.name == release.name]
    assert (app.registry.formats() or OLDEST) == known.formats
    entries = [
        body[0]
        for entry in app.catalog.list()
        for _, body in app.logs.open(entry.id).read_after(TransactionNumber(0))
    ]
    assert max(entries) <= known.formats.entry
    if release in WITH_MORE:
        assert max(entries) == known.formats.entry, "an entry of the newest form is among them"
    assert Lake(app).upgrade_status().gate == release.name


@pytest.mark.parametrize("release", WITH_MORE, indirect=True, ids=lambda folder: folder.name)
def test_its_versions_feeds_and_leases_are_read(release: Path, app: App) -> None:
    more: dict[str, Any] = json.loads((release / "more.json").read_text("utf-8"))
    lake = Lake(app)
    prices, orders = lake.table("prices"), lake.table("orders")
    assert [tag.name for tag in prices.tags()] == more["tags"]
    assert prices.count(as_of="before") == more["before"]
    assert prices.follow("reports").position == more["follower"]
    assert len(orders.positions()) == more["positions"]
    assert [msgspec.to_builtins(row.tally) for row in orders.ledger()] == more["ledger"]
    definitions = FeedDefinitions(lake)
    assert [one.feed for one in definitions.feeds()] == more["feeds"]
    assert [one.connection.name for one in definitions.describe("orders")[1]] == ["orders-in"]
    owner = app.feeds.leases.owner("orders-in:split")
    assert owner is not None
    assert (owner.number, owner.worker) == (more["owner"], "worker-1")
    (beat,) = [one for one in app.feeds.leases.workers() if one.worker == "worker-1"]
    assert beat.report == b"a report"
    assert app.feeds.leases.claim("orders-in:split", beat.worker, 0) > owner.number
    assert ("t", 3, True) in [(task.task, task.jobs, task.ended) for task in lake.tasks()]


@pytest.mark.parametrize("release", WITH_MORE, indirect=True, ids=lambda folder: folder.name)
def test_its_export_is_taken_in(release: Path, app: App, tmp_path: Path) -> None:
    with tarfile.open(release / "export.tar.xz") as archive:
        archive.extractall(tmp_path / "export", filter="data")
    lake = Lake(app)
    lake.restore_table("again", tmp_path / "export", verify=True)
    assert rows(lake, "again") == expected(release)["prices"]


@pytest.mark.parametrize("release", WITH_MORE, indirect=True, ids=lambda folder: folder.name)
def test_what_its_processes_say_and_what_was_pushed_is_read(release: Path) -> None:
    told: dict[str, Any] = json.loads((release / "messages.json").read_text("utf-8"))
    report = process_in(bytes.fromhex(told["process"]))
    assert report is not None
    (known,) = [one for one in KNOWN if one.name == release.name]
    assert (report.release, report.reads) == (known.name, msgspec.to_builtins(known.formats))
    segment = decode_segment(bytes.fromhex(told["segment"]), "a path")
    assert segment.body == b'{"id": 1}\n{"id": 2}\n'
    resources = decode_resources(told["parameter"], InstanceId("dev"))
    assert (resources.release, resources.quotas) == (known.name, {"L-B99A9384": 10})


def test_this_program_is_the_last_release() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{THIS.name}"\n' in text
    assert THIS.formats == NEWEST


def test_a_new_lake_allows_all_that_we_write(tmp_path: Path) -> None:
    with connect(tmp_path / "new") as lake:
        lake.create_table("trips", schema_from_json(SCHEMA))
        assert lake.upgrade_status().is_finished()
        assert lake._app.registry.formats() == NEWEST


def test_its_messages_and_parameter_are_read(release: Path) -> None:
    told: dict[str, Any] = json.loads((release / "messages.json").read_text("utf-8"))
    body = {name: bytes.fromhex(text) for name, text in told.items() if name != "parameter"}
    message = decode_message(body["compaction"])
    assert (message.table, message.job) == ("1b" * 16, "j")
    assert decode_table_message(body["tick"]).table == "1b" * 16
    (commit,) = decode_commits(body["commits"]).commits()
    assert (commit.requester.job, commit.requester.kind, commit.requester.rows) == (
        "queued",
        "ingest",
        1,
    )
    assert isinstance(commit.transaction.changes[0], AddFiles)
    resources = decode_resources(told["parameter"], InstanceId("dev"))
    assert resources.bucket == "lakebed-dev-data"
    assert resources.queues == {"compaction": "https://sqs/lakebed-dev-compaction.fifo"}
    assert parameter_name(resources.instance) == "/lakebed/dev"
    objects = MemoryObjectStore(VirtualClock())
    writer = objects.create(f"requests/{'0a' * 16}.json")
    writer.write(body["import request"])
    writer.finish()
    (request,) = ImportRequests(objects).open()
    assert isinstance(request, ImportRequest)
    assert msgspec.json.decode(request.body)["files"] == ["s3://landing/2026/"]
