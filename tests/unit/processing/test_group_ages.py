"""What becomes of rows of a key where groups age: for Arrow and for tuples alike."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed import AgeOff, Processing, processing_json, schema_of
from lakebed.backends.memory import VirtualClock
from lakebed.backends.memory.row_layout import RowLayout
from lakebed.backends.memory.row_processing import TupleWork
from lakebed.bootstrap.local import open_local
from lakebed.errors import FormatGateError, InvalidError, NewerFormatError
from lakebed.lake import Lake
from lakebed.model.formats import Formats
from lakebed.model.group_ages import format_of_processing, group_ages
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.processing import ProcessingPass, Stage
from lakebed.processing.row_work import RowWork
from lakebed.statestore.log_entries import codec
from tests.properties.processings import to_arrow, to_rows

DAY = 86_400
MICROS = DAY * 1_000_000
SCHEMA = schema_of(row_keys={"id": "string"}, values={"seen": "date32", "n": "int64"})
PROCESSING = Processing(
    age_off=AgeOff("seen", seconds=10 * DAY), aggregate={"seen": "max", "n": "sum"}
)
Row = tuple[str, int, int]
Work = Callable[[ProcessingPass, Sequence[Row]], list[Row]]


def by_arrow(given: ProcessingPass, rows: Sequence[Row]) -> list[Any]:
    work = RowWork(SCHEMA, given)
    batches = [
        work.selected(to_arrow(SCHEMA, [row])) for row in sorted(rows, key=lambda row: row[0])
    ]
    return to_rows([batch for batch in work.merged(batches) if len(batch)])


def by_tuples(given: ProcessingPass, rows: Sequence[Row]) -> list[Any]:
    work, layout = TupleWork(SCHEMA, given), RowLayout(SCHEMA)
    keyed = [(layout.key(row), row) for row in work.selected(sorted(rows, key=lambda row: row[0]))]
    return [row for _, row in work.merged(keyed)]


@pytest.fixture(params=[by_arrow, by_tuples])
def work(request: pytest.FixtureRequest) -> Work:
    return request.param  # type: ignore[no-any-return]  # one of two


def on(day: int, stage: Stage, *, whole: bool = False) -> ProcessingPass:
    return ProcessingPass(PROCESSING, Micros(day * MICROS), stage, whole)


def test_a_group_is_shown_as_long_as_its_newest_row_is_young(work: Work) -> None:
    rows = [("a", 101, 1), ("a", 108, 2), ("a", 115, 4)]
    assert work(on(125, "query"), rows) == [("a", 115, 7)]
    assert work(on(126, "query"), rows) == []


def test_behind_an_empty_step_a_group_begins_anew(work: Work) -> None:
    assert work(on(130, "query"), [("a", 109, 1), ("a", 120, 2)]) == [("a", 120, 2)]
    assert work(on(130, "query"), [("a", 110, 1), ("a", 129, 2)]) == [("a", 129, 3)]
    assert work(on(130, "query"), [("a", 109, 1), ("b", 120, 2)]) == [("b", 120, 2)]


def test_some_rows_of_a_key_become_one_for_each_step_and_none_leaves(work: Work) -> None:
    rows = [("a", 5, 1), ("a", 9, 2), ("a", 10, 4), ("b", 0, 8), ("b", 30, 16)]
    wanted = [("a", 9, 3), ("a", 10, 4), ("b", 0, 8), ("b", 30, 16)]
    assert work(on(500, "compaction"), rows) == wanted
    assert work(on(500, "compaction"), [*rows, *reversed(wanted)])[0] == ("a", 9, 6)


def test_all_rows_of_a_key_become_one_for_each_group_that_may_go_on(work: Work) -> None:
    rows = [("a", 5, 1), ("a", 19, 2), ("a", 20, 4), ("b", 9, 8), ("b", 30, 16)]
    assert work(on(50, "compaction", whole=True), rows) == [("a", 20, 7), ("b", 30, 16)]
    assert work(on(41, "compaction", whole=True), [("a", 29, 1)]) == [("a", 29, 1)]
    assert work(on(60, "compaction", whole=True), [("a", 29, 1), ("a", 30, 2)]) == [("a", 30, 3)]
    assert work(on(61, "compaction", whole=True), [("a", 29, 1)]) == []


def test_what_may_still_get_older_neighbours_is_not_merged_into_newer_steps(work: Work) -> None:
    rows = [("a", 25, 1), ("a", 31, 2), ("a", 45, 4), ("a", 55, 8)]
    assert work(on(32, "compaction", whole=True), rows) == [
        ("a", 31, 3),
        ("a", 45, 4),
        ("a", 55, 8),
    ]
    assert work(on(30, "compaction", whole=True), rows)[0] == ("a", 25, 1), "of an ingest that runs"


def test_rows_that_are_too_old_when_they_come_are_left_out(work: Work) -> None:
    assert work(on(30, "ingest"), [("a", 19, 1), ("a", 20, 2), ("b", 19, 4)]) == [("a", 20, 2)]


def test_steps_are_whole_units_of_the_field() -> None:
    hours = Processing(
        age_off=AgeOff("seen", seconds=DAY * 3 // 2), aggregate={"seen": "max", "n": "sum"}
    )
    ages = group_ages(ProcessingPass(hours, Micros(10 * MICROS), "query"), SCHEMA)
    assert ages is not None
    assert (ages.step, ages.limit) == (2, 9)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(100 * MICROS)


def seen(day: int, n: int, key: str = "a") -> pa.Table:
    return pa.table({"id": [key], "seen": pa.array([day], pa.date32()), "n": [n]})


def test_files_lose_groups_by_the_scheduled_work(tmp_path: Path, clock: VirtualClock) -> None:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        table = lake.create_table("t", SCHEMA, processing=PROCESSING)
        table.ingest(seen(100, 1))
        table.ingest(seen(100, 2, "b"))
        lake.run()
        assert sum(file.rows for file in table.files()) == 2
        clock.advance(11 * DAY)
        assert table.count() == 0
        table.ingest(seen(111, 4, "c"))
        lake.run()
        clock.advance(25 * DAY)
        for _ in range(3):
            lake.run()
        assert sum(file.rows for file in table.files()) <= 1
        table.ingest(seen(136, 8))
        assert table.to_arrow().to_pylist() == [{"id": "a", "seen": day(136), "n": 8}]


def day(number: int) -> object:
    return pa.scalar(number, pa.date32()).as_py()


def test_only_a_job_of_all_files_is_whole(tmp_path: Path, clock: VirtualClock) -> None:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        settings = {"job_files_max": 2, "size_ratio": 1}
        table = lake.create_table("t", SCHEMA, processing=PROCESSING, settings=settings)
        for n in (1, 2, 4):
            table.ingest(seen(100, n))
        lake._app.create_jobs.run(table._opened)
        clock.advance(60 * DAY)
        with table._opened.head.reading() as state:
            (job,) = state.jobs()
        lake._app.run_job.run(table._opened, job.id)
        assert sorted(file.rows for file in table.files()) == [1, 1], "nothing has left"
        table.compact()
        assert table.files() == []


def test_what_would_change_groups_that_are_there_is_refused(
    tmp_path: Path, clock: VirtualClock
) -> None:
    plain = Processing(aggregate=PROCESSING.aggregate)
    longer = Processing(age_off=AgeOff("seen", 20 * DAY), aggregate=PROCESSING.aggregate)
    rows = Processing(age_off=PROCESSING.age_off)
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        for number, (before, after) in enumerate(
            [(PROCESSING, longer), (plain, PROCESSING), (rows, PROCESSING), (PROCESSING, plain)]
        ):
            table = lake.create_table(f"t{number}", SCHEMA, processing=before)
            table.change_processing(after)
            table.change_processing(before)
            table.ingest(seen(100, 1))
            with pytest.raises(InvalidError) as raised:
                table.change_processing(after)
            assert raised.value.hint
        stricter = Processing(
            filter=lakebed.field("id") != "b",
            age_off=PROCESSING.age_off,
            aggregate=PROCESSING.aggregate,
        )
        lake["t0"].change_processing(stricter)


def test_older_releases_and_lakes_are_not_given_it(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lake(open_local(tmp_path / "lake", clock=clock)) as lake:
        table = lake.create_table("t", SCHEMA, processing=PROCESSING)
        start = TransactionNumber(0)
        ((_, body),) = lake._app.logs.open(table._opened.id).read_after(start)
        assert body[0] == 6
        older = lake.create_table("u", SCHEMA, processing=Processing(age_off=PROCESSING.age_off))
        assert format_of_processing(processing_json(older.processing, older.schema)) < 6
        monkeypatch.setattr(codec, "ENTRY_FORMAT", 5)
        with pytest.raises(NewerFormatError):
            codec.decode_entry(body, 1)
        monkeypatch.undo()
        older._opened.head.formats = lambda: Formats(entry=5, state=3)
        with pytest.raises(FormatGateError):
            older.change_processing(PROCESSING)
