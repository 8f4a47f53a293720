"""Tables whose log is on AWS: how soon one with a million files is open, and rates of commits.

The log answers after 5 ms, objects come at 90 MB/s a connection.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure
from benchmarks.servers.amazon_table import clients_of, log_of, opened
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.slow_amazon import SlowAmazon
from benchmarks.servers.slow_amazon import serving as amazon_serving
from benchmarks.servers.slow_s3 import SlowS3
from benchmarks.servers.slow_s3 import serving as s3_serving
from benchmarks.servers.states import (
    KEY_DIGITS,
    TABLE,
    adding,
    commit_of,
    creation,
    fill,
    key_of,
    log_beginning,
)
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.errors import LakebedError
from lakebed.model.names import PartitionId, TableId
from lakebed.model.ranges import KeyRange
from lakebed.statestore.head import TableHead
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.placing import reached_leaves
from lakebed.statestore.table_state.state import TableState

OPENINGS, FOLLOWED = 3, 50
GROUPS, GROUP = 30, 150
"""Of a group's files the entry has less than 32 KiB: it stays in the log."""
SINGLES = 200
WRITE_UNITS_FLOOR = 4
"""Of a commit: a transaction takes two to write an entry, and two to check the entry before it."""
TABLES, COMMITS_EACH = 100, 4


def run() -> list[Figure]:
    """Measure all; takes two minutes."""
    with TemporaryDirectory(prefix="lakebed-amazon-") as name, amazon_serving() as amazon:
        root = Path(name)
        with s3_serving(root) as s3:
            return [*_million(root, s3, amazon), *_commits(root, amazon), *_tables(root, amazon)]


def _million(root: Path, s3: SlowS3, amazon: SlowAmazon) -> list[Figure]:
    """Open a table of a million files, and follow it commit by commit."""
    objects = root / "bench" / "lake"
    objects.mkdir(parents=True)
    state = TableState(open_cache(root / "made.sqlite"))
    leaves = fill(state)
    (root / "leaves.json").write_text(json.dumps(leaves))
    Snapshots(TABLE, LocalObjectStore(objects, SystemClock()), scratch=root).write(state)
    state.connection.close()
    log_beginning(log_of(clients_of(amazon), ServedObjects(objects, s3)))
    answers = []
    for _ in range(OPENINGS):
        for file in root.glob("cold.sqlite*"):
            file.unlink()
        command = [
            sys.executable,
            "-m",
            "benchmarks.programs.amazon_open",
            str(root),
            s3.url,
            amazon.url,
        ]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        answers.append(json.loads(answer))
    return [
        Figure("aws.state.cold_seconds", _median(answers, "seconds"), "s", 2),
        Figure("aws.state.cold_peak_mib", _median(answers, "peak_mib"), "MiB", 600),
        Figure("aws.state.follow_ms", _follow_ms(root, s3, amazon, leaves), "ms", 20),
    ]


def _median(answers: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(answer[name] for answer in answers)


def _follow_ms(root: Path, s3: SlowS3, amazon: SlowAmazon, leaves: list[PartitionId]) -> float:
    """Return how long a reader of a million files takes to learn of one new commit."""
    writer = opened(root, s3, amazon, cache="made")
    reader = opened(root, s3, amazon, cache="cold")
    rng, spent = random.Random(5), []
    reader.follow()
    for _ in range(FOLLOWED):
        writer.commit(adding(writer, rng, leaves))
        begun = time.perf_counter()
        reader.follow()
        spent.append((time.perf_counter() - begun) * 1000)
        assert reader.state.head() == writer.state.head(), "it has followed"
    return statistics.median(spent)


def _commits(root: Path, amazon: SlowAmazon) -> list[Figure]:
    """Rates of one table's commits, and what each costs in requests and units."""
    head = _table(root, amazon, TableId("rates"), clients_of(amazon))
    leaves = _leaves(head)
    rng = random.Random(3)
    singles = [adding(head, rng, leaves) for _ in range(SINGLES)]
    groups = [[adding(head, rng, leaves) for _ in range(GROUP)] for _ in range(GROUPS)]
    amazon.count()
    single_rate = _rate(SINGLES, lambda: [head.commit(one) for one in singles])
    counted = amazon.count()

    def grouped() -> None:
        for group in groups:
            answers = head.commit_group(group)
            assert not any(isinstance(answer, LakebedError) for answer in answers), answers

    files_rate = _rate(GROUPS * GROUP, grouped)
    together = amazon.count()
    return [
        Figure("aws.commit.commits_per_second", single_rate, "1/s"),
        Figure("aws.commit.requests_per_commit", counted.requests / SINGLES, "", 1),
        Figure("aws.commit.write_units_per_commit", counted.write_units / SINGLES, ""),
        Figure("aws.commit.write_units_per_commit_floor", WRITE_UNITS_FLOOR, ""),
        Figure("aws.commit.packed_commits_per_second", files_rate, "1/s", 1_000, "higher"),
        Figure("aws.commit.files_per_second", files_rate, "files/s", 5_000, "higher"),
        Figure("aws.commit.files_per_write_unit", GROUPS * GROUP / together.write_units, ""),
    ]


def _tables(root: Path, amazon: SlowAmazon) -> list[Figure]:
    """Writers of one table each beside as many writers of one table."""
    clients = clients_of(amazon)
    heads = [_table(root, amazon, TableId(f"many-{n}"), clients) for n in range(TABLES)]
    one = _writes([heads[0]] * TABLES)
    many = _writes(heads)
    return [
        Figure("aws.commit.one_table_100_writers_per_second", one, "1/s"),
        Figure("aws.commit.tables_100_per_second", many, "1/s"),
        Figure("aws.commit.tables_100_ratio", many / one, "", 0.9, "higher"),
    ]


def _writes(heads: Sequence[TableHead]) -> float:
    """Return commits a second of as many writers, each with a head that it may share."""
    commits = []
    for number, head in enumerate(heads):
        rng = random.Random(number)
        leaves = _leaves(head)
        commits.append([adding(head, rng, leaves) for _ in range(COMMITS_EACH)])

    def write(place: int) -> None:
        for commit in commits[place]:
            heads[place].commit(commit)

    def all_of_them() -> None:
        with ThreadPoolExecutor(len(heads)) as writers:
            list(writers.map(write, range(len(heads))))

    return _rate(len(heads) * COMMITS_EACH, all_of_them)


def _table(root: Path, amazon: SlowAmazon, table: TableId, clients: AmazonClients) -> TableHead:
    """Return the head of a new table with 256 leaves."""
    head = opened(root, None, amazon, cache=f"{table}", table=table, clients=clients)
    points = tuple(key_of(i << (4 * KEY_DIGITS - 8)) for i in range(1, 256))
    head.commit(commit_of(head, 0, creation(points)))
    return head


def _leaves(head: TableHead) -> list[PartitionId]:
    return [leaf for leaf, _ in reached_leaves(head.state, head.state.head().root, (KeyRange(),))]


def _rate(count: int, work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return count / (time.perf_counter() - begun)
