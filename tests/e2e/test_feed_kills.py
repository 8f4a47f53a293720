"""Feeds as processes: killed with -9 at random moments while files grow and are rotated, two at
once. Each line is landed once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.app import App
from tests.e2e.feeds.watcher import Watcher, positions, rows_of

KILLS, KILLS_MAX = 25, 200
DELAY_SECONDS_MAX = 1.2
LANDS_EVERY = 5
"""Kills: those before it may come before a process has done anything."""
SEEN_SECONDS_MAX = 60
COMMAND = [sys.executable, "-c", "from lakebed.cli.main import main; main()"]


class FeedProcesses:
    """Two processes that run the same feed, and a program that writes its files."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.feeds = folder / "feeds.toml"
        self.feeds.write_text(f'[feed.app]\nfiles = "{self.logs}/*.log*"\nrotate_bytes = 3000\n')
        lakebed.connect(folder / "lake", create=True).close()
        self.written = 0
        self.rotated = 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        how = ["--lake", str(self.folder / "lake"), "feed", "run", str(self.feeds)]
        with (self.folder / "stderr").open("ab") as log:
            self.running.append(
                subprocess.Popen([*COMMAND, *how, "--every", "0.1"], stdout=log, stderr=log)
            )

    def write(self) -> None:
        """Append some lines, one of them in two parts; now and then rename the file before."""
        path = self.logs / "app.log"
        if self.rng.random() < 0.2 and path.exists():
            self.rotated += 1
            path.rename(self.logs / f"app.log.{self.rotated}")
        for _ in range(self.rng.randrange(40)):
            line = f"line {self.written}\n".encode()
            cut = self.rng.randrange(len(line))
            with path.open("ab") as file:
                file.write(line[:cut])
                file.flush()
                file.write(line[cut:])
            self.written += 1

    def kill_one(self) -> None:
        process = self.running.pop(self.rng.randrange(len(self.running)))
        process.kill()
        process.wait()

    def compact(self) -> None:
        with lakebed.connect(self.folder / "lake") as lake:
            lake.run()

    def once(self) -> list[dict[str, object]]:
        how = ["--lake", str(self.folder / "lake"), "--json", "feed", "run", str(self.feeds)]
        done = subprocess.run(
            [*COMMAND, *how, "--once"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, object]] = json.loads(done.stdout)
        return found

    def check(self) -> None:
        with lakebed.connect(self.folder / "lake") as lake:
            rows = lake.table("app_landing").query().read_all()
            values = Counter(bytes(value).decode() for value in rows["value"].to_pylist())
            assert values == Counter(f"line {n}" for n in range(self.written))
            (status,) = lake.status("app_landing")
            (fed,) = status.connections
            assert (fed.read, fed.stored) == (self.written, self.written)
            assert fed.source_splits == len(list(self.logs.iterdir()))
            damage = [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]
            assert not damage


class LandedBytes:
    """Looks whether the rows before a position are all bytes of the file before it.

    compared: lines of the last look.
    """

    def __init__(self) -> None:
        self.compared = 0

    def __call__(self, app: App) -> Iterator[str]:
        ends, sizes = positions(app, "app_landing"), Counter[str]()
        rows = rows_of(app, "app_landing", "source_split", "position", "value")
        for split, position, value in rows:
            if position < ends.get(split, 0):
                sizes[split] += len(value) + 1
        for split, end in ends.items():
            if sizes[split] != end:
                yield f"{sizes[split]} bytes are landed of {end}: {split}"
        self.compared = len(rows)


@pytest.fixture
def processes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FeedProcesses]:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - of a failure
    given = FeedProcesses(tmp_path, seed)
    yield given
    for process in given.running:
        process.kill()
        process.wait()


def kill_again_and_again(processes: FeedProcesses, kills: int) -> None:
    lines = LandedBytes()
    with Watcher(processes.folder / "lake", lines) as watcher:
        for killed in range(kills):
            if killed % 10 == 9:
                processes.compact()  # what feeds do not do themselves, as a lake is to have it
            while len(processes.running) < 2:
                processes.start()
            end = time.monotonic() + processes.rng.random() * DELAY_SECONDS_MAX
            seen, is_to_land = lines.compared, killed % LANDS_EVERY == 0
            while time.monotonic() < end or (is_to_land and lines.compared == seen):
                watcher.check()
                processes.write()
                time.sleep(0.02)
            processes.kill_one()
        while processes.running:
            processes.kill_one()
        processes.write()
        processes.once()
        end = time.monotonic() + SEEN_SECONDS_MAX
        while lines.compared < processes.written:
            assert time.monotonic() < end, "it has not seen all lines"
            time.sleep(0.1)
    processes.check()
    assert (processes.folder / "stderr").read_bytes().count(b"Traceback") == 0


def test_each_line_is_landed_once_though_feeds_are_killed(processes: FeedProcesses) -> None:
    kill_again_and_again(processes, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_and_double_nothing(processes: FeedProcesses) -> None:
    kill_again_and_again(processes, KILLS_MAX)
