"""Items of objects are forgotten when no reader can meet their objects again, and not before: how
old they are, and whether their source is at work, says nothing."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds import policies
from lakebed.bootstrap.feeds.pipelines import landed_feed
from lakebed.bootstrap.local import open_local
from lakebed.decoding.listed_objects import _digest
from lakebed.errors import TableBusyError
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.pipeline import Pipeline
from lakebed.model.names import Micros, table_name
from lakebed.ports.source_files import SourceFile
from lakebed.statestore.log_entries.feed_changes import TakeItems
from lakebed.statestore.table_state.feed_records import connections, ledger_of
from tests.unit.feeds.pacing.test_landed_items import DAY, feed_of

HOUR = 3_600
IN = "s3://bucket/in/"
S3 = f's3 = "{IN}", list_seconds = 60'


class Bucket:
    """Objects of one record each, by their names, with the times at which they were put."""

    def __init__(self, folder: Path, clock: VirtualClock) -> None:
        self._folder, self._clock = folder, clock
        self._put: dict[str, Micros] = {}

    def put(self, *names: str) -> None:
        self._put |= dict.fromkeys(names, self._clock.now())

    def find(self, name: str) -> list[SourceFile]:
        return [SourceFile(IN + key, 3, "1", at) for key, at in sorted(self._put.items())]

    @contextmanager
    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Path]:
        path = self._folder / "object"
        path.write_bytes(b"{}\n")
        yield path


class Landed:
    """A feed of objects. Each worker is a process of its own, and the table is swept after it."""

    def __init__(self, folder: Path, source: str = S3) -> None:
        self.clock = VirtualClock()
        opened = open_local(folder / "lake", clock=self.clock)
        self.bucket = Bucket(folder, self.clock)
        self.app: App = dataclasses.replace(opened, source_files=lambda: self.bucket)
        self.source = source

    def worker(self) -> Pipeline[pa.RecordBatch]:
        return landed_feed(self.app, feed_of(self.source), lambda _id, _policy: OwnsAll())

    def work(self, hours: int = 0) -> None:
        """Let a new worker take what there is, then look again after each of some hours."""
        pipeline = self.worker()
        for hour in range(hours + 1):
            self.clock.advance(HOUR if hour else 0)
            pipeline.turn(is_draining=False)
            pipeline.turn(is_draining=True)
        pipeline.close()
        self.app.sweep.run(self.app.catalog.find(table_name("orders_landing")))

    def counted(self) -> tuple[int, int]:
        """Return how many records were landed, and how many items are known."""
        head = self.app.catalog.find(table_name("orders_landing")).head
        head.follow()
        with head.reading() as state:
            (known,) = connections(state)
            stored = sum(tally.stored for _, _, tally in ledger_of(state, known))
            (items,) = state.connection.execute("SELECT count(*) FROM items").fetchone()
        return stored, items


@pytest.fixture
def landed(tmp_path: Path) -> Iterator[Landed]:
    made = Landed(tmp_path)
    yield made
    made.app.close()


def test_an_object_a_day_is_taken_once_by_workers_that_begin_anew(landed: Landed) -> None:
    """Names fall, so a new object is the first of its pass, and its commit knows no later time than
    that of the one before it. Days without any come between."""
    taken = 0
    for day in range(50):
        if day % 7 < 5:
            landed.bucket.put(f"{1_000 - day}")
            taken += 1
        landed.work(13)
        landed.work()
        landed.clock.advance(11 * HOUR)
        assert landed.counted()[0] == taken, f"day {day}"
    assert landed.counted()[1] < taken, "and some are forgotten"


def test_a_part_that_is_quiet_keeps_its_items(tmp_path: Path) -> None:
    landed = Landed(tmp_path, f"{S3}, parts = 2")
    landed.bucket.put("a", "b", "c", "d", "e", "f")
    landed.work()
    names = [name for name in map(str, range(100)) if _digest(f"{IN}{name}")[-1] % 2]
    for name in names[:34]:
        landed.bucket.put(name)
        landed.work(13)
        landed.clock.advance(11 * HOUR)
    landed.work()
    assert landed.counted() == (40, 40)
    landed.app.close()


def test_what_was_put_while_no_worker_ran_makes_no_item_forgotten(landed: Landed) -> None:
    """The newest object that is taken is old still, so what came before it is looked at again."""
    for day in range(5):
        landed.bucket.put(f"a{day}")
        landed.work()
        landed.clock.advance(DAY)
    landed.bucket.put("b")
    landed.clock.advance(60 * DAY)
    landed.work(13)
    landed.work()
    assert landed.counted() == (6, 6)
    landed.bucket.put("c")
    landed.work(13)
    landed.bucket.put("d")
    landed.work(13)
    assert landed.counted() == (8, 8), "they were taken within the month, though they are older"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has many items at seven, and takes no more than eight."""
    monkeypatch.setattr(policies, "ITEMS_SPARED", 4)
    monkeypatch.setattr(TakeItems, "MAX", 8)


@pytest.mark.usefixtures("few")
def test_a_table_that_is_full_goes_on_with_a_shorter_time(landed: Landed) -> None:
    for number in range(8):
        landed.bucket.put(f"{100 - number}")
        landed.work()
        landed.clock.advance(12 * HOUR)
    landed.bucket.put("92")
    with pytest.raises(TableBusyError, match=r"too many items .*a shorter `once_seconds`"):
        landed.work()
    landed.clock.advance(11 * HOUR)
    with pytest.raises(TableBusyError):
        landed.work()
    landed.source = f"{S3}, once_seconds = 3600"
    for number in range(9, 30):
        landed.work()
        landed.bucket.put(f"{100 - number}")
        landed.clock.advance(12 * HOUR)
    landed.work()
    assert landed.counted()[0] == 30
    assert landed.counted()[1] <= 8


def test_items_are_forgotten_though_each_object_has_a_process_of_its_own(landed: Landed) -> None:
    landed.source = f"{S3}, once_seconds = 3600"
    for number in range(20):
        landed.bucket.put(f"{number:02}")
        landed.work()
        landed.clock.advance(8 * HOUR)
    assert landed.counted()[0] == 20
    assert landed.counted()[1] < 12


@pytest.mark.usefixtures("few")
def test_a_table_forgets_by_the_minute_when_it_has_many(tmp_path: Path) -> None:
    landed = Landed(tmp_path, f"{S3}, once_seconds = 3600")
    worker = landed.worker()
    for number in range(30):
        landed.bucket.put(f"{number}")
        landed.clock.advance(7 * HOUR)
        worker.turn(is_draining=False)
        worker.turn(is_draining=True)
    assert landed.counted()[0] == 30
    worker.close()
    landed.app.close()
