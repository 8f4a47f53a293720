"""What processing makes of rows, whoever keeps them."""

from pathlib import Path

import pytest

from lakebed import AgeOff, Latest, Processing, field
from lakebed.errors import InvalidError
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, Stage, checked_processing
from lakebed.model.ranges import EVERYTHING, box_of
from lakebed.ports.sorted_files import Selection
from tests.contracts.test_sorted_files import SCHEMA, Lake, above, below, row

SUMS = Processing(
    filter=field("name") != "x",
    aggregate={"count": "sum", "note": "max"},
    age_off=AgeOff("day", 5, "s"),
)
NEWEST = Processing(latest=Latest("count"), filter=field("note").is_not_null())


@pytest.fixture(params=["tuples", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def passing(processing: Processing, stage: Stage, seconds: int = 0) -> ProcessingPass:
    return ProcessingPass(checked_processing(processing, SCHEMA), Micros(seconds * 10**6), stage)


def test_processing_leaves_rows_out_and_makes_one_of_equal_keys(lake: Lake) -> None:
    one = [row("a", 1, 0, 1, "p"), row("a", 1, 0, 2), row("a", 1, 1, 4), row("x", 1)]
    two = [row("a", 1, 0, 8, "q"), row("b", 2, 0, 1)]
    parts = [lake.part(one), lake.part(two)]
    found = lake.rows(lake.files.merge(SCHEMA, parts, processing=passing(SUMS, "compaction", 6)))
    assert found == [row("a", 1, 0, 11, "q"), row("a", 1, 1, 4), row("b", 2, 0, 1)]
    later = list(lake.files.read(SCHEMA, [parts], processing=passing(SUMS, "query", 7)))
    assert lake.rows(later) == [row("b", 2, 0, 1)]
    whole = Selection((box_of(SCHEMA, {}),), columns=("note", "name"))
    fewer = lake.files.merge(SCHEMA, parts, whole, passing(SUMS, "query", 7))
    assert lake.rows(fewer) == [(None, "b")]


def test_a_scan_makes_one_of_equal_keys_and_leaves_rows_out(lake: Lake) -> None:
    one = [row("a", 1, 0, 1, "p"), row("a", 1, 0, 2), row("x", 1), row("b", 9)]
    parts = [lake.part(one), lake.part([row("a", 1, 0, 8, "q")])]
    sums = lake.files.scan(SCHEMA, [parts], processing=passing(SUMS, "query", 6))
    assert sorted(lake.rows(sums)) == [row("a", 1, 0, 11, "q"), row("b", 9)]
    young = Processing(filter=SUMS.filter, age_off=SUMS.age_off)
    rows = lake.files.scan(SCHEMA, [parts], processing=passing(young, "query", 7))
    assert lake.rows(rows) == [row("b", 9)]
    only = Selection((box_of(SCHEMA, {}),), columns=("count",))
    counts = lake.files.scan(SCHEMA, [parts], only, processing=passing(young, "query", 6))
    assert sorted(lake.rows(counts)) == [(0,), (1,), (2,), (8,)]


def test_of_equal_keys_the_latest_stays(lake: Lake) -> None:
    one = [row("a", 1, 0, 1, "old"), row("a", 1, 0, 5), row("b", 1, 0, 2, "p")]
    two = [row("a", 1, 0, 3, "new"), row("b", 1, 0, 2, "q")]
    parts = [lake.part(one), lake.part(two)]
    found = lake.rows(lake.files.merge(SCHEMA, parts, processing=passing(NEWEST, "compaction")))
    assert found == [row("a", 1, 0, 3, "new"), row("b", 1, 0, 2, "q")]


def test_a_sorter_processes_what_it_is_given(lake: Lake) -> None:
    rows = [row("x"), row("b", 1, 0, 1), row("a", 1, 0, 2, "p"), row("a", 1, 0, 3)]
    sorter = lake.files.sorter(SCHEMA, passing(SUMS, "ingest"))
    try:
        assert sorter.add(lake.batch(rows)) == 3, "one is filtered"
        assert sorter.rows_in([below("b"), above("b")]) == [2, 1]
        assert lake.rows(sorter.sorted_batches(EVERYTHING)) == [
            row("a", 1, 0, 5, "p"),
            row("b", 1, 0, 1),
        ]
    finally:
        sorter.close()


def test_a_sum_that_does_not_fit_is_refused(lake: Lake) -> None:
    part = lake.part([row("a", 1, 0, 2**62), row("a", 1, 0, 2**62)])
    with pytest.raises(InvalidError, match="count"):
        lake.rows(lake.files.merge(SCHEMA, [part], processing=passing(SUMS, "compaction")))
