"""Keys that exist, looked up through the public API, from an S3 server that answers after 15 ms."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

import lakebed
from benchmarks.figures import Figure, medians, quick
from benchmarks.peers import lookup_peers
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import Served, made, objects_of, served
from benchmarks.servers.slow_s3 import LATENCY_MS
from benchmarks.shapes import SHAPES

ROWS = {"sys": 5_000_000, "wide": 2_000_000}
ONE_FILE_ROWS = 14_000_000
LOOKUPS, PEER_LOOKUPS, EXPLAINED, WARMING = 1_000, 30, 50, 400
KIB_MAX = {"sys": 256, "wide": 448}
OVER_LATENCY_MS_MAX = 3
PREDICATE_LOOKUPS = 500
PREDICATE_RATIO_MAX = 1.5
COLD_PROCESSES = 5
ABSENT = ("", "!", "zzzz", "~")
"""Below or above all UUIDs."""


def run(
    rows: int | None = None,
    rounds: int = 1,
    shapes: Sequence[str] = (),
    *,
    lookups: int = LOOKUPS,
    peer_lookups: int = PEER_LOOKUPS,
) -> list[Figure]:
    """Measure. rows: of each table, None: as it has them. shapes: none: sys, wide, and one_file.

    rounds: of all lookups. Takes six minutes, and two more to make the tables.
    """
    figures = []
    for name in shapes or (*ROWS, "one_file"):
        shape = SHAPES["sys" if name == "one_file" else name]
        count = rows or (ONE_FILE_ROWS if name == "one_file" else ROWS[name])
        folder = made(shape, count, files=1) if name == "one_file" else made(shape, count)
        if name == "sys":
            figures += _by_predicate(folder, lookups=min(lookups, PREDICATE_LOOKUPS))
        with served(folder) as table:
            figures += _figures(name, table, lookups * rounds, peer_lookups)
            if name == "sys":
                figures.append(_cold(table))
    return figures


def _figures(name: str, table: Served, lookups: int, peer_lookups: int) -> list[Figure]:
    keys, warm = table.keys[:-EXPLAINED], table.keys[-EXPLAINED:]
    rng = random.Random(table.bytes)
    for _ in range(min(len(keys), WARMING)):  # tails and their indexes, of no key's pages
        table.table.query(keys=[str(uuid.UUID(int=rng.getrandbits(128)))]).read_all()
    table.server.count()
    cpu = time.process_time()
    taken = [_seconds(lambda key=key: _found(table, key)) for key in _cycled(keys, lookups)]
    cpu = time.process_time() - cpu
    asked = table.server.count()
    absent = [table.table.query(keys=[key]).read_all().num_rows for key in ABSENT]
    assert not any(absent), "a key was found that is not there"
    absent_requests = table.server.count().requests
    told = [table.table.explain(keys=[key]) for key in warm]
    p50 = 1000 * statistics.median(taken)
    p99 = 1000 * statistics.quantiles(taken, n=100)[98]
    prefix = "lookup" if name == "sys" else f"lookup.{name}"
    over_max = None if name == "wide" else OVER_LATENCY_MS_MAX
    kib = asked.bytes / lookups / 1024
    figures = [
        Figure(f"{prefix}.dependent_reads", max(one.rounds for one in told), "", 1),
        Figure(f"lookup.{name}.kib", kib, "KiB", KIB_MAX.get(name)),
        Figure(f"lookup.{name}.requests", asked.requests / lookups, ""),
        Figure(f"{prefix}.p50_over_latency_ms", p50 - LATENCY_MS, "ms", over_max),
        Figure(f"{prefix}.p50_ms", p50, "ms"),
        Figure(f"{prefix}.p99_ms", p99, "ms"),
        Figure(f"{prefix}.cpu_ms", 1000 * cpu / lookups, "ms"),
        Figure(f"{prefix}.absent_requests", absent_requests, "", 0),
    ]
    for peer, make in lookup_peers.PEERS.items():
        seconds = _of_peer(make(table), table, keys[:peer_lookups])
        figures.append(Figure(f"{prefix}.ratio_to_{peer}", 1000 * seconds / p50, ""))
    return figures


def _by_predicate(folder: Path, *, lookups: int) -> list[Figure]:
    """Time the same lookups by a predicate as by `keys`, in turn, from files on this machine: the
    latency of a server would hide what a predicate costs."""
    keys = msgspec.msgpack.decode((folder / "keys").read_bytes(), type=list[str])
    field = SHAPES["sys"].schema.row_keys[0].name
    objects = ServedObjects(objects_of(folder), None)
    with lakebed.connect(folder / "directory", objects=objects) as lake:
        table = lake.table("bench")

        def once(**asked: object) -> tuple[float, pa.Table]:
            begun = time.perf_counter()
            rows = table.query(**asked).read_all()
            return time.perf_counter() - begun, rows

        taken = []
        for key in _cycled(keys, lookups):
            ways = (
                {"keys": [key]},
                {"where": f"{field} = '{key}'"},
                {"where": pc.field(field) == key},
            )
            seconds, answers = zip(*(once(**asked) for asked in ways), strict=True)
            assert answers[0].num_rows, f"{key} was not found"
            assert all(rows.equals(answers[0]) for rows in answers), "answers are equal"
            taken.append(seconds)
    by_key, by_text, by_expression = medians(taken)
    return [
        Figure("where.key.ratio_to_keys", by_text / by_key, "", PREDICATE_RATIO_MAX),
        Figure(
            "where.key.expression_ratio_to_keys", by_expression / by_key, "", PREDICATE_RATIO_MAX
        ),
        Figure("where.key.p50_ms", 1000 * by_text, "ms"),
    ]


def _found(table: Served, key: str) -> None:
    rows = table.table.query(keys=[key]).read_all()
    assert set(rows.column(0).to_pylist()) == {key}, f"{key} was not found"


def _of_peer(find: Callable[[str], int], table: Served, keys: Sequence[str]) -> float:
    """Return a peer's p50 in seconds. It has to find as many rows; the first key warms it up."""
    for key in keys[:2]:
        assert find(key) == table.table.query(keys=[key]).read_all().num_rows, "other rows"
    return statistics.median(_seconds(lambda key=key: find(key)) for key in keys)


def _cold(table: Served) -> Figure:
    """Time processes that begin with nothing: import, connect, open the state, first row."""
    command = [sys.executable, "-m", "benchmarks.programs.lookup_cold", str(table.folder)]
    command += [table.server.url, table.keys[0]]
    root = Path(__file__).parent.parent

    def once() -> None:
        subprocess.run(command, check=True, cwd=root, env=os.environ)

    taken = [_seconds(once) for _ in range(COLD_PROCESSES)]
    return Figure("lookup.cold_process_ms", 1000 * statistics.median(taken), "ms")


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _cycled(keys: Sequence[str], count: int) -> list[str]:
    return [keys[place % len(keys)] for place in range(count)]


if __name__ == "__main__":
    quick(__doc__, run)
