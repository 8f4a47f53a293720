"""Older versions in SQL and in data sets: which table is read as of what, and what is refused."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import CorruptError, InvalidError, VersionExpiredError
from lakebed.lake import Lake
from lakebed.model.versions import time_of
from lakebed.sql import sql_work
from lakebed.sql.asked_versions import AsOfTables

HOUR = 3_600
SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64?"})
COUNT = "select count(*) n from trips"


class Story:
    """Tables `trips` and `cities`, whose rows came in turns, a minute apart."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.lake = Lake(open_local(folder / "lake", clock=self.clock))
        for name in ("trips", "cities"):
            self.lake.create_table(name, SCHEMA, settings={"garbage_seconds_min": HOUR})
        self.numbers: list[int] = []
        for turn in range(3):
            self.clock.advance(60)
            self.numbers.append(self.put("trips", turn))
            self.put("cities", turn)
            self.put("cities", 7 + turn)
        self.trips = self.lake["trips"]

    def put(self, table: str, turn: int) -> int:
        ids = [f"{turn}-{n}" for n in range(10)]
        rows = pa.table({"id": ids, "n": pa.array([turn] * 10, pa.int64())})
        number = self.lake[table].ingest(rows).number
        assert number is not None
        return number

    def merged_and_collected(self) -> None:
        self.trips.compact()
        self.clock.advance(2 * HOUR)
        self.lake.run()

    def found(self, text: str, as_of: AsOfTables | None = None) -> list[int]:
        """Return the only row of an answer."""
        (row,) = self.lake.sql(text, as_of=as_of).read_all().to_pylist()
        return list(row.values())


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    made = Story(tmp_path)
    yield made
    made.lake.close()


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One that stays as it is."""
    made = Story(tmp_path_factory.mktemp("versions"))
    yield made
    made.lake.close()


def test_one_table_is_read_as_of_a_number_a_time_or_a_tag(story: Story) -> None:
    first, second, third = story.numbers
    assert [story.found(COUNT, number) for number in story.numbers] == [[10], [20], [30]]
    assert story.found(COUNT, str(second)) == [20]
    minute = time_of(story.clock.now()) - timedelta(seconds=60)
    assert story.found(COUNT, minute) == story.found(COUNT, minute.isoformat()) == [20]
    story.trips.tag("before", as_of=first)
    assert story.found(COUNT, "before") == [10]
    assert story.found(COUNT) == story.found(COUNT, third) == [30]
    both = "select count(*), (select max(n) from TRIPS) from trips"
    assert story.found(both, second) == [20, 1], "each mention is of that version"
    this = story.trips.sql("select count(*) n from this", as_of=first).read_all()
    assert this.to_pylist() == [{"n": 10}]


def test_several_tables_are_read_as_of_a_time_a_tag_or_one_each(story: Story) -> None:
    text = "select (select count(*) from trips), (select count(*) from cities)"
    minute = time_of(story.clock.now()) - timedelta(seconds=60)
    assert story.found(text) == [30, 60]
    assert story.found(text, minute) == [20, 40]
    story.trips.tag("q", as_of=story.numbers[0])
    story.lake["cities"].tag("q", as_of=minute)
    assert story.found(text, "q") == [10, 40]
    assert story.found(text, {"trips": story.numbers[0]}) == [10, 60]
    assert story.found(text, {"Trips": "q", "cities": minute}) == [10, 40]
    assert story.found(text, {}) == [30, 60]


def test_two_versions_are_compared_by_this(still: Story) -> None:
    gone = "from trips except from this order by id"
    found = still.trips.sql(gone, as_of={"this": still.numbers[1]}).read_all()
    assert found["n"].to_pylist() == [2] * 10


def test_fields_are_those_of_the_version(story: Story) -> None:
    before = story.numbers[-1]
    story.trips.change_fields(rename={"n": "turn"}, add={"note": "string?"})
    old = story.lake.sql("select * from trips where n = 2", as_of=before).read_all()
    assert old.schema.names == ["id", "n"]
    assert old.num_rows == 10
    assert story.lake.sql("from trips").schema.names == ["id", "turn", "note"]
    with pytest.raises(InvalidError, match="turn"):
        story.lake.sql("select turn from trips", as_of=before)


def test_an_explanation_is_of_the_version(still: Story) -> None:
    (scan,) = still.lake.explain_sql("select sum(n) from trips", as_of=still.numbers[0]).scans
    assert (scan.read.number, scan.read.files, scan.read.rows) == (still.numbers[0], 1, 10)
    this = still.trips.explain_sql("select sum(n) from this", as_of=still.numbers[1])
    assert this.scans[0].read.rows == 20


REFUSED: list[tuple[str, AsOfTables, str]] = [
    (COUNT, 10_000, "the version lies ahead .*the newest version is"),
    (COUNT, "2999-01-01T00:00Z", "the time lies ahead"),
    (COUNT, "1999-01-01T00:00Z", "the table is younger .*name a later time"),
    (COUNT, "2026-01-01", "a time needs an offset"),
    (COUNT, "nowhere", "no such tag .*table=trips"),
    (COUNT, "", "not a version"),
    (COUNT, 0, "not a number of a version"),
    (COUNT, True, "not a version"),
    ("select 1 from trips, cities", 3, "a number is of one table .*give a time"),
    (COUNT, {"trip": 3}, "no such table in the SQL .*did you mean 'trips'"),
    (COUNT, {"trips": 3, "TRIPS": 4}, "a table is named twice"),
    (COUNT, {"trips": None}, "not a version"),  # type: ignore[dict-item]  # on purpose
    (COUNT, {3: 3}, "no such table in the SQL"),  # type: ignore[dict-item]  # on purpose
    ("select 1", 3, "the SQL names no table"),
    ("select 1 from trips, lakebed.files", 3, "system tables tell of now"),
    ("from lakebed.files", {"files": 3}, "no such table in the SQL"),
    ("select count(*) from trips at (version => 3)", 3, "no AT in SQL .*as_of"),
]


@pytest.mark.parametrize(("text", "as_of", "wanted"), REFUSED)
def test_what_is_no_version_of_these_tables_is_refused(
    still: Story, text: str, as_of: AsOfTables, wanted: str
) -> None:
    for ask in (still.lake.sql, still.lake.explain_sql):
        with pytest.raises(InvalidError, match=wanted) as caught:
            ask(text, as_of=as_of)
        assert caught.value.hint
    assert not sql_work._OPEN


def test_system_tables_are_read_beside_versions_of_tables(still: Story) -> None:
    text = "select (select count(*) from trips), (select count(*) > 0 from lakebed.files)"
    assert still.found(text, {"trips": still.numbers[0]}) == [10, True]


def test_a_version_that_was_collected_is_refused_as_a_query_does(story: Story) -> None:
    _, second, third = story.numbers
    story.trips.tag("kept", as_of=second)
    story.merged_and_collected()
    with pytest.raises(VersionExpiredError) as asked:
        story.trips.query(as_of=third)
    with pytest.raises(VersionExpiredError) as caught:
        story.found(COUNT, third)
    assert (caught.value.facts, caught.value.hint) == (asked.value.facts, asked.value.hint)
    assert story.found(COUNT, "kept") == story.found(COUNT, second) == [20]
    story.trips.drop_tag("kept")
    story.merged_and_collected()
    with pytest.raises(VersionExpiredError):
        story.found(COUNT, second)
    with pytest.raises(VersionExpiredError):
        story.trips.dataset(as_of=second).to_table()
    assert not sql_work._OPEN


def test_a_version_that_is_collected_while_it_is_read_is_refused(story: Story) -> None:
    old = story.trips.dataset(as_of=story.numbers[1])
    assert old.count_rows() == 20
    with duckdb.connect() as engine:
        engine.register("old", old)
        assert engine.sql("select count(*), sum(n) from old").fetchall() == [(20, 10)]
    scanner = old.scanner()
    assert scanner.explanation().number == story.numbers[1]
    story.merged_and_collected()
    with pytest.raises(VersionExpiredError, match="oldest that can still be read"):
        scanner.to_table()
    with pytest.raises(VersionExpiredError):
        old.to_table()


def test_a_lost_file_of_an_older_version_is_damage(story: Story, tmp_path: Path) -> None:
    story.trips.tag("kept", as_of=story.numbers[1])
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(CorruptError, match="a file of the table is missing"):
        story.found("select sum(n) from trips", "kept")


def test_scans_and_data_sets_are_of_a_version(still: Story) -> None:
    first, second, third = still.numbers
    assert still.trips.scan(as_of=second).read_all().num_rows == 20
    assert still.trips.scan(as_of=second, columns=["n"], limit=3).read_all().num_rows == 3
    assert [still.trips.dataset(as_of=n).count_rows() for n in still.numbers] == [10, 20, 30]
    assert f"at log number {second}" in repr(still.trips.dataset(as_of=second))
    assert still.trips.dataset().version.number == third
    assert still.trips.to_duckdb(as_of=first).count("*").fetchall() == [(10,)]
    with pytest.raises(InvalidError, match="the version lies ahead"):
        still.trips.dataset(as_of=10_000)
    with pytest.raises(InvalidError, match="no such tag"):
        still.trips.scan(as_of="nowhere")


def test_rows_age_by_the_log_time_of_the_version(story: Story) -> None:
    schema = lakebed.schema_of(row_keys={"at": "timestamp[us, UTC]"})
    table = story.lake.create_table(
        "aged", schema, processing=lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=HOUR))
    )
    number = table.ingest(pa.table({"at": [time_of(story.clock.now())]})).number
    assert number is not None
    story.clock.advance(2 * HOUR)
    text = "select count(*) from aged"
    assert story.found(text) == [0]
    assert story.found(text, number) == [1]
    assert table.dataset(as_of=number).count_rows() == 1
