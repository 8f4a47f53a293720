"""Backups that are killed while processes write, compact and collect: each opens, and holds what
was acknowledged before it began."""

import random
import time
from pathlib import Path

import pytest

from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from tests.e2e.rows import wrong_jobs
from tests.e2e.test_kills import read_all
from tests.e2e.worker_processes import WorkerProcesses

WORKERS = ("ingest-a", "ingest-b", "keep-a")
DELAY_SECONDS_MAX = 0.8
KILLS = 3


def check_copy(workers: WorkerProcesses, path: Path, acknowledged: list[str]) -> None:
    with Lake(open_local(path, create=False, clock=workers.clock)) as lake:
        if not lake.tables():
            assert not acknowledged
            return
        damage = [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]
        assert not damage, damage
        assert not wrong_jobs(read_all(lake), acknowledged)


@pytest.mark.timeout(300)
def test_backups_that_are_killed_hold_what_was_acknowledged(folder: Path) -> None:
    workers = WorkerProcesses(folder, random.Random(7))
    backup = workers.backup
    try:
        for name in WORKERS:
            workers.start(name)
        workers.wait_ready()
        for _ in range(KILLS):
            workers.start("backup-a")
            workers.wait_ready()
            time.sleep(workers.rng.random() * DELAY_SECONDS_MAX)
            workers.kill("backup-a")
            if (backup / "lakebed.json").exists():
                check_copy(workers, backup, [])
        acknowledged = workers.acknowledged()
        with workers.open() as lake:
            assert lake.backup(backup).failure is None
        check_copy(workers, backup, acknowledged)
        workers.kill_all()
        with Lake(open_local(folder / "elsewhere", clock=workers.clock)) as other:
            assert other.restore(backup).failure is None
        check_copy(workers, folder / "elsewhere", acknowledged)
        assert not workers.complaints(), workers.complaints()
    finally:
        workers.kill_all()
