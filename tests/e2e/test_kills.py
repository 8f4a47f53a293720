"""Processes killed with -9 at random moments: the table opens, and has what was acknowledged."""

import contextlib
import random
import shutil
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import VersionExpiredError
from lakebed.kernels.toolchain.presence import SWITCH, available
from lakebed.lake import Lake
from lakebed.model.paths import file_path
from tests.e2e.rows import SCHEMA, rows_of, wrong_jobs
from tests.e2e.worker_processes import WorkerProcesses

WORKERS = ("ingest-a", "ingest-b", "keep-a", "keep-b", "read-a")
DELAY_SECONDS_MAX = 0.6
POWER_CUT_EVERY = 4
READ_TRIES_MAX = 20


def check(workers: WorkerProcesses) -> None:
    """The lake is whole, with every acknowledged job once, and any other whole or not at all."""
    acknowledged = workers.acknowledged()
    with workers.open() as lake:
        report = lake._app.inspection.fsck().run(deep=True)
        damage = [f for f in report.findings if f.severity == "damage"]
        assert not damage, damage
        wrong = wrong_jobs(read_all(lake), acknowledged)
    assert not wrong, wrong
    assert not workers.complaints(), workers.complaints()


def read_all(lake: Lake) -> pa.Table:
    for _ in range(READ_TRIES_MAX):
        with contextlib.suppress(VersionExpiredError):
            return lake.table("t").query().read_all()
    raise AssertionError("every version expires while it is read")


def settle(workers: WorkerProcesses) -> None:
    """Send every job again, let all work be done, and look that nothing is left over."""
    jobs = set(workers.acknowledged())
    for name in ("ingest-a", "ingest-b"):
        jobs.add(f"{name}-{sum(job.startswith(name) for job in jobs)}")  # was under way
    with workers.open() as lake:
        lake.run()
        for job in sorted(jobs):
            lake.table("t").ingest(rows_of(job), job=job)
        assert not wrong_jobs(read_all(lake), jobs)
        for _ in range(3):  # an entry, its time remembered, then the floor
            workers.clock.ahead_seconds += 10_000
            lake.run()
        app = lake._app
        opened = lake.table("t")._opened
        with opened.head.reading() as state:
            known = {file_path(opened.id, r.file.name) for r in state.all_references()}
        assert {p for p in app.objects.list("") if "/files/" in p} == known
        assert not wrong_jobs(read_all(lake), jobs)
        report = app.inspection.fsck().run(deep=True)
        assert not report.findings
        assert not list((workers.path / "unfinished").iterdir())
    assert not list((workers.path / "spill").iterdir())


def kill_again_and_again(workers: WorkerProcesses, kills: int, *, everybody: bool) -> None:
    for name in WORKERS:
        workers.start(name)
    for kill in range(1, kills + 1):
        workers.wait_ready()
        time.sleep(workers.rng.random() * DELAY_SECONDS_MAX)
        if everybody or kill % POWER_CUT_EVERY == 0:
            workers.kill_all()
        if kill % POWER_CUT_EVERY == 0:
            shutil.rmtree(workers.path / "cache")
        elif not everybody:
            workers.kill(workers.rng.choice(WORKERS))
        check(workers)
        for name in WORKERS:
            if name not in workers.processes:
                workers.start(name)
    workers.kill_all()
    check(workers)
    settle(workers)


def kill_and_check(folder: Path, seed: int, *, kills: int) -> None:
    """Even seeds kill everybody at once, odd ones one process while the others go on."""
    with_others = seed % 2  # who leave a reader some time
    workers = WorkerProcesses(folder, random.Random(seed), garbage_seconds_min=7_200 * with_others)
    try:
        kill_again_and_again(
            workers, kills if with_others else kills // 2, everybody=not with_others
        )
    finally:
        workers.kill_all()


def switch_kernels(folder: Path, monkeypatch: pytest.MonkeyPatch, *, on: bool) -> None:
    """Let all processes use kernels, or none. They are compiled here: whoever is killed meanwhile
    would begin again."""
    monkeypatch.setenv(SWITCH, "always" if on else "off")
    with lakebed.connect(folder / "first") as lake:
        table = lake.create_table("t", SCHEMA)
        for job in ("a-0", "b-0"):
            table.ingest(rows_of(job))
        table.compact()
    assert ("lakebed.kernels.encoding" in sys.modules) or not on or not available()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
def test_kill_9_loses_nothing_doubles_nothing_and_leaves_nothing(
    folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_kernels(folder, monkeypatch, on=seed < 2)
    kill_and_check(folder, seed, kills=4)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # two minutes each where nothing else runs
@pytest.mark.parametrize("seed", range(100, 110))
def test_kill_9_two_hundred_times(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    switch_kernels(folder, monkeypatch, on=seed < 107)
    kill_and_check(folder, seed, kills=20)
