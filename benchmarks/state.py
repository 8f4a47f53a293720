"""The state of a table with a million files: its size, opening and reading; rates of commits."""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure, medians
from benchmarks.servers.states import (
    FILES,
    KEY_DIGITS,
    TABLE,
    adding,
    commit_of,
    creation,
    fill,
    key_of,
    log_beginning,
)
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.model.ranges import KeyRange
from lakebed.statestore.head import TableHead
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.placing import reached_leaves
from lakebed.statestore.table_state.state import TableState

ROUNDS = 5
COMMITS, GROUPS, GROUP = 400, 20, 100
OPENINGS = 3


def run() -> list[Figure]:
    """Measure all; takes a minute, most of it to make the state."""
    with TemporaryDirectory(prefix="lakebed-state-") as folder:
        root = Path(folder)
        return [*_million(root), *_commits(root)]


def _million(root: Path) -> list[Figure]:
    clock = SystemClock()
    made = root / "made.sqlite"
    state = TableState(open_cache(made))
    leaves = fill(state)
    (root / "leaves.json").write_text(json.dumps(leaves))
    for name in ("objects", "logs"):
        (root / name).mkdir()
    log_beginning(SqliteTransactionLogs(root / "logs", clock).open(TABLE))
    objects = LocalObjectStore(root / "objects", clock)
    snapshots = Snapshots(TABLE, objects, scratch=root)
    begun = time.perf_counter()
    snapshots.write(state)
    wrote = time.perf_counter() - begun
    state.connection.close()
    ((_, path),) = snapshots.newest_first()
    facts = objects.look(path)
    assert facts is not None
    answers = []
    for _ in range(OPENINGS):
        for file in root.glob("cache.sqlite*"):
            file.unlink()
        command = [sys.executable, "-m", "benchmarks.programs.state_open", str(root)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        answers.append(json.loads(answer))
    median = {name: statistics.median(a[name] for a in answers) for name in answers[0]}
    size = (root / "cache.sqlite").stat().st_size
    return [
        Figure("state.open_seconds", median["open_seconds"], "s", 1),
        Figure("state.partition_ms", median["partition_ms"], "ms", 1),
        Figure("count.million_files_ms", median["count_ms"], "ms", 20),
        Figure("state.peak_mib", median["peak_mib"], "MiB", 400),
        Figure("state.bytes_per_file", size / FILES, "bytes", 200),
        Figure("state.snapshot_bytes_per_file", facts.size / FILES, "bytes"),
        Figure("state.snapshot_write_seconds", wrote, "s"),
    ]


def _commits(root: Path) -> list[Figure]:
    """Commits of one file each beside bare inserts, in turn; and grouped ones."""
    (root / "rates").mkdir()
    clock = SystemClock()
    state = TableState(open_cache(root / "rates" / "cache.sqlite"))
    log = SqliteTransactionLogs(root / "rates", clock).open(TABLE)
    head = TableHead(log, state, clock=clock, rng=random.Random(2))
    points = tuple(key_of(i << (4 * KEY_DIGITS - 8)) for i in range(1, 256))
    head.commit(commit_of(head, 0, creation(points)))
    leaves = [leaf for leaf, _ in reached_leaves(state, state.head().root, (KeyRange(),))]
    bare = _bare(root / "rates" / "bare.sqlite")
    rng = random.Random(3)
    rounds = []
    for _ in range(ROUNDS):
        ours = [adding(head, rng, leaves) for _ in range(COMMITS)]
        grouped = [adding(head, rng, leaves) for _ in range(GROUPS * GROUP)]
        marks = [time.perf_counter()]
        for _ in range(COMMITS):
            bare.execute("BEGIN")
            bare.execute("INSERT INTO entry(body) VALUES (?)", (bytes(200),))
            bare.execute("COMMIT")
        marks.append(time.perf_counter())
        for transaction in ours:
            head.commit(transaction)
        marks.append(time.perf_counter())
        for start in range(0, len(grouped), GROUP):
            answers = head.commit_group(grouped[start : start + GROUP])
            assert all(isinstance(answer, int) for answer in answers)
        marks.append(time.perf_counter())
        spent = [after - before for before, after in pairwise(marks)]
        rounds.append([COMMITS / spent[0], COMMITS / spent[1], GROUPS * GROUP / spent[2]])
    bare_rate, rate, grouped_rate = medians(rounds)
    return [
        Figure("state.bare_commits_per_second", bare_rate, "1/s"),
        Figure("state.commits_per_second", rate, "1/s"),
        Figure("state.commits_ratio", rate / bare_rate, "", 0.6, "higher"),
        Figure("state.grouped_files_per_second", grouped_rate, "files/s", 15_000, "higher"),
    ]


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE entry(number INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection
