"""Tables of a route in one worker: what is read, and how often positions move."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.bootstrap.feeds import pipelines
from lakebed.feed import FeedDefinitions
from lakebed.feeds.reading.read_once import SharedSources
from lakebed.ports.record_source import RecordSource
from tests.unit.feeds.routing.brokers import CountingBroker, CountingSource
from tests.unit.feeds.routing.stories import TABLES, WITH_REST, Events, work

WAITS = """policy = "Waits"
[policy.Waits]
rotate_seconds = {seconds}
rotate_idle_seconds = 3600
"""


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> CountingBroker:
    """Return the broker that feeds read in place of their files."""
    broker = CountingBroker()
    monkeypatch.setattr(pipelines, "source_of", lambda *_: CountingSource(broker))
    return broker


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    given = Events(tmp_path)
    yield given
    given.lake.close()


def started(events: Events, more: str = "") -> FeedDefinitions:
    definitions = FeedDefinitions(events.lake)
    definitions.apply(events.text(WITH_REST, more))
    definitions.start("events")
    return definitions


def written(broker: CountingBroker, count: int) -> int:
    """Write records, of which the table `app` gets none. Returns their bytes."""
    kinds = ("WEB", "POS")
    payloads = [b'{"type": "%s", "id": %d}' % (kinds[n % 2].encode(), n) for n in range(count)]
    broker.write("a", *payloads)
    return sum(map(len, payloads))


def have_read(events: Events, count: int) -> bool:
    return all(events.ledger(table).read == count for table in TABLES)


def test_tables_of_one_worker_read_the_source_once(events: Events, broker: CountingBroker) -> None:
    size = written(broker, 500)
    started(events)
    assert work(events, lambda: have_read(events, 500))
    assert broker.bytes_read == size
    assert broker.opened == 0, "it is closed with the worker"
    assert [len(events.ids(table)) for table in ("web", "app", "rest")] == [250, 0, 250]


def test_what_each_table_gets_does_not_depend_on_it(
    events: Events, broker: CountingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(
        _self: object, _key: object, make: Callable[[], RecordSource[pa.RecordBatch]]
    ) -> RecordSource[pa.RecordBatch]:
        return make()

    monkeypatch.setattr(SharedSources, "join", alone)
    size = written(broker, 500)
    started(events)
    assert work(events, lambda: have_read(events, 500))
    assert broker.bytes_read == size * len(TABLES)
    assert [len(events.ids(table)) for table in ("web", "app", "rest")] == [250, 0, 250]


def test_a_table_that_gets_no_rows_moves_its_position_in_time(
    events: Events, broker: CountingBroker
) -> None:
    written(broker, 20)
    started(events, WAITS.format(seconds=0.5))
    begun = time.monotonic()
    assert work(events, lambda: events.ledger("app").filtered == 20)
    assert time.monotonic() - begun >= 0.5, "nothing but its age lets it be committed"
    (position,) = events.lake.table("app").positions()
    assert position.next == 20
