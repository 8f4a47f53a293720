"""Frames appended without Spark: one process begins, others sort, another one ends it."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.bootstrap.cluster.frame_imports import (
    Asked,
    BegunFrame,
    begin_frame,
    finish_frame,
    give_up_frame,
)
from lakebed.bootstrap.cluster.this_process import ThisProcess
from lakebed.errors import (
    InvalidError,
    JobIdReusedError,
    LakebedError,
    TableMissingError,
    UnavailableError,
)
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.input_files import ExtraColumns

COLUMNS = (("k", "string"), ("n", "bigint"))
SCHEMA = lakebed.schema_of(
    row_keys={"k": "string"},
    sort_keys={"n": "int64"},
    values={"small": "uint8?", "parts": {"list": "uint32"}, "named": {"map": ["string", "uint16"]}},
)
SIGNED = pa.schema(
    [
        ("n", pa.int64()),
        ("k", pa.string()),
        ("small", pa.int16()),
        ("parts", pa.list_(pa.int64())),
        ("named", pa.map_(pa.string(), pa.int32())),
    ]
)


class Place:
    """A lake with a table of three leaves, and frames for it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lake"
        self.lake = lakebed.connect(self.path)
        self.table = self.lake.create_table("t", SCHEMA, split_points=["3", "6"])

    def begun(self, job: str | None = "j", columns: Sequence[tuple[str, str]] = COLUMNS) -> object:
        return begin_frame(self.path, Asked("t", columns, job))

    def given(self) -> BegunFrame:
        begun = self.begun()
        assert isinstance(begun, BegunFrame)
        return begun

    def rows(self) -> pa.Table:
        return self.table.query().read_all()

    def runs(self) -> list[Path]:
        return list((self.path / "objects").rglob("runs/*"))

    def events(self) -> list[str]:
        return [report.event for report in self.table.jobs(job="j")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def frame(part: int, parts: int = 3, rows: int = 300) -> pa.RecordBatch:
    """Return a part of a frame, as an engine without unsigned integers has it."""
    numbers = range(part, rows, parts)
    return pa.record_batch(
        {
            "n": list(numbers),
            "k": [f"{n * 7 % 10}" for n in numbers],
            "small": [None if n % 7 == 0 else n % 256 for n in numbers],
            "parts": [[n, 2**32 - 1 - n][: n % 3] for n in numbers],
            "named": [[("x", 2**16 - 1 - n)][: n % 2] for n in numbers],
        },
        schema=SIGNED,
    )


def whole(place: Place) -> pa.Table:
    """Return all rows of a frame as the table has them."""
    rows = pa.Table.from_batches([frame(0, parts=1)]).sort_by(
        [("k", "ascending"), ("n", "ascending")]
    )
    return rows.select(place.table.arrow_schema.names).cast(place.table.arrow_schema)


finish = partial(finish_frame, cluster_for=ThisProcess)


def test_a_frame_comes_in_sorted_and_runs_go(place: Place) -> None:
    begun = place.given()
    answers = [begun.tasks.sort(part, [frame(part)]) for part in range(3)]
    assert len(place.runs()) == 3
    assert place.rows().num_rows == 0
    done = finish(begun, answers)
    assert (done.rows, done.read) == (300, 300)
    assert place.rows().equals(whole(place))
    assert not place.runs()
    assert place.events() == ["started", "committed"]
    assert not place.lake.fsck(deep=True).findings


def test_the_same_job_again_is_nothing_to_do_and_one_of_other_columns_is_refused(
    place: Place,
) -> None:
    begun = place.given()
    first = finish(begun, [begun.tasks.sort(0, [frame(0)])])
    again = place.begun()
    assert isinstance(again, Ingested)
    assert again.repeated
    assert again.number == first.number
    with pytest.raises(JobIdReusedError):
        place.begun(columns=[*COLUMNS, ("v", "double")])
    assert isinstance(place.begun(job=None), BegunFrame)


def test_two_drivers_of_one_job_commit_once(place: Place) -> None:
    first, second = place.given(), place.given()
    answers = [[one.tasks.sort(0, [frame(0, parts=1)])] for one in (first, second)]
    numbers = {finish(one, each).number for one, each in zip((first, second), answers, strict=True)}
    assert len(numbers) == 1
    assert place.rows().equals(whole(place))


def test_attempts_whose_answer_nobody_got_are_never_seen(place: Place) -> None:
    begun = place.given()
    for part in range(3):
        begun.tasks.sort(part, [frame(part)])
    answers = [begun.tasks.sort(part, [frame(part)]) for part in range(3)]
    finish(begun, answers)
    assert place.rows().equals(whole(place))
    assert len(place.runs()) == 3
    assert {finding.code for finding in place.lake.fsck().findings} == {"object-pending"}


def test_a_task_that_dies_in_the_middle_puts_no_run(place: Place) -> None:
    def dying() -> Iterator[pa.RecordBatch]:
        yield frame(0)
        raise RuntimeError("killed")

    begun = place.given()
    with pytest.raises(RuntimeError):
        begun.tasks.sort(0, dying())
    assert not place.runs()
    finish(begun, [begun.tasks.sort(0, [frame(0, parts=1)])])
    assert place.rows().equals(whole(place))


def test_what_was_begun_can_be_given_up_once(place: Place) -> None:
    begun = place.given()
    answers = [begun.tasks.sort(0, [frame(0)])]
    give_up_frame(begun, answers, UnavailableError("Spark gave up"))
    give_up_frame(begun, answers, UnavailableError("again"))
    assert not place.runs()
    assert place.rows().num_rows == 0
    assert place.events() == ["started", "failed"]
    assert "Spark gave up" in place.table.jobs(job="j")[-1].reason


def test_what_was_reported_is_not_reported_again(place: Place) -> None:
    begun = place.given()
    answers = [begun.tasks.refuse(InvalidError("too many parts"))]
    with pytest.raises(InvalidError, match="too many parts"):
        finish(begun, answers)
    give_up_frame(begun, answers, UnavailableError("Spark gave up"))
    assert place.events() == ["started", "rejected"]


def test_leaves_that_were_split_meanwhile_get_the_rows(place: Place) -> None:
    place.table.ingest(whole(place))
    begun = place.given()
    answers = [begun.tasks.sort(0, [frame(0, parts=1)])]
    place.table.change_settings(leaf_rows_max=20)
    place.lake.run(["t"])
    assert len(place.table.split_points) > 2
    finish(begun, answers)
    twice = pa.concat_tables([whole(place)] * 2)
    wanted = twice.sort_by([("k", "ascending"), ("n", "ascending")])
    assert place.rows().num_rows == wanted.num_rows
    assert place.rows().column("n").equals(wanted.column("n"))


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [("small", [256], "range"), ("parts", [[-1]], "range"), ("named", [[("x", 2**16)]], "range")],
)
def test_a_value_that_an_unsigned_field_does_not_hold_is_refused_by_field(
    place: Place, column: str, value: list[object], says: str
) -> None:
    rows = frame(0, parts=1, rows=1)
    bad = rows.set_column(
        rows.schema.get_field_index(column), column, pa.array(value, SIGNED.field(column).type)
    )
    begun = place.given()
    answer = begun.tasks.sort(0, [bad])
    with pytest.raises(InvalidError, match=says) as caught:
        finish(begun, [answer])
    assert caught.value.facts["field"] == column
    assert place.rows().num_rows == 0
    assert place.events() == ["started", "rejected"]


@pytest.mark.parametrize("extra", ["refuse", "drop"])
def test_columns_that_the_table_does_not_have_go_by_what_is_said(
    place: Place, extra: ExtraColumns
) -> None:
    more = frame(0).append_column("more", pa.array([1] * len(frame(0))))
    begun = begin_frame(place.path, Asked("t", COLUMNS, "j", extra))
    assert isinstance(begun, BegunFrame)
    answers = [begun.tasks.sort(0, [more])]
    if extra == "drop":
        assert finish(begun, answers).rows == len(more)
        return
    with pytest.raises(InvalidError) as caught:
        finish(begun, answers)
    assert caught.value.facts["field"] == "more"


def test_a_table_that_is_dropped_meanwhile_gets_no_rows(place: Place) -> None:
    begun = place.given()
    answers = [begun.tasks.sort(0, [frame(0)])]
    place.lake.drop_table("t")
    with pytest.raises(LakebedError):
        finish(begun, answers)
    with pytest.raises(TableMissingError):
        place.begun()


def test_no_rows_are_a_job_that_is_done(place: Place) -> None:
    begun = place.given()
    assert finish(begun, [begun.tasks.sort(0, [])]).rows == 0
    assert isinstance(place.begun(), Ingested)
