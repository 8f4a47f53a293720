"""Writers, a compactor and a reader at once; a cache that is taken away; a disk that is full."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.rows import rows_of, wrong_jobs
from tests.e2e.test_kills import check, read_all, settle
from tests.e2e.worker_processes import PROJECT, WorkerProcesses

SECONDS = 4.0
EXPECTED = {"again", "ack", "ran", "read", "expired", "ready"}
FULL = """
import os, resource, signal, sys
from pathlib import Path
from lakebed.errors import StorageFullError
from lakebed.lake import connect
from lakebed.statestore.answers import Retry
from tests.e2e.rows import rows_of
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lake = connect(sys.argv[1], create=False)
table = lake.table("t")
table._opened.head._retry = Retry(seconds_max=1.0)
def full(*_):
    raise OSError(28, "No space left on device")
kind = sys.argv[2]
if kind == "write":
    from lakebed.backends.local import object_store
    object_store.LocalObjectWriter.write.__globals__["sync_file"] = full
elif kind == "log":
    from lakebed.backends.local import transaction_logs
    import sqlite3
    def append(self, number, body, after=None):
        with self._database.writing() as connection:
            connection.execute("PRAGMA max_page_count = 1")
            for _ in range(1000):
                connection.execute("INSERT INTO entry VALUES (?, ?)", (-1 - _, bytes(4096)))
    transaction_logs.SqliteTransactionLog.append = append
try:
    table.ingest(rows_of("full-5"), job="full-5")
except StorageFullError as error:
    print("full", error.code(), flush=True)
os._exit(0)
"""


@pytest.mark.timeout(300)
def test_two_writers_a_compactor_and_a_reader_get_along(folder: Path) -> None:
    workers = WorkerProcesses(folder, random.Random(7), garbage_seconds_min=7_200)
    try:
        for name in ("ingest-a", "ingest-b", "keep-a", "read-a"):
            workers.start(name)
        workers.wait_ready()
        time.sleep(SECONDS)
        processes = dict(workers.processes)
        workers.kill_all()
        words = {line.partition(" ")[0] for m in processes.values() for line in m.lines}
        assert words <= EXPECTED, workers.complaints()
        assert all(processes[name].said("ack") for name in ("ingest-a", "ingest-b"))
        assert processes["read-a"].said("read")
        check(workers)
        shutil.rmtree(workers.path / "cache")
        check(workers)
        settle(workers)
    finally:
        workers.kill_all()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["write", "log"])
def test_a_full_disk_is_told_and_leaves_the_table_as_it_was(folder: Path, kind: str) -> None:
    workers = WorkerProcesses(folder, random.Random(7))
    with workers.open() as lake:
        lake.table("t").ingest(rows_of("before-1"), job="before-1")
        before = lake.table("t").query().read_all()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(workers.path), kind],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.stdout.strip() == "full storage-full", done.stderr
    with workers.open() as lake:
        assert lake.table("t").query().read_all() == before
        assert not [
            f for f in lake._app.inspection.fsck().run(deep=True).findings if f.severity == "damage"
        ]
        lake.table("t").ingest(rows_of("full-5"), job="full-5")
        assert not wrong_jobs(read_all(lake), ["before-1", "full-5"])
