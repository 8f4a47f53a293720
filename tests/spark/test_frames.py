"""Frames of tables, and tables of frames, by real Spark of both lines: one session for each line
does all steps, then what it gave is compared."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from tests.readers.rows import plain
from tests.readers.test_other_readers import SCHEMA, rows
from tests.spark.frame_filters import FILTERS, NOT_NARROWED, filter_steps
from tests.spark.shell import SparkShell

pytestmark = pytest.mark.timeout(1800)
LINES = ["4", *(pytest.param(line, marks=pytest.mark.slow) for line in ("3.5", "4.1"))]
"""Those behind the first are for `make test-all`. 4.1 hands filters to a source in Python."""

NUMBERS = lakebed.schema_of(
    row_keys={"k": "string"}, sort_keys={"n": "int64"}, values={"wide": "binary"}
)
FOLDED = lakebed.schema_of(row_keys={"k": "string"}, values={"n": "int64", "gone": "bool"})
TIMED = lakebed.schema_of(
    row_keys={"k": "string"}, values={"clock": "time64[us]?", "in": {"list": "time64[us]"}}
)
PROCESSINGS = {
    "latest": lakebed.Processing(latest=lakebed.Latest("n", delete="gone")),
    "summed": lakebed.Processing(aggregate={"n": "sum", "gone": "last by n"} | {"n": "max"}),
}
OWN_FILES = {"shared_file_rows_max": 0}
"""Each leaf has files of its own, so that fewer leaves are fewer slices."""
READ: dict[str, dict[str, Any]] = {
    "whole": {"table": "all"},
    "in slices": {"table": "all", "slice_bytes": 15_000, "pin_seconds": 0},
    "columns": {"table": "all", "columns": ["uint32", "s"]},
    "where": {"table": "all", "where": "int32 >= 0 and text is not null"},
    "where apart": {"table": "all", "where": "uint8 < 100", "columns": ["i", "list"]},
    "ranges": {"table": "all", "ranges": [{"s": ["", "m"]}, {"i": [5, 300]}]},
    "nothing": {"table": "all", "ranges": {"s": ["zz", "zzz"]}},
    "latest": {"table": "latest"},
    "latest where": {"table": "latest", "where": "n >= 200", "columns": ["k"]},
    "summed": {"table": "summed"},
    "time left out": {"table": "timed", "columns": ["k"]},
    "older": {"table": "all", "as_of": "two"},
    "older where": {"table": "all", "as_of": "two", "where": "int32 >= 0", "pin_seconds": 0},
}
LOADED: dict[str, dict[str, str]] = {
    "loaded": {"table": "all", "slice_bytes": "15000"},
    "loaded in part": {
        "table": "all",
        "columns": "i,uint32,map",
        "where": "int32 >= 0",
        "ranges": '{"s": {"min": "a"}}',
    },
    "loaded and filtered": {"table": "all", "filter": "uint16 < 20000 and s >= 'm'"},
    "loaded nothing": {"table": "all", "ranges": '{"s": ["zz", "zzz"]}'},
    "loaded older": {"table": "all", "as_of": "two", "slice_bytes": "15000"},
}


class Story:
    """A lake with tables, and what one session of Spark did with it."""

    def __init__(self, line: str, folder: Path) -> None:
        self.path = folder / "lake"
        self.folder = folder
        self.lake = lakebed.connect(self.path)
        every = self.lake.create_table("all", SCHEMA, split_points=["b", "m"], settings=OWN_FILES)
        self.lake.create_table("copy", SCHEMA, split_points=["b", "m"])
        for seed in range(3):
            number = every.ingest(rows(SCHEMA, seed)).number
            if seed == 1:
                every.tag("two", as_of=number)
        for name, processing in PROCESSINGS.items():
            table = self.lake.create_table(
                name,
                FOLDED,
                split_points=["3", "6"],
                processing=processing,
                settings=OWN_FILES,
            )
            for seed in range(3):
                table.ingest(folded(seed))
        self.lake.create_table("timed", TIMED).ingest(
            pa.table({"k": ["a"], "clock": [None], "in": [[]]}, TIMED_COLUMNS)
        )
        for name in ("numbers", "saved"):
            self.lake.create_table(name, NUMBERS, split_points=["3", "6"])
        steps = [*read_steps(str(self.path)), *append_steps(str(self.path))]
        if line != "3.5":
            steps += [*load_steps(str(self.path)), *save_steps(str(self.path))]
        self.filters = list(FILTERS)[: 3 if line == "4" else len(FILTERS)]
        steps += filter_steps(str(self.path), line, self.filters)
        self.gave = SparkShell(line, str(self.path), folder).steps_done(steps)

    def rows_of(self, step: str) -> list[str]:
        gave = self.gave[step]
        assert "error" not in gave, gave
        return plain(pq.read_table(self.folder / step, partitioning=None))

    def rows_in(self, table: str) -> list[str]:
        return plain(self.lake[table].query().read_all())

    def events(self, table: str, job: str) -> list[str]:
        return [report.event for report in self.lake[table].jobs(job=job)]

    def refused(self, step: str, *says: str) -> None:
        gave = self.gave[step]
        assert "error" in gave, gave
        for text in says:
            assert text in gave["text"], gave


TIMED_COLUMNS = pa.schema(
    [("k", pa.string()), ("clock", pa.time64("us")), ("in", pa.list_(pa.time64("us")))]
)


def folded(seed: int) -> pa.Table:
    numbers = [n * 31 % 300 for n in range(300)]
    return pa.table(
        {
            "k": [f"{n % 10}{n % 7}" for n in numbers],
            "n": [n + seed for n in numbers],
            "gone": [n % 11 == 0 for n in numbers],
        }
    )


def numbers(count: int) -> list[str]:
    """Return the rows of `frame_program.made` in the order of a table."""
    found = pa.table(
        {
            "k": [f"{n * 7 % 10}-{n * 31 % 97}" for n in range(count)],
            "n": range(count),
            "wide": [b"w" * 1_000] * count,
        }
    )
    return plain(found.sort_by([("k", "ascending"), ("n", "ascending")]))


def read_steps(lake: str) -> list[dict[str, Any]]:
    steps = [
        {"name": name, "do": "read", "from": {"kind": "table", "lake": lake} | asked}
        for name, asked in READ.items()
    ]
    bad = {
        "no table": {"table": "al"},
        "no column": {"table": "all", "columns": ["x"]},
        "no place": {"table": "timed", "columns": ["clock"]},
        "no place inside": {"table": "timed"},
        "no time": {"table": "all", "pin_seconds": -1},
    }
    return steps + [
        {"name": name, "do": "read", "from": {"kind": "table", "lake": lake} | asked}
        for name, asked in bad.items()
    ]


def append_steps(lake: str) -> list[dict[str, Any]]:
    def appended(name: str, given: dict[str, Any], table: str, **how: str) -> dict[str, Any]:
        to = {"lake": lake, "table": table}
        return {"name": name, "do": "append", "from": given} | to | {"with": how}

    made = {"kind": "numbers", "rows": 2_000, "partitions": 3}
    every = {"kind": "table", "lake": lake, "table": "all", "slice_bytes": 15_000}
    return [
        appended("appended", every, "copy", job="j"),
        appended("appended again", every, "copy", job="j"),
        appended("all attempts die", made | {"fail": "always"}, "numbers", job="n"),
        appended("the first attempt dies", made | {"fail": "first"}, "numbers", job="n"),
        appended("done before", made, "numbers", job="n"),
        appended("other columns", every, "numbers", job="n"),
        appended("do not fit", made, "copy", job="bad"),
        appended("more columns", every, "latest", job="more"),
        appended("to no table", made, "number"),
    ]


def load_steps(lake: str) -> list[dict[str, Any]]:
    place = {"kind": "format", "lake": lake}
    bad: dict[str, dict[str, str]] = {
        "load no table": {"table": "al"},
        "load without table": {},
        "load unknown option": {"table": "all", "colums": "s"},
        "load no place": {"table": "timed"},
    }
    return [
        {"name": name, "do": "read", "from": place | asked}
        for name, asked in (LOADED | bad).items()
    ]


def save_steps(lake: str) -> list[dict[str, Any]]:
    def saved(name: str, given: dict[str, Any], mode: str = "append", **how: str) -> dict[str, Any]:
        options = {"lake": lake, "table": "saved"} | how
        return {"name": name, "do": "save", "from": given, "mode": mode, "options": options}

    made = {"kind": "numbers", "rows": 2_000, "partitions": 3}
    return [
        saved("save all attempts die", made | {"fail": "always"}, job="n"),
        saved("save the first attempt dies", made | {"fail": "first"}, job="n"),
        saved("save done before", made, job="n"),
        saved("save over", made, "overwrite", job="over"),
        saved("save with a filter", made, where="n = 1"),
        saved("save where it does not fit", made, table="all", job="bad"),
        saved("save to no table", made, table="nowhere"),
    ]


@pytest.fixture(scope="module", params=LINES)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(request.param, tmp_path_factory.mktemp("frames"))


@pytest.fixture
def on_four(story: Story) -> Story:
    if "loaded" not in story.gave:
        pytest.skip("Spark 3.5 has no data sources in Python")
    return story


@pytest.mark.parametrize("step", READ)
def test_a_frame_has_the_rows_of_a_query(story: Story, step: str) -> None:
    asked = {
        n: v for n, v in READ[step].items() if n not in ("table", "slice_bytes", "pin_seconds")
    }
    if "where" in asked:
        asked["where"] = lakebed.predicate_from_text(asked["where"])
    wanted = story.lake[READ[step]["table"]].query(**asked).read_all()
    assert bool(wanted.num_rows) is (step != "nothing")
    assert story.rows_of(step) == plain(wanted)


def test_slices_are_partitions_and_types_are_those_of_spark(story: Story) -> None:
    assert story.gave["whole"]["partitions"] == 1
    assert story.gave["in slices"]["partitions"] > 2
    assert story.gave["columns"]["schema"] == "struct<uint32:bigint,s:string>"


def test_a_read_pins_its_version_unless_it_is_told_not_to(story: Story) -> None:
    with story.lake["all"]._opened.head.reading() as state:
        pins = len(state.pins())
    pinned = [s for s, a in READ.items() if a["table"] == "all" and a.get("pin_seconds") != 0]
    appends = 1  # which reads `all`
    others = 1  # is refused only when it is appended, after it was read
    loads = len(LOADED) if "loaded" in story.gave else 0
    assert pins >= len(pinned) + appends + others + loads


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("no table", "all"),
        ("no column", "x"),
        ("no place", "clock"),
        ("no place inside", "times of day"),
        ("no time", "pin"),
    ],
)
def test_what_cannot_be_read_is_refused(story: Story, step: str, says: str) -> None:
    story.refused(step, says)
    assert story.gave[step]["error"] in ("InvalidError", "TableMissingError")


def test_a_frame_is_appended_once_with_all_that_reading_widened(story: Story) -> None:
    assert story.gave["appended"]["rows"] == story.lake["all"].count()
    assert story.gave["appended again"]["repeated"]
    assert story.rows_in("copy") == story.rows_in("all")
    assert story.events("copy", "j") == ["started", "committed"]
    assert not story.lake.fsck("copy", deep=True).findings


def test_a_job_whose_tasks_died_left_nothing_and_can_be_run_again(story: Story) -> None:
    story.refused("all attempts die", "Spark gave up", "this attempt dies")
    assert story.gave["all attempts die"]["error"] == "UnavailableError"
    assert story.gave["the first attempt dies"].get("rows") == 2_000
    assert story.gave["done before"]["repeated"]
    assert story.rows_in("numbers") == numbers(2_000)
    events = ["started", "failed", "started", "committed"]
    assert story.events("numbers", "n") == events


def test_frames_that_do_not_fit_leave_the_table_as_it_was(story: Story) -> None:
    story.refused("other columns", "n")
    assert story.gave["other columns"]["error"] == "JobIdReusedError"
    story.refused("do not fit", "")
    assert story.gave["do not fit"]["error"] == "InvalidError"
    assert story.events("copy", "bad") == ["started", "rejected"]
    story.refused("more columns", "unknown column")
    assert story.events("latest", "more") == ["started", "rejected"]
    story.refused("to no table", "numbers")


@pytest.mark.parametrize("step", LOADED)
def test_format_gives_the_rows_of_a_query(on_four: Story, step: str) -> None:
    table = on_four.lake["all"]
    match step:
        case "loaded in part":
            wanted = table.query(
                columns=["i", "uint32", "map"],
                where=lakebed.field("int32") >= 0,
                ranges={"s": ("a", None)},
            )
        case "loaded and filtered":
            wanted = table.query(where=lakebed.predicate_from_text("uint16 < 20000 and s >= 'm'"))
        case "loaded nothing":
            wanted = table.query(ranges={"s": ("zz", "zzz")})
        case "loaded older":
            wanted = table.query(as_of="two")
        case _:
            wanted = table.query()
    assert on_four.rows_of(step) == plain(wanted.read_all())


@pytest.mark.parametrize("name", FILTERS)
def test_rows_are_the_same_whoever_filters_them(story: Story, name: str) -> None:
    if name not in story.filters:
        pytest.skip("for make test-all")
    table, text = FILTERS[name]
    wanted = plain(story.lake[table].query(where=text).read_all())
    assert bool(wanted) is (name != "nothing")
    ways = [step.split(", ")[0] for step in story.gave if step.endswith(f", {name}")]
    assert "read" in ways
    for way in ways:
        assert story.rows_of(f"{way}, {name}") == wanted, way


def test_filters_that_are_handed_over_spare_slices(story: Story) -> None:
    if "push, from" not in story.gave:
        pytest.skip("from Spark 4.1 on")
    for name in FILTERS:
        whole = story.gave[f"load, {name}"]["partitions"]
        pushed = story.gave[f"push, {name}"]["partitions"]
        if name in NOT_NARROWED:
            assert name == "nothing" or pushed == whole > 2, name
        else:
            assert pushed < whole, name


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("load no table", "no such table"),
        ("load without table", "no table is named"),
        ("load unknown option", "columns"),
        ("load no place", "clock"),
        ("save over", "clear the table"),
        ("save with a filter", "unknown option"),
        ("save to no table", "no such table"),
        ("save where it does not fit", ""),
    ],
)
def test_options_that_do_not_work_are_refused(on_four: Story, step: str, says: str) -> None:
    on_four.refused(step, says)
    assert "Error: " in on_four.gave[step]["text"]


def test_format_appends_once_whatever_attempts_die(on_four: Story) -> None:
    on_four.refused("save all attempts die", "this attempt dies")
    assert "error" not in on_four.gave["save the first attempt dies"]
    assert "error" not in on_four.gave["save done before"]
    assert on_four.rows_in("saved") == numbers(2_000)
    events = ["started", "failed", "started", "committed"]
    assert on_four.events("saved", "n") == events
    assert on_four.events("all", "bad") == ["started", "rejected"]
    assert not on_four.lake.fsck("saved", deep=True).findings
