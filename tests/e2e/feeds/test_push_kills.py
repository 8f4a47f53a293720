"""Senders push into a feed by HTTP while receivers and workers are killed: a sender that repeats
until it hears success finds each of its records once."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.landing.push.segment_store import SegmentStore
from lakebed.model.names import ConnectionId
from lakebed.model.paths import segment_of
from tests.e2e.feeds.fed_lake import COMMAND, PACE, PROJECT, WAIT_SECONDS_MAX, FedLake
from tests.e2e.feeds.watcher import TakenRecords, Watcher, landed_ids, rows_of
from tests.servers.running import free_ports

KILLS, KILLS_MAX = 25, 200
SENDERS, RECEIVERS = 3, 2


class FedByPush(FedLake):
    """A lake that senders push to. heard: how many requests have heard success. successes: their
    records."""

    def __init__(self, folder: Path, source: str = "{ push = true }") -> None:
        super().__init__(folder, source)
        self.ports = free_ports(RECEIVERS)
        self.receivers: list[subprocess.Popen[bytes] | None] = [None] * RECEIVERS
        self.lock = threading.Lock()
        self.heard = self.repeated = 0
        self.successes: list[bytes] = []
        self.is_over = threading.Event()
        self.senders: list[threading.Thread] = []

    def close(self) -> None:
        self.is_over.set()
        for sender in self.senders:
            sender.join(WAIT_SECONDS_MAX)
        for index in range(RECEIVERS):
            self.kill_receiver(index)
        super().close()

    # receivers

    def start_receiver(self, index: int) -> None:
        what = ["-c", COMMAND, "--lake", str(self.path), "feed", "receive", "orders"]
        with self.errors.open("ab") as log:
            self.receivers[index] = subprocess.Popen(
                [sys.executable, *what, "--port", str(self.ports[index])],
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env={**os.environ, **self.environment},
            )

    def kill_receiver(self, index: int) -> None:
        process = self.receivers[index]
        if process is not None:
            process.kill()
            process.wait()
            self.receivers[index] = None

    # senders

    def start_senders(self) -> None:
        self.senders = [threading.Thread(target=self._send, args=(n,)) for n in range(SENDERS)]
        for sender in self.senders:
            sender.start()

    def _send(self, sender: int) -> None:
        number = 0
        while not self.is_over.is_set():
            with self.lock:
                records = [self.next_record() for _ in range(self.rng.randrange(1, 6))]
            number += 1
            self.push("\n".join(records).encode(), f"{sender}-{number}")

    def push(self, body: bytes, key: str) -> None:
        """Repeat a request until it hears success, at one receiver or another."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            assert time.monotonic() < end, "no receiver answers"
            with self.lock:
                port = self.rng.choice(self.ports)
            status = status_of(port, body, key)
            if status == 200:
                break
            assert status in {None, 429, 503}
            self.repeated += 1
            time.sleep(0.05)
        with self.lock:
            self.heard += 1
            self.successes += body.split(b"\n")

    def end_senders(self) -> None:
        self.is_over.set()
        for sender in self.senders:
            sender.join(WAIT_SECONDS_MAX)
            assert not sender.is_alive()

    # what is there

    def lost(self, app: App) -> Iterator[str]:
        """Yield records whose senders have heard success, and that are nowhere: asked in this
        order, each waits to be landed, or is."""
        with self.lock:
            heard = set(self.successes)
        gone = heard - _waiting_records(app)
        gone -= {value for (value,) in rows_of(app, "orders_landing", "value")}
        if gone:
            yield f"success was heard of {sorted(gone)[:10]}"

    def waiting(self) -> int:
        with lakebed.connect(self.path) as lake:
            return sum(1 for _ in lake._app.objects.list("feeds/"))

    def landed(self) -> list[bytes]:
        with lakebed.connect(self.path) as lake:
            return lake.table("orders_landing").query().read_all()["value"].to_pylist()


def _waiting_records(app: App) -> set[bytes]:
    """Return the records that are stored and not yet deleted behind their landing."""
    found = set[bytes]()
    for path in app.objects.list("feeds/"):
        name = segment_of(path)
        feed = ConnectionId(path.split("/")[1])
        segment = None if name is None else SegmentStore(app.objects, feed).read(name)
        if segment is not None:  # else it was landed meanwhile
            found.update(segment.body.split(b"\n"))
    return found


def status_of(port: int, body: bytes, key: str) -> int | None:
    """Return what one request hears; None: nothing."""
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as client:
        try:
            client.request("POST", "/orders", body, headers)
            answer = client.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return None
        return answer.status


