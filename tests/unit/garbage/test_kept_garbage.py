"""A collection deletes what nobody needs, whatever is tagged or pinned meanwhile (H38)."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lakebed.backends.memory import MemoryObjectStore
from lakebed.errors import VersionExpiredError
from lakebed.garbage import collect as collect_module
from lakebed.garbage.collect import CollectGarbage, next_garbage
from lakebed.model.formats import OLDEST
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TableName, TransactionNumber
from lakebed.model.paths import file_path
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.table_changes import ChangeSettings, PutPin
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropTag,
    PinVersion,
    PutTag,
    RaiseHorizon,
)
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import horizon_of
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory

TABLE = TableId("t")
HOUR = 3_600


class Objects(MemoryObjectStore):
    """Objects that call back before the first of them is deleted."""

    before_delete: Callable[[], None] = staticmethod(lambda: None)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        self.before_delete()
        super().delete(paths)


class Collected:
    """A table whose files are objects, and one that collects."""

    def __init__(self) -> None:
        self.story = TableStory()
        self.story.when_committed(RaiseHorizon(TransactionNumber(0)))
        self.objects = Objects(self.story.clock)
        self.table = self.opened(self.story.another_head())

    def opened(self, head: TableHead) -> OpenTable:
        return OpenTable(id_=TABLE, name=TableName("t"), head=head, rng=random.Random(1))

    def given_files(self, **rows: int) -> TransactionNumber:
        for name in rows:
            self.objects.create(file_path(TABLE, self.story.file(name))).finish()
        return self.story.given_files("all", **rows)

    def collect(self) -> int:
        return CollectGarbage(objects=self.objects).run(self.table)

    def left(self) -> set[str]:
        """Return the names of files that are there."""
        return {
            name
            for name, file in self.story.files.items()
            if self.objects.size_of(file_path(TABLE, file.name)) is not None
        }


@pytest.fixture
def lake() -> Collected:
    return Collected()


def test_the_horizon_is_in_the_log_before_the_first_object_goes(lake: Collected) -> None:
    lake.given_files(a=1)
    cleared = lake.story.when_cleared()
    lake.story.clock.advance(2 * HOUR)
    seen: list[object] = []

    def look() -> None:
        with lake.story.head.reading() as state:
            seen.append(horizon_of(state))

    lake.objects.before_delete = look
    assert lake.collect() == 1
    assert seen == [cleared]


def test_a_pin_that_comes_before_the_delete_is_refused_or_keeps_all_that_it_needs(
    lake: Collected,
) -> None:
    first = lake.given_files(a=1)
    second = lake.story.when_cleared()
    third = lake.given_files(b=1)
    lake.story.when_cleared()
    last = lake.given_files(c=1)
    lake.story.clock.advance(2 * HOUR)
    refused = []

    def pin_all() -> None:
        for number in range(first, last + 1):
            try:
                lake.story.when_committed(PutTag(f"v{number}", TransactionNumber(number)))
            except VersionExpiredError:
                refused.append(number)

    lake.objects.before_delete = pin_all
    assert lake.collect() == 2
    assert lake.left() == {"c"}
    assert refused == [first, second, third], (
        "and the version that needs nothing that is gone is not"
    )


def test_a_collector_that_stalls_before_its_delete_takes_nothing_from_a_tag(
    lake: Collected,
) -> None:
    lake.given_files(a=1)
    lake.story.when_cleared()
    second = lake.given_files(b=1)
    lake.story.clock.advance(2 * HOUR)

    def others_go_on() -> None:
        lake.objects.before_delete = lambda: None
        lake.story.when_committed(PutTag("kept", second))
        lake.story.when_cleared()
        lake.story.clock.advance(2 * HOUR)
        other = lake.opened(lake.story.another_head())
        CollectGarbage(objects=lake.objects).run(other)

    lake.objects.before_delete = others_go_on
    lake.collect()
    assert lake.left() == {"b"}


def test_a_tag_keeps_its_files_until_it_is_dropped(lake: Collected) -> None:
    tagged = lake.given_files(a=1, b=1)
    lake.story.when_committed(PutTag("then", tagged))
    lake.story.when_claimed("job", "all", "a")
    lake.given_files(c=1)
    lake.story.when_cleared()
    for _ in range(3):
        lake.story.clock.advance(30 * 24 * HOUR)
        lake.table.head.record_time()
        lake.story.clock.advance(HOUR)
        lake.collect()
    assert lake.left() == {"a", "b"}
    lake.story.when_committed(DropTag("then"))
    assert lake.collect() == 2


def test_a_pin_ends_by_the_entry_and_what_it_kept_goes(lake: Collected) -> None:
    lake.given_files(a=1)
    until = Micros(lake.story.clock.now() + 5 * HOUR * MICROS_PER_SECOND)
    lake.story.when_committed(PutPin("reader", until))
    lake.story.when_cleared()
    lake.story.clock.advance(2 * HOUR)
    assert lake.collect() == 0
    lake.story.clock.advance(4 * HOUR)
    assert lake.collect() == 1
    assert lake.story.head.log_time()
    lake.story.head.follow()
    assert lake.story.state.pins() == []


def test_nothing_is_written_where_nothing_is_due(lake: Collected) -> None:
    lake.given_files(a=1)
    lake.story.when_committed(PutTag("then"))
    lake.story.when_cleared()
    lake.story.clock.advance(2 * HOUR)
    before = lake.story.state.head().number
    assert lake.collect() == 0
    lake.story.head.follow()
    assert lake.story.state.head().number == before


def test_thousands_of_kept_files_hold_up_no_collection(
    lake: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect_module, "FILES_AT_ONCE", 100)
    names = {f"k{n}": 1 for n in range(3_000)}
    lake.story.when_committed(PutTag("old", lake.given_files(**names)))
    lake.story.when_cleared()
    lake.given_files(**{f"d{n}": 1 for n in range(1_000)})
    lake.story.when_cleared()
    lake.story.clock.advance(2 * HOUR)
    looked = []
    monkeypatch.setattr(collect_module, "unneeded", _counted(collect_module.unneeded, looked))
    assert lake.collect() == 1_000
    assert len(lake.left()) == 3_000
    assert sum(looked) < 3 * (3_000 + 1_000), "each a few times, not once a group"


def _counted(unneeded: Callable[..., Any], looked: list[int]) -> Callable[..., Any]:
    def counted(state: TableState, kept: Any, **rest: Any) -> Any:  # noqa: ANN401 - as they are
        need = kept.need

        def watched(file: bytes, number: int) -> bool:
            looked.append(1)
            return bool(need(file, number))

        kept.need = watched
        return unneeded(state, kept, **rest)

    return counted


def test_a_lake_that_allows_no_horizon_is_collected_without_one() -> None:
    story = TableStory()
    head = TableHead(
        story.log,
        TableState(open_memory()),
        clock=story.clock,
        rng=story.rng,
        formats=lambda: OLDEST,
    )
    lake = Collected()
    lake.story, lake.objects = story, Objects(story.clock)
    lake.table = lake.opened(head)
    lake.given_files(a=1)
    story.when_committed(PutPin("reader", Micros(story.clock.now() + HOUR * MICROS_PER_SECOND)))
    story.when_cleared()
    lake.given_files(b=1)
    story.when_cleared()
    story.clock.advance(2 * HOUR)
    assert lake.collect() == 2
    with head.reading() as state:
        assert horizon_of(state) is None


def test_the_next_collection_is_told_by_what_nobody_needs(lake: Collected) -> None:
    assert next_garbage(lake.table) is None
    lake.given_files(a=1)
    lake.story.when_committed(PutTag("then"))
    lake.story.when_cleared()
    assert next_garbage(lake.table) is None, "a tag has no end, and its drop is a commit"
    until = Micros(lake.story.clock.now() + 9 * HOUR * MICROS_PER_SECOND)
    lake.story.when_committed(PinVersion("p", TransactionNumber(3), until))
    assert next_garbage(lake.table) == until
    lake.story.when_committed(BeginFollowing("f", None, Micros(until - 1)))
    assert next_garbage(lake.table) == until - 1
    lake.story.when_committed(ChangeSettings({"garbage_seconds_min": 7}))
    lake.story.when_committed(DropTag("then"))
