"""Questions in SQL about a lake: answers, what is refused and how, and what ends when."""

import datetime
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import CorruptError, InvalidError, LakebedError, TableMissingError
from lakebed.face import asked_in_sql
from lakebed.lake import Lake
from lakebed.sql import shut_engine, sql_work, statement
from lakebed.sql.explain_sql import explain_sql
from lakebed.sql.sql_work import Parameters

ROWS = 3_000


def rows_of(number: int) -> pa.Table:
    ids = list(range(number))
    day = datetime.date(2026, 1, 1)
    return pa.table(
        {
            "id": [f"k{n:05}" for n in ids],
            "city": [["ulm", "bonn", "kiel", None][n % 4] for n in ids],
            "fare": [n / 4 if n % 7 else None for n in ids],
            "price": pa.array([Decimal(n) / 100 for n in ids], pa.decimal128(9, 2)),
            "day": [day + datetime.timedelta(days=n % 40) for n in ids],
            "at": pa.array(ids, pa.timestamp("us", "UTC")),
            "small": pa.array([n % 100 for n in ids], pa.int8()),
            "raw": [bytes([n % 256]) for n in ids],
        }
    )


SCHEMA = lakebed.schema_of(
    row_keys={"id": "string"},
    values={
        "city": "string?",
        "fare": "float64?",
        "price": "decimal128(9,2)",
        "day": "date32",
        "at": "timestamp[us, UTC]",
        "small": "int8",
        "raw": "binary",
    },
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakebed.connect(tmp_path_factory.mktemp("sql") / "lake") as made:
        table = made.create_table("trips", SCHEMA, split_points=["k00900", "k01700"])
        for start in range(0, ROWS, 1_000):
            table.ingest(rows_of(ROWS).slice(start, 1_000))
        cities = lakebed.schema_of(row_keys={"name": "string"}, values={"people": "int64"})
        made.create_table("cities", cities).ingest(
            [{"name": "ulm", "people": 126}, {"name": "bonn", "people": 330}]
        )
        made.create_table("my-table", cities)
        yield made


QUESTIONS = [
    "select count(*) from trips",
    "select count(*), sum(fare), min(id), max(price) from trips",
    "select city, count(*) n, sum(price) s from trips group by city order by n, city",
    "select * from trips where id = 'k00017'",
    "select * from trips where id in ('k00017', 'k02999', 'no') order by id",
    "select id, raw from trips where id between 'k00890' and 'k00910' order by id",
    "select id from trips where id like 'k0001%' order by id",
    "select id from trips where city is null and fare > 100.5 and small < 50 order by id",
    "select id from trips where city = 'ulm' or day = date '2026-01-05' order by id limit 20",
    "select id, fare from trips where not (fare < 700) order by id",
    "select id from trips where trips.at >= timestamptz '1970-01-01 00:00:00.002990Z' order by id",
    "select id from trips where price = 3.07",
    "select day, avg(fare) from trips where small in (1, 2, 3) group by day order by day",
    "select t.id, c.people from trips t join cities c on t.city = c.name order by t.id limit 9",
    "select count(*) from trips a join trips b on a.id = b.id where b.small = 4",
    "with trips as (select * from trips where small = 3) select count(*) from trips",
    "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) from r",
    "select * from range(3) r(x), unnest(['a', 'b']) u(y) order by x, y",
    "select id, row_number() over (partition by city order by id) from trips order by id limit 7",
    "select count(*) from trips where fare is not null and city in (select name from cities)",
    "from TRIPS select count(*)",
    'select count(*) from "my-table"',
    "select id from trips where id > 'k02995' union all select name from cities order by 1;",
    "select distinct raw from trips where raw < '\\x05'::blob order by raw",
    "select id from trips where id > 'k02000' and id < 'k01000'",
    "values (1, 'a'), (2, 'b')",
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"python_enable_replacements": "false"})
    connection.execute("SET TimeZone = 'UTC'").fetchall()
    tables = {
        "trips": rows_of(ROWS),
        "cities": pa.table({"name": ["ulm", "bonn"], "people": [126, 330]}),
        "my-table": pa.table({"name": pa.array([], pa.string()), "people": []}),
    }
    for name, rows in tables.items():
        connection.register("given", rows)
        connection.execute(f'CREATE TABLE "{name}" AS FROM given').fetchall()
        connection.unregister("given")
    yield connection
    connection.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_those_of_the_same_rows_in_memory(
    lake: Lake, oracle: duckdb.DuckDBPyConnection, question: str
) -> None:
    wanted = oracle.sql(question).to_arrow_table()
    found = lake.sql(question).read_all()
    assert found.schema.names == wanted.schema.names
    assert found.schema.types == wanted.schema.types
    assert found.to_pylist() == wanted.to_pylist()


