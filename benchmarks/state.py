"""The state of a table with a million files: its size, opening and reading; rates of commits."""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.figures import Figure, medians
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.model.files import FileReference, StoredFile, bounds_of
from lakebed.model.keys import TERMINATOR
from lakebed.model.names import (
    CommitId,
    FileName,
    JobId,
    PartitionId,
    TableId,
    TransactionNumber,
    digest_of,
    file_name,
)
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field, Schema
from lakebed.model.types import type_of
from lakebed.statestore.file_changes import AddFiles
from lakebed.statestore.head import TableHead
from lakebed.statestore.layout import open_cache
from lakebed.statestore.placing import own_region, reached_leaves
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.state import Moment, TableState
from lakebed.statestore.table_changes import CreateTable, create_table
from lakebed.statestore.transactions import Change, Transaction, finish_entry

FILES, LEAVES = 1_000_000, 50_000
ROUNDS = 5
COMMITS, GROUPS, GROUP = 400, 20, 100
OPENINGS = 3
KEY_DIGITS = 36
TABLE = TableId("t")


def run() -> list[Figure]:
    """Measure all; takes a minute, most of it to make the state."""
    with TemporaryDirectory(prefix="lakebed-state-") as folder:
        root = Path(folder)
        return [*_million(root), *_commits(root)]


def _million(root: Path) -> list[Figure]:
    clock = SystemClock()
    made = root / "made.sqlite"
    state = TableState(open_cache(made))
    leaves = _fill(state)
    (root / "leaves.json").write_text(json.dumps(leaves))
    for name in ("objects", "logs"):
        (root / name).mkdir()
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
        command = [sys.executable, "-m", "benchmarks.state_open", str(root)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        answers.append(json.loads(answer))
    median = {name: statistics.median(a[name] for a in answers) for name in answers[0]}
    size = (root / "cache.sqlite").stat().st_size
    return [
        Figure("state.open_seconds", median["open_seconds"], "s", 1),
        Figure("state.partition_ms", median["partition_ms"], "ms", 1),
        Figure("state.peak_mib", median["peak_mib"], "MiB", 400),
        Figure("state.bytes_per_file", size / FILES, "bytes", 200),
        Figure("state.snapshot_bytes_per_file", facts.size / FILES, "bytes"),
        Figure("state.snapshot_write_seconds", wrote, "s"),
    ]


def _fill(state: TableState) -> list[PartitionId]:
    """Write a million files to a new state; return its leaves."""
    chance = random.Random(1)
    points = sorted({_key(chance.getrandbits(4 * KEY_DIGITS)) for _ in range(LEAVES - 1)})
    with state.writing():
        _creation(tuple(points)).apply(state, Moment(TransactionNumber(1), SystemClock().now()))
        finish_entry(state, Moment(TransactionNumber(1), SystemClock().now()))
        regions = reached_leaves(state, state.head().root, (KeyRange(),))
        for leaf, region in regions:
            state.put_references(_references(chance, leaf, region, FILES // len(regions)))
    return [leaf for leaf, _ in regions]


def _references(
    chance: random.Random, leaf: PartitionId, region: KeyRange, files: int
) -> Iterator[FileReference]:
    least = _number(region.min) if region.min else 0
    most = _number(region.max) if region.max else 1 << (4 * KEY_DIGITS)
    for _ in range(files):
        ends = sorted(chance.randrange(least, most) for _ in range(2))
        name = FileName(
            chance.randrange(1_000_000).to_bytes(5, "big") + chance.randbytes(8) + bytes(3)
        )
        size = chance.randrange(10_000_000, 500_000_000)
        checksums = chance.getrandbits(64), chance.getrandbits(32)
        yield FileReference(
            StoredFile(name, size, size - 100_000, *checksums),
            leaf,
            chance.randrange(100_000, 5_000_000),
            bounds_of(_key(ends[0]), _key(ends[1])),
        )


def _commits(root: Path) -> list[Figure]:
    """Commits of one file each beside bare inserts, in turn; and grouped ones."""
    (root / "rates").mkdir()
    clock = SystemClock()
    state = TableState(open_cache(root / "rates" / "cache.sqlite"))
    log = SqliteTransactionLogs(root / "rates", clock).open(TABLE)
    head = TableHead(log, state, clock=clock, chance=random.Random(2))
    points = tuple(_key(i << (4 * KEY_DIGITS - 8)) for i in range(1, 256))
    head.commit(_transaction(head, 0, _creation(points)))
    leaves = [leaf for leaf, _ in reached_leaves(state, state.head().root, (KeyRange(),))]
    bare = _bare(root / "rates" / "bare.sqlite")
    chance = random.Random(3)
    rounds = []
    for _ in range(ROUNDS):
        ours = [_adding(head, chance, leaves) for _ in range(COMMITS)]
        grouped = [_adding(head, chance, leaves) for _ in range(GROUPS * GROUP)]
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


def _adding(head: TableHead, chance: random.Random, leaves: list[PartitionId]) -> Transaction:
    """Return a transaction that adds one file to one leaf."""
    leaf = chance.choice(leaves)
    region = own_region(head.state, leaf)
    (reference,) = _references(chance, leaf, region, 1)
    base = head.state.head().number
    name = file_name(base=base, job=JobId("bench"), run=chance.getrandbits(32), sequence=0)
    stored = msgspec.structs.replace(reference.file, name=name)
    reference = msgspec.structs.replace(reference, file=stored)
    return _transaction(head, chance.getrandbits(128), AddFiles((reference,)))


def _transaction(head: TableHead, id_: int, change: Change) -> Transaction:
    known = head.state.head()
    name = f"{id_:032x}"
    return Transaction(
        CommitId(name), digest_of(name.encode()), known.number, known.generation, (change,)
    )


def _creation(points: tuple[bytes, ...]) -> CreateTable:
    key = Field(name="key", type=type_of("string"), number=1)
    value = Field(name="value", type=type_of("string"), number=2)
    return create_table(Schema(row_keys=(key,), values=(value,)), {}, points)


def _key(number: int) -> bytes:
    """Return the encoding of a string key: 36 hexadecimal digits."""
    return f"{number:0{KEY_DIGITS}x}".encode() + TERMINATOR


def _number(key: bytes) -> int:
    return int(key[:KEY_DIGITS], 16)
