"""Backups that are killed while processes write, compact and collect: each opens, and holds what
was acknowledged before it began."""

import random
import time
from pathlib import Path

import pytest

from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from tests.e2e.party import Party
from tests.e2e.rows import wrong_jobs
from tests.e2e.test_kills import read_all

WORKERS = ("ingest-a", "ingest-b", "keep-a")
DELAY_SECONDS_MAX = 0.8
KILLS = 3


def check_copy(party: Party, path: Path, acknowledged: list[str]) -> None:
    with Lake(open_local(path, create=False, clock=party.clock)) as lake:
        if not lake.tables():
            assert not acknowledged
            return
        damage = [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]
        assert not damage, damage
        assert not wrong_jobs(read_all(lake), acknowledged)


@pytest.mark.timeout(300)
def test_backups_that_are_killed_hold_what_was_acknowledged(folder: Path) -> None:
    party = Party(folder, random.Random(7))
    backup = party.backup
    try:
        for name in WORKERS:
            party.start(name)
        party.wait_ready()
        for _ in range(KILLS):
            party.start("backup-a")
            party.wait_ready()
            time.sleep(party.rng.random() * DELAY_SECONDS_MAX)
            party.kill("backup-a")
            if (backup / "lakebed.json").exists():
                check_copy(party, backup, [])
        acknowledged = party.acknowledged()
        with party.open() as lake:
            assert lake.backup(backup).failure is None
        check_copy(party, backup, acknowledged)
        party.kill_all()
        with Lake(open_local(folder / "elsewhere", clock=party.clock)) as other:
            assert other.restore(backup).failure is None
        check_copy(party, folder / "elsewhere", acknowledged)
        assert not party.complaints(), party.complaints()
    finally:
        party.kill_all()
