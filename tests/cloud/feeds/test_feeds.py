"""Feeds of an instance: tasks take what sources have while feeds are started, each record once."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from lakebed.cli.main import program
from lakebed.ports.leases import WorkerId
from tests.cloud.instance import FEED_QUEUE, INSTANCE, SOURCES, RunningInstance
from tests.cloud.users import put_bytes, stop_tasks

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("no_tasks_left")]
"""The first test also waits for the synthesis, and for the packages of bundles."""

SECONDS_MAX = 180
TASKS = f"lakebed-{INSTANCE}-feed-tasks"
OBJECTS = """
[feed.trips]
source = {{ s3 = "{sources}/trips/", list_seconds = 1 }}
decoder = {{ format = "json" }}
rotate_seconds = 1
[connection.trips]
feed = "trips"
table = "trips"
policy = "Prompt"
[policy.Prompt]
extends = "FaultTolerant"
rotate_seconds = 1
"""
MESSAGES = """
[feed.orders]
source = {{ sqs = "{queue}", hidden_seconds = 4 }}
decoder = {{ format = "json" }}
rotate_seconds = 10
rotate_idle_seconds = 5
"""
KAFKA = """
[feed.clicks]
decoder = { format = "json" }
[feed.clicks.source]
kafka = "127.0.0.1:9"
topics = ["clicks"]
security = { mechanism = "PLAIN", user = "lake", password = "secret:kafka" }
"""
SECRET = f"lakebed/{INSTANCE}/kafka"
MESSAGES_COUNT = 2_400
"""Names of so many are no small entry of a log."""
MORE_MESSAGES_COUNT = 5_600
"""They come while a task receives: for so long that it beats next, and asks how many wait."""


@pytest.fixture
def feeds(instance: RunningInstance, tmp_path: Path) -> Iterator["Operator"]:
    operator = Operator(instance, tmp_path)
    yield operator
    operator.drop_all()


class Operator:
    """Who types commands."""

    def __init__(self, instance: RunningInstance, folder: Path) -> None:
        self.instance = instance
        self.cloud = instance.cloud
        self._folder = folder
        self._feeds: list[str] = []

    def types(self, *words: str) -> str:
        """Return what a command says. It must work."""
        done = CliRunner().invoke(program, ["--at", INSTANCE, *words])
        assert done.exit_code == 0, f"{words}: {done.output}"
        return done.output

    def starts(self, feed: str, text: str) -> None:
        file = self._folder / f"{feed}.toml"
        file.write_text(text)
        self.types("feed", "apply", str(file))
        self._feeds.append(feed)
        self.types("feed", "start", feed)

    def drop_all(self) -> None:
        """Leave no definition to the next test."""
        for feed in self._feeds:
            if "running" in self.types("feed", "list"):
                CliRunner().invoke(program, ["--at", INSTANCE, "feed", "stop", feed])
            self.types("feed", "drop", feed, "--cascade")

    def ids(self, table: str) -> list[int]:
        with self.instance.lake() as lake:
            return sorted(lake.table(table).query().read_all()["id"].to_pylist())

    def until(self, what: str, is_so: Callable[[], bool]) -> None:
        """Let the cloud go on until something is so; say how feeds do when it never is."""
        end = self.cloud.clock.monotonic() + SECONDS_MAX
        while not is_so():
            if self.cloud.clock.monotonic() > end:
                pytest.fail(f"never: {what}\n{self.types('feed', 'status')}")
            self.cloud.clock.sleep(0.2)
            self.cloud.settle()

    def tick(self) -> int:
        """Let a minute pass with its schedule. Returns how many tasks run then."""
        self.cloud.advance(60, schedules=False)
        self.cloud.fire(TASKS)
        return len(self.cloud.tasks.running)


def trips(numbers: range) -> bytes:
    return b"".join(json.dumps({"id": n}).encode() + b"\n" for n in numbers)


@pytest.mark.slow
def test_tasks_run_while_a_feed_is_started_and_a_killed_one_is_replaced(feeds: Operator) -> None:
    instance, cloud = feeds.instance, feeds.cloud
    feeds.types("table", "create", "trips", "--row-key", "id:int64")
    assert feeds.tick() == 0, "no feed is defined"
    put_bytes(instance, "trips/a.json", trips(range(10)))
    feeds.starts("trips", OBJECTS.format(sources=SOURCES))
    assert feeds.tick() == 1
    feeds.until("the first records are rows", lambda: len(feeds.ids("trips")) == 10)
    assert feeds.tick() == 1, "one is enough"
    (task,) = cloud.tasks.running
    put_bytes(instance, "trips/b.json", trips(range(10, 20)))
    task.process.kill()
    assert cloud.finish_tasks(seconds_max=30)
    assert feeds.tick() == 1
    put_bytes(instance, "trips/c.json", trips(range(20, 30)))
    feeds.until("all records are rows", lambda: len(feeds.ids("trips")) >= 30)
    assert feeds.ids("trips") == list(range(30))
    feeds.types("feed", "stop", "trips")
    stop_tasks(instance)
    assert feeds.tick() == 0
    assert feeds.tick() == 0
    assert not cloud.failures


@contextmanager
def busy_worker(feeds: Operator, load: float) -> Iterator[None]:
    """Until the block ends, a worker of another network beats and asks for more."""
    said = [{"load": load, "workers_min": 1, "workers_max": 10, "is_asking": True}]
    worker, is_over = WorkerId("worker-busy"), threading.Event()
    with feeds.instance.lake() as lake:
        leases = lake._app.feeds.leases

        def beat() -> None:
            while not is_over.wait(0.5):
                leases.beat(worker, msgspec.json.encode(said))

        beating = threading.Thread(target=beat)
        beating.start()
        try:
            feeds.until("it beats", lambda: "worker-busy" in [b.worker for b in leases.workers()])
            yield
        finally:
            is_over.set()
            beating.join()
            leases.leave(worker)


@pytest.mark.slow
def test_a_second_task_is_started_while_workers_say_that_there_is_too_much(
    feeds: Operator,
) -> None:
    text = OBJECTS.format(sources=SOURCES).replace("FaultTolerant", "Elastic")
    text = text.replace("/trips/", "/busy/")
    feeds.types("table", "create", "trips", "--row-key", "id:int64")
    feeds.starts("trips", text)
    assert feeds.tick() == 1
    assert feeds.tick() == 1, "nothing is too much for one"
    with busy_worker(feeds, 2.4):
        assert feeds.tick() == 2, "and the busy one makes three"
    put_bytes(feeds.instance, "busy/a.json", trips(range(10)))
    feeds.until("the records are rows", lambda: feeds.ids("trips") == list(range(10)))
    stop_tasks(feeds.instance)
    assert feeds.tick() == 1, "a worker that left asks for nothing"
    assert not feeds.cloud.failures


def send(feeds: Operator, url: str, numbers: range) -> None:
    """Send messages to a queue, ten at a time."""
    sqs = feeds.cloud.client("sqs")
    for begin in range(numbers.start, numbers.stop, 10):
        entries = [
            {"Id": f"{n}", "MessageBody": json.dumps({"id": n})} for n in range(begin, begin + 10)
        ]
        assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")


def test_messages_of_a_queue_are_landed_once_and_deleted(feeds: Operator) -> None:
    queues, count = feeds.cloud.queues, MESSAGES_COUNT + MORE_MESSAGES_COUNT
    url = feeds.cloud.client("sqs").create_queue(QueueName=FEED_QUEUE)["QueueUrl"]
    send(feeds, url, range(MESSAGES_COUNT))
    feeds.starts("orders", MESSAGES.format(queue=url))
    assert feeds.tick() == 1
    feeds.until("some are in hand", lambda: queues()[FEED_QUEUE]["hidden"] > 0)
    send(feeds, url, range(MESSAGES_COUNT, count))
    feeds.until("the queue is empty", lambda: not any(queues()[FEED_QUEUE].values()))
    stop_tasks(feeds.instance)
    with feeds.instance.lake() as lake:
        values = lake.table("orders_landing").query().read_all()["value"].to_pylist()
    assert sorted(json.loads(value)["id"] for value in values) == list(range(count))


def test_a_feed_whose_secret_is_missing_fails_until_it_is_stored_and_started(
    feeds: Operator,
) -> None:
    """Then there is still no broker: that may pass, and the feed waits for it."""
    feeds.starts("clicks", KAFKA)
    assert feeds.tick() == 1
    feeds.until("it has failed", lambda: "secret-missing" in feeds.types("feed", "status"))
    feeds.until("the starter knows", lambda: "failed" in feeds.types("feed", "list"))
    secrets = feeds.cloud.client("secretsmanager")
    secrets.create_secret(Name=SECRET, SecretString="hunter2")
    try:
        feeds.types("feed", "start", "clicks")
        feeds.until("it has no broker", lambda: "unavailable" in feeds.types("feed", "status"))
        (task,) = feeds.cloud.tasks.running
        assert "hunter2" not in task.log.read_text()
    finally:
        secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)
