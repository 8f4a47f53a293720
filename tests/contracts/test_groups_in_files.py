"""What holds of files whose groups age, whoever keeps them."""

from pathlib import Path

import pytest

from lakebed import AgeOff, Processing
from lakebed.model.files import FilePart
from lakebed.model.names import FileName, Micros
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import EVERYTHING
from tests.contracts.test_sorted_files import SCHEMA, Lake, Row, row


@pytest.fixture(params=["tuples", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


DAY = 86_400
BY_COUNT = Processing(
    age_off=AgeOff("count", 10 * DAY, "s"), aggregate={"count": "max", "note": "max"}
)
"""Groups age by a field that is merged: seconds since 1970."""


def seen(name: str, day: int, note: str = "") -> Row:
    return row(name, count=day * DAY, note=note)


@pytest.mark.parametrize("whole", [False, True])
def test_groups_leave_only_where_all_rows_of_their_keys_are(lake: Lake, whole: bool) -> None:
    parts = [
        lake.part([seen("a", 5, "x"), seen("b", 35)]),
        lake.part([seen("a", 9), seen("b", 42, "y"), seen("c", 1)]),
        lake.part([seen("a", 30, "z"), seen("c", 0)]),
    ]
    merged = [seen("a", 9, "x"), seen("a", 30, "z"), seen("b", 35), seen("b", 42, "y")]
    wanted = [*merged, seen("c", 1)] if not whole else [merged[1], merged[3]]
    given_ = ProcessingPass(BY_COUNT, Micros(50 * DAY * 1_000_000), "compaction", whole)
    found = lake.rows(lake.files.merge(SCHEMA, parts, processing=given_))
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    written = lake.files.merge_into_file(
        SCHEMA,
        parts,
        name=FileName(bytes(15) + b"g"),
        path="files/groups",
        key_range=EVERYTHING,
        processing=given_,
    )
    assert written is not None
    part = FilePart(written.file, "files/groups", EVERYTHING, len(wanted))
    assert lake.merged([part]) == found
    for day, shown in ((45, [seen("b", 42, "y")]), (52, [seen("b", 42, "y")]), (53, [])):
        asked = ProcessingPass(BY_COUNT, Micros(day * DAY * 1_000_000), "query")
        for stored in (parts, [part]):
            batches = lake.files.read(SCHEMA, [stored], processing=asked)
            assert lake.rows(batches) == shown
