"""A lake with a feed that real processes work at. They are killed; each record is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import lakebed
from lakebed.backends.local.leases import SqliteLeases

PROJECT = Path(__file__).parents[3]
COMMAND = "from lakebed.cli.main import main; main()"
PACE = 4
BAD, BAD_SHARE = b"bad ", 0.05
WAIT_SECONDS_MAX = 120


class FedLake:
    """A lake with one feed `orders`, a table `orders`, and processes that run the feed.

    source: as its definition says it. rotate_seconds: how long a record waits at the most, and
    rotate_idle_seconds: how long when no more come.
    """

    def __init__(
        self,
        folder: Path,
        source: str,
        *,
        rotate_seconds: float = 1.0,
        rotate_idle_seconds: float = 0.2,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        seed = random.SystemRandom().randrange(1 << 32)
        print(f"seed {seed}")  # noqa: T201 - of a failure
        self.rng = random.Random(seed)
        self.path = folder / "lake"
        self.errors = folder / "stderr"
        self.errors.touch()
        self.environment = dict(environment or {})
        self.running: list[subprocess.Popen[bytes]] = []
        self.written = 0
        self.bad: set[int] = set()
        with lakebed.connect(self.path, create=True) as lake:
            schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})
            lake.create_table("orders", schema)
            definitions = lakebed.FeedDefinitions(lake)
            rotate = ROTATE.format(seconds=rotate_seconds, idle_seconds=rotate_idle_seconds)
            definitions.apply(DEFINED.format(source=source, rotate=rotate))
            definitions.start("orders")

    def next_record(self) -> str:
        """Return a record whose id no other has; now and then one that is no row."""
        id_ = self.written
        self.written += 1
        if self.rng.random() < BAD_SHARE:
            self.bad.add(id_)
            return f"{BAD.decode()}{id_}"
        return json.dumps({"id": id_, "n": id_ * 7})

    # processes

    def start(self, *, pace: int = 1, dies: bool = False) -> subprocess.Popen[bytes]:
        """Start a worker: the command itself, or one whose seconds pass faster. dies: by itself,
        after its first commit of messages."""
        what = ["-c", COMMAND, "--lake", str(self.path), "feed", "run"]
        if pace > 1:
            what = ["-m", "tests.e2e.feeds.feed_worker", str(self.path), str(pace)]
            what += ["dies"] if dies else []
        with self.errors.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *what],
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env={**os.environ, **self.environment},
            )
        self.running.append(process)
        return process

    def start_and_wait(self, *, pace: int = 1) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it is at work: before, a signal just ends it."""
        before = set(self.workers())
        process = self.start(pace=pace)
        self.wait_until(lambda: not set(self.workers()) <= before)
        return process

    def kill_one(self) -> None:
        process = self.running.pop(self.rng.randrange(len(self.running)))
        process.kill()
        process.wait()

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """SIGTERM: it commits, lets go, and ends well."""
        self.running.remove(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS_MAX) == 0, self.errors.read_text()[-2_000:]

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def kill_again_and_again(
        self, kills: int, between: Callable[[int], None], *, seconds_max: float = 2.5
    ) -> None:
        """Let two workers work, one of which is killed at a random moment, again and again.
        between: done from time to time while they do, with the count of kills before."""
        for killed in range(kills):
            if killed % 10 == 9:
                self.compact()  # what feeds do not do themselves, as a lake is to have it
            known = set(self.workers())
            fresh = 2 - len(self.running)
            for _ in range(fresh):
                self.start(pace=PACE)
            end: float | None = None
            while end is None or time.monotonic() < end:
                between(killed)
                time.sleep(0.05)
                if end is None and len(set(self.workers()) - known) >= fresh:  # one may come late
                    end = time.monotonic() + self.rng.uniform(0, seconds_max)
            self.kill_one()

    def compact(self) -> None:
        with lakebed.connect(self.path) as lake:
            lake.run()

    # what is there

    def owners(self) -> Counter[str]:
        """How many source splits each worker owns; those that were given up: of ""."""
        leases = SqliteLeases(self.path)
        return Counter(owner.worker for owner in leases.owners())

    def workers(self) -> list[str]:
        return [beat.worker for beat in SqliteLeases(self.path).workers()]

    def wait_until(self, is_so: Callable[[], bool]) -> float:
        """Return how many seconds it took."""
        begin = time.monotonic()
        while not is_so():
            assert time.monotonic() - begin < WAIT_SECONDS_MAX, self.errors.read_text()[-2_000:]
            assert all(process.poll() is None for process in self.running), "one has ended"
            time.sleep(0.1)
        return time.monotonic() - begin

    def ledger(self) -> tuple[int, int, int]:
        """Return how many records were read, stored and quarantined."""
        with lakebed.connect(self.path) as lake:
            (status,) = lake.status("orders")
            fed = status.connections
            return (
                sum(one.read for one in fed),
                sum(one.stored for one in fed),
                sum(one.quarantined for one in fed),
            )

    def has_all(self) -> bool:
        return self.ledger()[0] >= self.written

    def check(self) -> None:
        """Each record is once in the table or the quarantine, and the ledger says so."""
        with lakebed.connect(self.path) as lake:
            rows = lake.table("orders").query().read_all()
            assert rows["n"].to_pylist() == [7 * id_ for id_ in rows["id"].to_pylist()]
            good = sorted(set(range(self.written)) - self.bad)
            assert rows["id"].to_pylist() == good
            bad: list[int] = []
            if "orders_quarantine" in lake.tables():
                values = lake.table("orders_quarantine").query().read_all()["value"].to_pylist()
                bad = sorted(id_of(bytes(value)) for value in values)
            assert bad == sorted(self.bad)
            damage = [f for f in lake.fsck(deep=True).findings if f.severity == "damage"]
            assert not damage
        assert self.ledger() == (self.written, len(good), len(bad))
        assert b"Traceback" not in self.errors.read_bytes(), self.errors.read_text()[-4_000:]


def id_of(record: bytes) -> int:
    """Return the id of a record that `next_record` gave."""
    if record.startswith(BAD):
        return int(record.removeprefix(BAD))
    id_: int = json.loads(record)["id"]
    return id_


ROTATE = """
rotate_seconds = {seconds}
rotate_idle_seconds = {idle_seconds}
"""
DEFINED = """
[feed.orders]
source = {source}
decoder = {{ format = "json" }}
{rotate}
[connection.all]
feed = "orders"
table = "orders"
policy = "Quick"
[policy.Quick]
errors_in_row_max = 100000
{rotate}
"""
