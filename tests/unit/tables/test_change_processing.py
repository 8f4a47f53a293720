"""What a table does with its rows becomes something else: right for all rows, or refused."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed import AgeOff, Latest, Processing, field
from lakebed.backends.memory.clock import START, VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import GenerationError, InvalidError
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.model.predicates.language import Predicate
from lakebed.table import Table

DAY = 86_400
NOW = START // MICROS_PER_SECOND
SCHEMA = lakebed.schema_of(row_keys={"k": "string"}, values={"v": "int64", "at": "int64"})
OLD = AgeOff("at", 10 * DAY, "s")
BIG, SMALL = field("v") > 10, field("v") < 100


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def lake_at(path: Path, clock: VirtualClock) -> Lake:
    return Lake(open_local(path, clock=clock))


def ingest(table: Table, *values: int, days: int = 0) -> None:
    ats = [NOW - days * DAY] * len(values)
    table.ingest(pa.table({"k": [f"k{v % 3}" for v in values], "v": [*values], "at": ats}))


def stream(rows: pa.Table, act: Callable[[], object]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        act()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def values(table: Table) -> list[int]:
    return sorted(table.query().read_all()["v"].to_pylist())


def filtered(predicate: Predicate) -> Processing:
    return Processing(filter=predicate)


STORIES: dict[str, list[Callable[[Table, VirtualClock], object]]] = {
    "a filter comes and becomes stricter": [
        lambda t, _: ingest(t, 5, 50, 500),
        lambda t, _: t.change_processing(filtered(BIG)),
        lambda t, _: ingest(t, 6, 60, 600),
        lambda t, _: t.change_processing(filtered(SMALL & BIG)),
        lambda t, _: ingest(t, 7, 70, 700),
    ],
    "rows age off sooner, then later": [
        lambda t, _: [ingest(t, days, days=days) for days in (1, 4, 8, 12)],
        lambda t, _: t.change_processing(Processing(age_off=OLD)),
        lambda t, _: t.change_processing(Processing(age_off=AgeOff("at", 5 * DAY, "s"))),
        lambda t, _: t.change_processing(Processing(age_off=AgeOff("at", 100 * DAY, "s"))),
        lambda t, _: [ingest(t, 10 * days, days=days) for days in (1, 4, 8, 12)],
        lambda _, clock: clock.advance(3 * DAY),
    ],
    "the latest of each key stays": [
        lambda t, _: ingest(t, 1, 4, 2),
        lambda t, _: t.change_processing(Processing(latest=Latest("v"))),
        lambda t, _: ingest(t, 3, 5),
    ],
    "values are added up": [
        lambda t, _: ingest(t, 1, 4, 2),
        lambda t, _: t.change_processing(Processing(aggregate={"v": "sum", "at": "max"})),
        lambda t, _: ingest(t, 3, 4),
    ],
}
GIVES = {
    "a filter comes and becomes stricter": [50, 60, 70],
    "rows age off sooner, then later": [1, 4, 10, 40],
    "the latest of each key stays": [3, 4, 5],
    "values are added up": [2, 3, 9],
}


@pytest.mark.parametrize("story", STORIES)
def test_a_change_gives_the_same_whatever_was_compacted_when(tmp_path: Path, story: str) -> None:
    steps = STORIES[story]
    places = range(len(steps))
    moments: list[tuple[int, ...]] = [(), tuple(places), *((place,) for place in places)]
    for number, merged in enumerate(moments):
        clock = VirtualClock()
        with lake_at(tmp_path / str(number), clock) as lake:
            table = lake.create_table("t", SCHEMA)
            for place, step in enumerate(steps):
                step(table, clock)
                if place in merged:
                    clock.advance(120)
                    table.compact()
            assert values(table) == GIVES[story], merged


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (filtered(BIG), None, "stricter"),
        (filtered(BIG), filtered(SMALL), "stricter"),
        (filtered(BIG & SMALL), filtered(BIG), "stricter"),
        (filtered(BIG), filtered(BIG | SMALL), "stricter"),
        (Processing(age_off=OLD), None, "too old are gone"),
        (
            Processing(age_off=OLD),
            Processing(age_off=AgeOff("v", 9, "s")),
            "field of age-off cannot",
        ),
        (
            Processing(age_off=OLD),
            Processing(age_off=AgeOff("at", 9, "ms")),
            "field of age-off cannot",
        ),
        (Processing(latest=Latest("v")), None, "cannot change"),
        (Processing(latest=Latest("v")), Processing(latest=Latest("at")), "cannot change"),
        (
            Processing(aggregate={"v": "sum", "at": "max"}),
            Processing(aggregate={"v": "max", "at": "max"}),
            "cannot change",
        ),
        (None, Processing(aggregate={"v": "count", "at": "max"}), "cannot begin"),
        (filtered(BIG), Processing(aggregate={"v": "sum", "at": "max"}, filter=BIG), "merged"),
        (None, filtered(field("w") > 1), "no such field"),
        (None, Processing(), "does nothing"),
        (None, Processing(iterator=lakebed.IteratorUse("nobody")), "no such iterator is installed"),
    ],
)
def test_what_cannot_be_right_is_refused_and_changes_nothing(
    tmp_path: Path,
    clock: VirtualClock,
    before: Processing | None,
    after: Processing | None,
    says: str,
) -> None:
    with lake_at(tmp_path, clock) as lake:
        table = lake.create_table("t", SCHEMA, processing=before)
        ingest(table, 50)
        was = table.processing, table.history()
        with pytest.raises(InvalidError, match=says) as raised:
            table.change_processing(after)
        assert raised.value.hint
        assert (table.processing, table.history()) == was


def test_a_table_without_rows_takes_every_processing(tmp_path: Path, clock: VirtualClock) -> None:
    with lake_at(tmp_path, clock) as lake:
        table = lake.create_table("t", SCHEMA, processing=filtered(BIG))
        counted = Processing(aggregate={"v": "count", "at": "max"})
        assert table.change_processing(counted) == counted
        ingest(table, 1, 4)
        assert values(table) == [2]
        table.clear()
        assert table.change_processing(None) is None
        ingest(table, 1, 4)
        assert values(table) == [1, 4]
        assert [change.what for change in table.history().changes] == [
            "created",
            "processing",
            "cleared",
            "processing",
        ]


def test_an_ingest_that_began_without_rows_there_begins_again(
    tmp_path: Path, clock: VirtualClock
) -> None:
    counted = Processing(aggregate={"v": "count", "at": "max"})
    with lake_at(tmp_path, clock) as lake:
        table = lake.create_table("t", SCHEMA)
        rows = pa.table({"k": ["a"], "v": [7], "at": [NOW]})
        with pytest.raises(GenerationError):
            table.ingest(stream(rows, lambda: table.change_processing(counted)))
        table.ingest(rows)
        assert values(table) == [1]


def test_an_ingest_that_began_with_rows_there_is_taken(tmp_path: Path, clock: VirtualClock) -> None:
    with lake_at(tmp_path, clock) as lake:
        table = lake.create_table("t", SCHEMA)
        ingest(table, 1)
        rows = pa.table({"k": ["a", "a"], "v": [7, 70], "at": [NOW, NOW]})
        table.ingest(stream(rows, lambda: table.change_processing(filtered(BIG))))
        assert values(table) == [70]