@pytest.fixture
def fed(folder: Path) -> Iterator[FedByPush]:
    given = FedByPush(folder)
    yield given
    given.close()


def kill_all(fed: FedByPush, kills: int) -> None:
    for index in range(RECEIVERS):
        fed.start_receiver(index)
    fed.start_senders()
    fed.start(pace=PACE)
    records = TakenRecords(landed_ids)
    with Watcher(fed.path, records, fed.lost):
        kill_in_turn(fed, records, kills)
        fed.end_senders()
        fed.wait_until(lambda: fed.waiting() == 0 and fed.has_all())
        fed.wait_until(lambda: records.compared == fed.written)
    assert fed.repeated > 0
    for process in list(fed.running):
        fed.stop(process)
    landed = fed.landed()
    assert len(landed) == fed.written
    assert max(Counter(landed).values()) == 1
    fed.check()


def kill_in_turn(fed: FedByPush, records: TakenRecords, kills: int) -> None:
    """Kill receivers and, half as often, the worker, while senders push and it works."""
    for killed in range(kills):
        if killed % 10 == 9:
            fed.compact()
        heard, compared = fed.heard, records.compared
        end = time.monotonic() + WAIT_SECONDS_MAX
        while fed.heard <= heard + 5 or (killed % 10 == 1 and records.compared == compared):
            assert time.monotonic() < end, fed.errors.read_text()[-2_000:]
            time.sleep(0.02)
        time.sleep(fed.rng.uniform(0, 0.5))
        index = killed % RECEIVERS
        fed.kill_receiver(index)
        fed.start_receiver(index)
        if killed % 2:
            fed.kill_one()
            fed.start(pace=PACE)


@pytest.mark.timeout(600)
def test_each_push_is_landed_once_though_receivers_and_workers_are_killed(fed: FedByPush) -> None:
    kill_all(fed, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_and_double_no_push(fed: FedByPush) -> None:
    kill_all(fed, KILLS_MAX)


def test_a_record_that_was_answered_and_is_nowhere_is_seen(fed: FedByPush) -> None:
    fed.start_receiver(0)
    fed.push(fed.next_record().encode(), "a")
    with closing(open_local(fed.path, create=False)) as app:
        assert not list(fed.lost(app))
        app.objects.delete(list(app.objects.list("feeds/")))
        assert list(fed.lost(app))


def test_a_receiver_that_is_stopped_answers_what_it_has_and_ends(fed: FedByPush) -> None:
    fed.start_receiver(0)
    while (status := status_of(fed.ports[0], b'{"id": 1, "n": 7}', "a")) is None:
        time.sleep(0.05)
    assert status == 200
    process = fed.receivers[0]
    assert process is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS_MAX) == 0, fed.errors.read_text()[-2_000:]
    assert f"listening on 127.0.0.1, port {fed.ports[0]}" in fed.errors.read_text()


def write_until_heard(port: int, lines: list[bytes]) -> int:
    """Write lines through one socket. Returns how many are landed, as far as it was heard."""
    heard = b""
    try:
        with closing(socket.create_connection(("127.0.0.1", port), 20)) as connection:
            for line in lines:
                connection.sendall(line + b"\n")
                time.sleep(0.002)
            while not heard.endswith(b"OK %d\n" % len(lines)) and (some := connection.recv(4_096)):
                heard += some
    except OSError:
        pass
    answers = [line for line in heard.split(b"\n") if line.startswith(b"OK ")]
    return int(answers[-1].removeprefix(b"OK ")) if answers else 0


def test_what_a_sender_has_counted_through_a_socket_is_there_though_receivers_are_killed(
    folder: Path,
) -> None:
    fed = FedByPush(folder, '{ socket = ":9" }')
    try:
        fed.start_receiver(0)
        lines = [b'{"id": %d, "n": %d}' % (number, 7 * number) for number in range(600)]
        landed = kills = 0
        end = time.monotonic() + WAIT_SECONDS_MAX
        while landed < len(lines):
            assert time.monotonic() < end, fed.errors.read_text()[-2_000:]
            killer = threading.Timer(fed.rng.uniform(0.1, 0.8), fed.kill_receiver, (0,))
            if kills < 4:
                killer.start()
            landed += write_until_heard(fed.ports[0], lines[landed : landed + 200])
            if kills < 4:
                killer.join()
                kills += 1
                fed.start_receiver(0)
                time.sleep(1)
        fed.start(pace=PACE)
        fed.wait_until(lambda: fed.waiting() == 0)
        found = Counter(fed.landed())
        assert set(found) == set(lines)
        assert max(found.values()) <= 1 + kills, "no more than what was written again"
    finally:
        fed.close()
