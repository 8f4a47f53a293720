"""Which files become the next batch: by count, bytes and age, the oldest first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.config.settings import TableSettings, table_settings
from lakebed.ingest.plan_batches import TargetFigures, next_batch, target_of
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.file_batches import LIST_BYTES_MAX, SubmittedFile

NOW = Micros(1_000_000 * MICROS_PER_SECOND)
GIB = 1 << 30
FEW = table_settings({"batch_bytes_min": 100, "batch_bytes_max": 1_000, "batch_files_max": 4})


def file(name: str, size: int = 10, *, seconds: int = 0) -> SubmittedFile:
    return SubmittedFile(name, size, "v", Micros(NOW - seconds * MICROS_PER_SECOND))


def planned(*files: SubmittedFile, settings: TableSettings = FEW, now: Micros = NOW) -> list[str]:
    return [one.name for one in next_batch(files, settings, now)]


def test_nothing_is_planned_of_nothing() -> None:
    assert planned() == []


def test_files_wait_until_the_oldest_is_old_enough() -> None:
    assert planned(file("a", seconds=299), file("b")) == []
    assert planned(file("a", seconds=300), file("b")) == ["a", "b"]


def test_enough_bytes_of_enough_files_do_not_wait() -> None:
    assert planned(file("a", 99)) == []
    assert planned(file("a", 100)) == ["a"]
    three = table_settings({"batch_files_min": 3}, FEW)
    assert planned(file("a", 500), file("b", 500), settings=three) == []
    assert planned(file("a", 50), file("b", 25), file("c", 25), settings=three) == ["a", "b", "c"]


def test_a_clock_behind_that_of_the_submitter_makes_files_wait_and_not_fail() -> None:
    assert planned(file("a", seconds=-5_000)) == []


def test_no_more_files_than_allowed_the_oldest_first() -> None:
    assert planned(*(file(f"f{n}", seconds=300 - n) for n in range(9))) == ["f0", "f1", "f2", "f3"]


def test_what_does_not_fit_is_passed_over_and_later_files_that_fit_are_taken() -> None:
    files = (file("a", 600, seconds=300), file("b", 500), file("c", 400), file("d", 1))
    assert planned(*files) == ["a", "c"]
    assert planned(file("a", 600, seconds=300), file("b", 500), file("d", 1)) == ["a", "d"]


def test_a_file_above_the_maximum_goes_alone() -> None:
    assert planned(file("huge", 5_000), file("b")) == ["huge"]
    assert planned(file("a", seconds=400), file("huge", 5_000), file("b")) == ["a", "b"]


def test_the_names_of_a_batch_are_bounded() -> None:
    many = table_settings({"batch_files_max": 1_000})
    files = [file(f"{n}{'x' * 2_000}", seconds=500) for n in range(1_000)]
    chosen = next_batch(files, many, NOW)
    assert 100 < len(chosen) < 200
    assert sum(one.list_bytes for one in chosen) <= LIST_BYTES_MAX


SIZES = st.lists(st.tuples(st.integers(1, 1_500), st.integers(0, 600)), max_size=30)


@given(SIZES, st.integers(1, 6), st.integers(1, 1_200), st.integers(0, 1_200))
def test_whatever_waits_comes_into_one_batch_each_within_the_bounds(
    sizes: list[tuple[int, int]], files_max: int, bytes_max: int, bytes_min: int
) -> None:
    settings = table_settings(
        {
            "batch_files_max": files_max,
            "batch_bytes_max": bytes_max,
            "batch_bytes_min": bytes_min,
        }
    )
    files = [file(f"f{n:02}", size, seconds=age) for n, (size, age) in enumerate(sizes)]
    waiting = sorted(files, key=lambda one: (one.seen, one.name))
    later = Micros(NOW + 10_000 * MICROS_PER_SECOND)
    seen: list[SubmittedFile] = []
    while waiting:
        chosen = next_batch(waiting, settings, later)
        assert chosen[0] == waiting[0], "the oldest does not wait for ever"
        assert len(chosen) <= files_max
        assert len(chosen) == 1 or sum(one.size for one in chosen) <= bytes_max
        seen += chosen
        waiting = [one for one in waiting if one not in chosen]
    assert sorted(seen, key=lambda one: one.name) == files


@pytest.mark.parametrize(
    ("wish", "size", "table", "target"),
    [
        ("auto", 20 * GIB, TargetFigures(), "ingest"),
        ("auto", 20 * GIB + 1, TargetFigures(), "bulk-import"),
        ("auto", GIB, TargetFigures(rows=GIB // 100, bytes=GIB, leaves=1), "bulk-import"),
        ("auto", GIB, TargetFigures(rows=GIB // 100, bytes=GIB, leaves=3), "ingest"),
        ("auto", GIB, TargetFigures(rows=0, bytes=0, leaves=1), "ingest"),
        ("ingest", 90 * GIB, TargetFigures(), "ingest"),
        ("bulk-import", 1, TargetFigures(), "bulk-import"),
    ],
)
def test_a_large_batch_is_a_bulk_import_unless_the_table_says_otherwise(
    wish: str, size: int, table: TargetFigures, target: str
) -> None:
    settings = table_settings({"batch_target": wish})
    assert target_of([file("a", size)], settings, table) == target
