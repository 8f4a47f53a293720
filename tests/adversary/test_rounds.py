"""One round of the random tester; more by `make adversary MINUTES=60`."""

import os
import secrets
from collections import Counter
from pathlib import Path

import pytest

from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from tests.adversary.rounds import FAULTS, never, run_round, table
from tests.adversary.tables import TABLES
from tests.adversary.world import World
from tests.e2e.worker import say
from tests.e2e.worker_processes import WorkerProcess

SEED = "LAKEBED_ADVERSARY_SEED"
SECONDS = 60.0


@pytest.mark.timeout(600)
def test_a_round_loses_nothing_doubles_nothing_and_lies_about_nothing() -> None:
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    say(f"{SEED}={seed}")
    counts = run_round(seed, SECONDS)
    say(table(counts))
    assert counts["jobs"] > 0
    assert counts["read"] > 0


@pytest.mark.timeout(600)
def test_the_lake_of_a_round_that_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: World) -> None:
        raise AssertionError("a row is there twice")

    monkeypatch.setattr(World, "settle", fail)
    with pytest.raises(AssertionError, match="twice"):
        run_round(1, 0.0, keep=tmp_path)
    (kept,) = tmp_path.iterdir()
    with Lake(open_local(kept, create=False)) as lake:
        assert set(TABLES) <= set(lake.tables())


def test_a_fault_that_never_happens_is_named() -> None:
    counts = Counter(FAULTS)
    assert never(counts) == []
    del counts["damage"]
    assert never(counts) == ["damage"]


def test_a_word_that_a_process_says_alone_is_heard() -> None:
    process = object.__new__(WorkerProcess)
    process.lines = ["ready", "backed-up", "backed-up-to x", "ack a-1 7"]
    assert (process.said("backed-up"), process.said("ack")) == ([""], ["a-1 7"])
