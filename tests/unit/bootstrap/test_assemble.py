"""The services of a lake: a frozen record, loaded no further than it is asked for."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.backends.memory import (
    MemoryFeedRegistry,
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryLeases,
    MemoryObjectStore,
    MemorySecrets,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap import assemble as module
from lakebed.bootstrap.app import App
from lakebed.bootstrap.assemble import Stores, assemble
from lakebed.bootstrap.commit_queue import commit_queued
from lakebed.bootstrap.feeds.stores import FeedStores
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.memory import Memory
from lakebed.errors import InvalidError
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.tasks.failed_work import FailedTables

ROOT = Path(__file__).resolve().parents[3]

INSPECTIONS = {
    "fsck": "lakebed.inspection.fsck",
    "repair": "lakebed.inspection.repair",
    "status": "lakebed.inspection.lake_status",
    "job_history": "lakebed.inspection.job_history",
    "dead_letters": "lakebed.inspection.dead_letters",
    "redrive": "lakebed.inspection.redrive",
    "upgrade": "lakebed.upgrades.upgrade_lake",
}
"""The module of each service that few commands use."""

NEEDS = {"status": {"dead_letters"}, "redrive": {"dead_letters"}}
"""Services that another one is built on."""

LOADED = """
import sys
from lakebed.bootstrap.local import open_local
app = open_local({path!r})
before = [name for name in sys.modules if name.startswith("lakebed.inspection")]
assert not before, before
app.inspection.{service}()
app.close()
print(*sys.modules)
"""


def stores(closed: list[str]) -> Stores:
    clock = VirtualClock()
    return Stores(
        location="memory",
        clock=clock,
        rng=system_random(),
        objects=MemoryObjectStore(clock),
        logs=MemoryTransactionLogs(clock),
        registry=MemoryTableRegistry(),
        queues=MemoryJobQueues(clock),
        tracker=MemoryJobTracker(),
        feeds=FeedStores(
            MemoryLeases(),
            MemoryFeedRegistry(),
            MemorySecrets({}),
            HeldBytes(),
            TimeShare(),
            FailedTables(clock),
            {},
        ),
        close=lambda: closed.append("stores"),
    )


def opened(folder: Path, closed: list[str]) -> App:
    (folder / "states").mkdir(exist_ok=True)
    return assemble(stores(closed), states=folder / "states", spill=folder, memory=Memory())


def test_the_record_has_fields_that_nobody_sets_and_no_behaviour(tmp_path: Path) -> None:
    app = opened(tmp_path, [])
    with pytest.raises(dataclasses.FrozenInstanceError):
        app.location = "elsewhere"  # type: ignore[misc]  # what is refused
    fields = {field.name for field in dataclasses.fields(App)}
    assert {name for name in vars(App) if not name.startswith("_")} == fields
    assert {field.name for field in dataclasses.fields(app.inspection)} == set(INSPECTIONS)
    app.close()


@pytest.mark.parametrize("service", INSPECTIONS)
def test_a_service_of_inspection_is_loaded_when_it_is_asked_for(
    tmp_path: Path, service: str
) -> None:
    program = LOADED.format(path=str(tmp_path / "lake"), service=service)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split()) & set(INSPECTIONS.values())
    assert loaded == {INSPECTIONS[name] for name in {service} | NEEDS.get(service, set())}


@pytest.mark.parametrize("service", INSPECTIONS)
def test_a_service_of_inspection_is_built_once(tmp_path: Path, service: str) -> None:
    app = opened(tmp_path, [])
    build = getattr(app.inspection, service)
    assert build() is build()
    app.close()


def test_closing_ends_services_then_stores_once(tmp_path: Path) -> None:
    closed: list[str] = []
    app = opened(tmp_path, closed)
    app.close()
    app.close()
    assert closed == ["stores"]
    assert not app.spill.path.exists()
    with pytest.raises(InvalidError, match="the lake was closed"):
        app.heads.require_open()


def test_stores_are_closed_when_services_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise InvalidError("no memory")

    monkeypatch.setattr(module, "ParquetFiles", broken)
    closed: list[str] = []
    with pytest.raises(InvalidError, match="no memory"):
        opened(tmp_path, closed)
    assert closed == ["stores"]
    assert [path.name for path in tmp_path.iterdir()] == ["states"], "no folder is left over"


def test_who_only_commits_closes_its_own_states_and_no_others(tmp_path: Path) -> None:
    app = open_local(tmp_path / "lake")
    opened_heads = []

    def open_heads(bytes_max: int) -> object:
        opened_heads.append(app.open_heads(bytes_max))
        return opened_heads[-1]

    watched = dataclasses.replace(app, open_heads=open_heads)
    done = commit_queued(
        watched,
        states_bytes_max=1 << 20,
        wait_seconds=0,
        should_stop=lambda: False,
        on_progress=lambda _: None,
    )
    assert done == 0
    (own,) = opened_heads
    with pytest.raises(InvalidError, match="the lake was closed"):
        own.require_open()
    app.heads.require_open()
    app.close()


def test_only_a_lake_in_a_directory_has_local_parts(tmp_path: Path) -> None:
    local = open_local(tmp_path / "lake")
    assert local.local is not None
    assert local.local.directory.path == (tmp_path / "lake").resolve()
    local.close()
    memory = opened(tmp_path, [])
    assert memory.local is None
    memory.close()


def test_states_take_no_more_of_a_small_disk_than_their_share(tmp_path: Path) -> None:
    """Of a function, for instance, whose /tmp is 512 MiB."""
    with_bound = open_local(tmp_path / "lake", memory=Memory(states_bytes=1 << 20))
    assert with_bound.heads._bytes_max == 1 << 20
    with_bound.close()
    with pytest.raises(InvalidError, match="states_bytes is not a size"):
        open_local(tmp_path / "lake", memory=Memory(states_bytes=1))