def test_parameters_are_values_by_position_or_by_name(lake: Lake) -> None:
    table = lake.table("trips")
    found = table.sql("select id from this where id = ? and small < ?", ["k00017", 50])
    assert found.read_all().to_pylist() == [{"id": "k00017"}]
    named = table.sql("select count(*) n from this where city = $city", {"city": "ulm"})
    assert named.read_all().to_pylist() == [{"n": ROWS // 4}]
    hostile = table.sql("select count(*) n from this where id = ?", ["x' or 1 = 1 --"])
    assert hostile.read_all().to_pylist() == [{"n": 0}]


def test_this_is_the_table_and_others_are_there_too(lake: Lake) -> None:
    text = "select count(*) n from this join cities on city = name"
    assert lake.table("trips").sql(text).read_all().to_pylist() == [{"n": ROWS // 2}]
    with pytest.raises(TableMissingError):
        lake.sql(text)


REFUSED = [
    ("", "no SQL was given"),
    (" \n", "no SQL was given"),
    ("  -- nothing", "no SQL was given"),
    ("select at from trips", "at that place; a name that is a word of SQL, as at, is written .at."),
    ("selec 1", 'not SQL .*syntax error at or near "selec" place=line 1, column 1'),
    ("select 1;\nselect (", "not SQL .*place=line 2"),
    ("select 1; select 2", "one statement .statements=2"),
    ("insert into trips values (1)", "only SELECT can be run"),
    ("create table x as select 1", "only SELECT can be run"),
    ("drop table trips", "only SELECT can be run"),
    ("copy trips to 'x.csv'", "only SELECT can be run"),
    ("copy (select 1) to 'x.csv'", "only SELECT can be run"),
    ("export database 'x'", "only SELECT can be run"),
    ("attach 'x.db'", "only SELECT can be run"),
    ("install httpfs", "only SELECT can be run"),
    ("load httpfs", "only SELECT can be run"),
    ("set threads = 1", "only SELECT can be run"),
    ("pragma database_list", "only SELECT can be run"),
    ("explain select 1", "only SELECT can be run"),
    ("pivot trips on city using count(*)", "only SELECT can be run"),
    ("select * from (pivot trips on city using count(*))", "only SELECT can be run"),
    ("describe trips", "only SELECT can be run"),
    ("select * from (summarize trips)", "only SELECT can be run"),
    ("show tables", "only SELECT can be run"),
    ("call pragma_version()", "only SELECT can be run"),
    ("prepare q as select 1", "only SELECT can be run"),
    ("from tripz", "did you mean 'trips'"),
    ("select (select max(id) from trip) from cities", "did you mean 'trips'"),
    ("from 'x.parquet'", "no such table .*known tables"),
    ("from '/etc/passwd'", "no such table"),
    ('from "s3://b/x.csv"', "no such table"),
    ("from read_csv('x.csv')", "no such function of tables .function=read_csv"),
    ("from read_text('/etc/passwd')", "no such function of tables"),
    ("from glob('*')", "no such function of tables"),
    ("from sniff_csv('x.csv')", "no such function of tables"),
    ("from duckdb_settings()", "no such function of tables"),
    ("from query('select 1')", "no such function of tables"),
    ("from query_table('trips')", "no such function of tables"),
    ("from json_execute_serialized_sql('{}')", "no such function of tables"),
    ("from ranges(3)", "did you mean 'range'"),
    ("from information_schema.tables", "no such schema"),
    ("from main.trips", "no such schema"),
    ("from memory.main.trips", "no such schema"),
    ("from duckdb_tables", "no such table"),
    ("from sqlite_master", "no such table"),
    ("from lakebed.fils", "did you mean 'files'"),
    ("select nope(1) from trips", "nope does not exist.*place=line 1, column 8"),
    ("select coutn(*) from trips", 'coutn does not exist! Did you mean "count"'),
    ("select\n  nope from trips", "nope.*place=line 2, column 3"),
    ("select 'a'::int from trips", "Could not convert string 'a'"),
    ("select * from trips where id = ?", "Values were not provided"),
    ("select " + "(" * 3000 + "1" + ")" * 3000, "."),
    ("select '" + "x" * (1 << 20) + "'", "the SQL is too long"),
    ("select '\ud800'", "the SQL cannot be read"),
]


@pytest.mark.parametrize(("text", "wanted"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_what_is_no_question_about_tables_of_the_lake_is_refused(
    lake: Lake, text: str, wanted: str
) -> None:
    with pytest.raises(LakebedError, match=wanted) as caught:
        lake.sql(text).read_all()
    assert isinstance(caught.value, (InvalidError, TableMissingError))
    assert caught.value.hint


@pytest.mark.parametrize("parameters", [[object()], {"a": 1}, ["a", "b"]])
def test_parameters_that_do_not_fit_are_refused(lake: Lake, parameters: Parameters) -> None:
    with pytest.raises(InvalidError):
        lake.sql("select count(*) from trips where id = ?", parameters).read_all()


def test_a_text_is_parsed_once_whatever_its_parameters(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    tree_of = statement._tree_of

    def counted(connection: duckdb.DuckDBPyConnection, text: str) -> list[object]:
        texts.append(text)
        return tree_of(connection, text)

    monkeypatch.setattr(statement, "_tree_of", counted)
    monkeypatch.setattr(statement, "KNOWN_MAX", 3)
    statement._KNOWN.clear()
    text = "select count(*) n from trips where small = ?"
    found = [lake.sql(text, [small]).read_all()["n"][0].as_py() for small in (3, 200)]
    assert found == [ROWS // 100, 0]
    assert texts == [text]
    for _ in range(2):
        with pytest.raises(InvalidError, match="only SELECT"):
            lake.sql("drop table trips")
    assert len(texts) == 3, "what is refused is not kept"
    for number in range(5):
        lake.sql(f"select {number}").read_all()
        assert len(statement._KNOWN) <= 3
    lake.sql(" " * statement.KNOWN_LETTERS_MAX + "select 1").read_all()
    assert max(map(len, statement._KNOWN)) < 100


def test_one_text_too_many_forgets_only_the_one_not_asked_for_longest(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement, "KNOWN_MAX", 3)
    statement._KNOWN.clear()
    for number in (1, 2, 3, 1, 4):
        lake.sql(f"select {number}").read_all()
    assert list(statement._KNOWN) == ["select 3", "select 1", "select 4"]


def test_a_stream_ends_with_its_engine(lake: Lake) -> None:
    rows = lake.sql("select a.id from trips a, trips b")
    assert rows.read_next_batch().num_rows
    (work,) = sql_work._OPEN
    del rows
    assert not sql_work._OPEN
    assert not work._connections
    lake.sql("select 1").read_all()
    assert not sql_work._OPEN
    with pytest.raises(InvalidError):
        lake.sql("select nope")
    assert not sql_work._OPEN


def test_a_statement_is_ended_from_another_thread(lake: Lake) -> None:
    """As when a process ends. An interrupt that comes too early is forgotten: close it again."""
    endless = "select count(*) from range(1_000_000_000_000) r(i) where hash(i) = 0"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lake.sql, endless)
        while endless not in statement._KNOWN:
            time.sleep(0.05)
        while not waiting.done():
            time.sleep(0.2)  # it runs now, most likely
            for work in list(sql_work._OPEN):
                work.close()
        with pytest.raises(InvalidError, match="the SQL"):
            waiting.result()
    assert not sql_work._OPEN


def test_too_little_memory_is_an_error_and_no_end(lake: Lake, tmp_path: Path) -> None:
    connection = shut_engine.new_engine(tmp_path, memory_bytes=30 << 20)
    connection.execute("SET max_temp_directory_size = '1MiB'").fetchall()
    work = sql_work.SqlWork(connection)
    with pytest.raises(LakebedError, match="not enough memory"):
        work.stream("select list(i) from range(30_000_000) r(i)", ()).read_all()
    work.close()


def test_an_engine_reaches_nothing_of_the_machine(tmp_path: Path) -> None:
    canary = tmp_path / "canary.csv"
    canary.write_text("a\n1\n")
    (tmp_path / "spill").mkdir()
    work = sql_work.SqlWork(shut_engine.ShutEngine(tmp_path / "spill").connection())
    mine = pa.table({"secret": [1]})
    for text in (
        f"from read_csv('{canary}')",
        f"from '{canary}'",
        f"from glob('{tmp_path}/*')",
        f"copy (select 1) to '{tmp_path}/out.csv'",
        f"attach '{tmp_path}/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set python_enable_replacements = true",
        "from mine",
    ):
        with pytest.raises(duckdb.Error):
            work.connection.execute(text).fetchall()
    assert mine.num_rows
    work.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["canary.csv", "spill"]


def test_an_error_of_ours_comes_out_as_it_is(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"})
        lake.create_table("t", schema).ingest([{"id": n} for n in range(100)])
        for file in (tmp_path / "lake").rglob("*.parquet"):
            file.unlink()
        with pytest.raises(CorruptError, match="a file of the table is missing") as caught:
            lake.sql("select sum(id) from t").read_all()
        assert caught.value.facts["table"] == "t"


def test_system_tables_tell_of_all_tables(lake: Lake) -> None:
    files = lake.sql(
        'select "table", count(*) n, sum(rows) r from lakebed.files group by 1 order by 1'
    ).read_all()
    assert files.to_pylist()[1] == {"table": "trips", "n": 5, "r": Decimal(ROWS)}
    leaves = lake.sql("select min, max from lakebed.leaves where \"table\" = 'trips' order by leaf")
    assert {row["min"] for row in leaves.read_all().to_pylist()} == {None, "k00900", "k01700"}
    jobs = lake.sql("select distinct kind, event from lakebed.jobs").read_all().to_pylist()
    assert jobs == [{"kind": "ingest", "event": "committed"}]
    log = lake.sql("select count(*) n from lakebed.log where \"table\" = 'trips'").read_all()
    assert log.to_pylist() == [{"n": 4}]
    metrics = lake.sql(
        "select value from lakebed.metrics where metric = 'rows' and \"table\" = 'trips'"
    ).read_all()
    assert metrics.to_pylist() == [{"value": float(ROWS)}]


def test_an_explanation_tells_what_each_scan_read(lake: Lake) -> None:
    found = lake.explain_sql("select count(*) from trips where small > 5 and city like '%l%'")
    assert "PYTHON_ARROW_SCAN" in found.plan
    (scan,) = found.scans
    assert (scan.table, scan.read.table, scan.read.leaves) == ("trips", "trips", 3)
    assert "small" in scan.filter
    assert "no part of the filter is a range of id" in scan.hint
    assert scan.without_range == ("(small > 5)",)
    assert found.not_pushed == ("contains(city, 'l')",)
    assert scan.read.requests
    assert "scan of trips" in str(found)
    assert "hint" in str(found)
    joined = lake.table("trips").explain_sql("select 1 from this join cities on city = name")
    assert sorted(scan.table for scan in joined.scans) == ["cities", "this"]
    with pytest.raises(InvalidError):
        lake.explain_sql("select nope from trips")
    assert not sql_work._OPEN


def test_without_duckdb_the_error_names_the_extra(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("lakebed.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InvalidError, match=r"pip install 'lakebed\[sql\]'"):
        lake.sql("select 1")


def test_each_table_is_read_at_one_version(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"})
        table = lake.create_table("t", schema)
        table.ingest([{"id": n} for n in range(100)])
        sql = asked_in_sql.sql_of(lake._app)
        seen: list[str] = []

        def more_rows(name: str, _: object) -> None:
            seen.append(name)
            table.ingest([{"id": n + 1000 * len(seen)} for n in range(50)])

        text = "select (select count(*) from t), (select count(*) from t), count(*) from t"
        work = sql.begin(text, on_scan=more_rows)
        (row,) = work.stream(text, ()).read_all().to_pylist()
        assert len(seen) >= 1
        assert set(row.values()) == {100}
        assert explain_sql(sql, text).scans
