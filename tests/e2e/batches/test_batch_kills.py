"""Processes that submit files, make batches and take them in are killed with -9 before and after
their steps: each file becomes rows once, or is refused."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap import housekeeping
from lakebed.lake import Lake

SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
SETTINGS = {
    "batch_seconds_max": 0,
    "batch_files_max": 3,
    "redispatch_seconds": 1,
    "pending_seconds_max": 0,
}
STEPS = (
    "SqliteFileBatches.submit",
    "SqliteFileBatches.plan",
    "SqliteFileBatches.take",
    "SqliteFileBatches.remove",
    "SqliteJobQueue.send",
    "SqliteFileBatches.finish",
    "RowsOfFiles.rows",
    "SqliteFileBatches.refuse",
    "TableHead.commit",
    "SqliteJobQueue.delete",
    "SqliteFileBatches.end",
)
KILLS = 5
"""Of each of five seeds: 25 in `make test`."""
HIDDEN_SECONDS = 1.0
"""Of a message that a killed process had in hand."""
ROUNDS_MAX, PAUSE_SECONDS = 100, 0.3
WORKER = """
import os, signal, sys
import lakebed
from lakebed.bootstrap import housekeeping
from lakebed.backends.local.file_batches import SqliteFileBatches
from lakebed.backends.local.job_queues import SqliteJobQueue
from lakebed.ingest.submitted_rows import RowsOfFiles
from lakebed.statestore.head import TableHead

path, landing, step, moment, left = *sys.argv[1:5], int(sys.argv[5])
housekeeping.HIDDEN_SECONDS = float(sys.argv[6])
owner, name = step.split(".")
owner = globals()[owner]
act = getattr(owner, name)

def killed(*given, **named):
    global left
    left -= 1
    if left or moment == "before":
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*given, **named)
    done = act(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(owner, name, killed)
with lakebed.connect(path) as lake:
    lake.table("t").submit(landing)
    lake.run(failed=lambda _: None)
"""


class BatchKills:
    """A lake, a folder that files are put into, and processes that are killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.path = folder / "lake"
        self.landing = folder / "landing"
        self.landing.mkdir()
        self.wanted: Counter[str] = Counter()
        self.bad: set[str] = set()
        self._last = 0
        with lakebed.connect(self.path) as lake:
            lake.create_table("t", SCHEMA, settings=SETTINGS)

    def put_files(self) -> None:
        """Put some files whole, as `mv` does; one of six is no rows of the table."""
        for _ in range(self.rng.randrange(2, 6)):
            self._last += 1
            path = self.landing / f"f{self._last}.csv"
            is_bad = self.rng.random() < 1 / 6
            rows = [f"{self._last}-{n}" for n in range(self.rng.randrange(1, 4))]
            value = "none" if is_bad else "1"
            text = "".join(f"{row},{value}\n" for row in rows)
            hidden = self.landing / f"_{path.name}"
            hidden.write_text(f"id,n\n{text}")
            hidden.rename(path)
            if is_bad:
                self.bad.add(str(path))
            else:
                self.wanted.update(rows)

    def run_and_kill(self) -> bool:
        """Let a process do what is due, and kill it on the way. False: it did not come there."""
        step, moment = self.rng.choice(STEPS), self.rng.choice(("before", "after"))
        at = str(self.rng.choice((1, 1, 2)))
        paths = [os.fspath(self.path), os.fspath(self.landing)]
        given = [*paths, step, moment, at, str(HIDDEN_SECONDS)]
        command = [sys.executable, "-c", WORKER, *given]
        died = subprocess.run(command, check=False, timeout=300, capture_output=True, text=True)
        assert died.returncode in {0, -signal.SIGKILL}, died.stderr
        return died.returncode != 0

    def finish(self, lake: Lake) -> None:
        """Do all that is left."""
        lake.table("t").submit(os.fspath(self.landing))
        for _ in range(ROUNDS_MAX):
            lake.run(failed=lambda _: None)
            if not lake._app.batches or not lake._app.batches.tables():
                return
            time.sleep(PAUSE_SECONDS)
        raise AssertionError(f"left: {lake.table('t').batches(limit=99)}")

    def check(self) -> None:
        """Look at the rows, and at what people are shown."""
        with lakebed.connect(self.path) as lake:
            self.finish(lake)
            table = lake.table("t")
            found = Counter(table.query(columns=["id"]).read_all().column("id").to_pylist())
            assert found == self.wanted
            batches = table.batches(limit=10_000)
            assert {one.state for one in batches} == {"committed"}
            assert {one.file for batch in batches for one in batch.refused} == self.bad
            assert not [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
def test_kill_9_between_the_steps_of_batches_loses_no_file_and_doubles_none(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "HIDDEN_SECONDS", HIDDEN_SECONDS)
    story = BatchKills(tmp_path, seed)
    kills = 0
    for _ in range(3 * KILLS):
        story.put_files()
        kills += story.run_and_kill()
        if kills == KILLS:
            break
    assert kills == KILLS
    story.check()
