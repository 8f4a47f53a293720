"""Landing tables forget items as their sources allow: of queues and pushes when there are many, of
objects only when their source cannot meet them again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds import policies
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import landed_feed
from lakebed.bootstrap.feeds.pushed_feeds import pushed_segments
from lakebed.bootstrap.local import open_local
from lakebed.config.feeds import feed_file
from lakebed.errors import InvalidError
from lakebed.feeds.known_definitions import FeedDefinition
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.landing.landing_table import LANDING_SCHEMA
from lakebed.landing.push.segments import segment_of_key
from lakebed.model.names import table_name
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.open_table import start_of

DAY = 86_400


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(tmp_path: Path, clock: VirtualClock) -> Iterator[App]:
    opened = open_local(tmp_path / "lake", clock=clock)
    yield opened
    opened.close()


def feed_of(source: str) -> FeedDefinition:
    text = f"[feed.orders]\nlanding = true\nsource = {{ {source} }}"
    (definition,), _ = definitions_in(feed_file(text))
    return definition


def items_in(app: App) -> int:
    head = app.catalog.find(table_name("orders_landing")).head
    head.follow()
    with head.reading() as state:
        return int(state.connection.execute("SELECT count(*) FROM items").fetchone()[0])


def push(app: App, clock: VirtualClock, definition: FeedDefinition, *keys: int) -> None:
    """Land a request of each key."""
    segments = pushed_segments(app.objects, definition)
    for key in keys:
        segments.put(segment_of_key(b"%d" % key, "lines", clock.now(), b"{}\n"))
    pipeline = landed_feed(app, definition, lambda _id, _policy: OwnsAll())
    pipeline.turn(is_draining=False)
    pipeline.turn(is_draining=True)
    pipeline.close()


def test_requests_are_forgotten_when_there_are_many(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "ITEMS_SPARED", 4)
    definition = feed_of("push = true, once_seconds = 3600")
    for key in range(6):
        push(app, clock, definition, key)
        clock.advance(600)
    assert items_in(app) == 6
    push(app, clock, definition, 6)
    assert items_in(app) == 7, "they came within the hour"
    clock.advance(3_600)
    push(app, clock, definition, 7)
    assert items_in(app) == 6, "the newest four, one of their minute, and the next one"
    push(app, clock, definition, 6)
    assert items_in(app) == 6, "it is known, and not landed again"
    push(app, clock, definition, 0)
    assert items_in(app) == 7


def remember(app: App, seconds: int) -> None:
    table = app.catalog.find(table_name("orders_landing"))
    with table.head.reading() as state:
        start = start_of(state)
    table.head.commit(table.own(start, ChangeSettings({"job_id_seconds_min": seconds})))


@pytest.mark.parametrize(
    ("source", "seconds"),
    [
        ('sqs = "https://sqs.eu-west-1.amazonaws.com/123456789012/q"', 4 * 3_600),
        ("push = true", DAY),
        ('socket = ":9000"', DAY),
        ('s3 = "s3://bucket/in/"', 16 * DAY),
    ],
)
def test_a_source_needs_a_landing_table_that_remembers_for_long_enough(
    app: App, source: str, seconds: int
) -> None:
    landing, definition = table_name("orders_landing"), feed_of(source)
    app.catalog.create(landing, LANDING_SCHEMA)
    policies.old_items_of(definition.feed, app.catalog.find(landing))
    remember(app, seconds)
    policies.old_items_of(definition.feed, app.catalog.find(landing))
    remember(app, seconds - 1)
    with pytest.raises(InvalidError, match=r"longer than the table .*feed\.orders\.source\.once_"):
        landed_feed(app, definition, lambda _id, _policy: OwnsAll())
    if source.startswith("s3"):
        by_name = feed_of(f'{source}, order = "name"')
        assert policies.old_items_of(by_name.feed, app.catalog.find(landing)) is None
