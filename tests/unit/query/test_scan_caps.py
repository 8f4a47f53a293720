"""Caps of what a query reads: told before it reads where that is known, and held while it does."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.bootstrap import local
from lakebed.bootstrap.assemble import Stores
from lakebed.bootstrap.aws import _price_of_reading
from lakebed.costs.prices import packaged_prices
from lakebed.errors import InvalidError, QueryTooLargeError
from lakebed.lake import Lake
from lakebed.ports.sorted_files import ReadFigures
from lakebed.table import Table

SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64", "note": "string"})
POINTS = ["b", "c'", "d"]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    """Four leaves of one file each."""
    table = lake.create_table(
        "t", SCHEMA, split_points=POINTS, settings={"shared_file_rows_max": 0}
    )
    ids = [f"{letter}{n:05}" for letter in ("a", "b", "c'", "d") for n in range(2_000)]
    table.ingest(pa.table({"id": ids, "n": list(range(8_000)), "note": [f"{i!r}" for i in ids]}))
    return table


@pytest.fixture
def size(table: Table) -> int:
    """Bytes of one of the four files, about."""
    return table.explain().bytes // 4


WAYS: list[Callable[..., object]] = [
    lambda table, **asked: table.to_arrow(**asked),
    lambda table, **asked: table.explain(**asked),
]


@pytest.mark.parametrize("ask", WAYS)
def test_what_would_read_more_is_refused_before_it_reads(
    table: Table, size: int, ask: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(*_: object) -> None:
        raise AssertionError("something was read")

    monkeypatch.setattr(ReadFigures, "sent", sent)
    with pytest.raises(QueryTooLargeError) as raised:
        ask(table, scan_bytes_max=2 * size + size // 2)
    error = raised.value
    assert (error.code(), error.facts["table"]) == ("query-too-large", "t")
    assert isinstance(error.facts["bytes"], int)
    assert error.facts["bytes"] > 3 * size
    assert "of about 1/2 of them (where id < 'c''' it may)" in str(error.hint)
    assert error.facts["files"] == 4
    assert "dollars" not in error.facts


def test_the_range_that_is_named_helps(table: Table, size: int) -> None:
    cap = 2 * size + size // 2
    found = table.query(where="id < 'c'''", scan_bytes_max=cap).read_all()
    assert found.num_rows == 4_000
    assert table.query(scan_bytes_max=5 * size).read_all().num_rows == 8_000
    with pytest.raises(QueryTooLargeError, match=r"of about 1/\d of them, for some"):
        table.query(scan_bytes_max=size // 2)


def test_where_requests_cost_money_the_refusal_says_how_much(
    tmp_path: Path, lake: Lake, table: Table, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.close()
    monkeypatch.setattr(local, "Stores", partial(Stores, price=lambda: 0.25))
    with lakebed.connect(tmp_path / "lake") as with_prices:
        check_told_costs(with_prices["t"], size)


def check_told_costs(table: Table, size: int) -> None:
    with pytest.raises(QueryTooLargeError) as raised:
        table.query(scan_bytes_max=size)
    error = raised.value
    assert (error.facts["requests"], error.facts["dollars"]) == (8, "2")
    assert "of about 1/5 of them" in str(error.hint)
    with pytest.raises(QueryTooLargeError) as raised:
        table.query(ranges={"id": ("b", None)}, scan_bytes_max=size)
    assert (raised.value.facts["files"], raised.value.facts["requests"]) == (3, 6)


def test_an_instance_has_the_price_of_a_request_to_s3() -> None:
    assert _price_of_reading() == packaged_prices().prices["s3_get"]


@pytest.mark.parametrize("of_table", [False, True])
def test_sql_has_the_same_cap(lake: Lake, table: Table, size: int, of_table: bool) -> None:
    ask: list[Callable[..., Any]] = [
        lambda cap: lake.sql("select * from t", scan_bytes_max=cap).read_all(),
        lambda cap: table.sql("select * from this", scan_bytes_max=cap).read_all(),
        lambda cap: lake.explain_sql("select * from t", scan_bytes_max=cap),
        lambda cap: table.explain_sql("select * from this", scan_bytes_max=cap),
    ]
    if of_table:
        table.change_settings(scan_bytes_max=size)
    for one in ask:
        with pytest.raises(QueryTooLargeError, match="would read"):
            one(9 * size if of_table else size)
        with pytest.raises(InvalidError, match="not a cap"):
            one(-1)
    narrow = lake.sql("select count(*) from t where id < 'b'", scan_bytes_max=2 * size)
    assert narrow.read_all()[0][0].as_py() == 2_000


def test_who_counts_and_who_asks_in_sql_is_told_how_far_it_is(lake: Lake, table: Table) -> None:
    told: list[int] = []
    assert table.count(where="n >= 1000", on_progress=told.append) == 7_000
    assert told == sorted(told)
    assert told[-1] == 7_000
    read: list[int] = []
    lake.sql("select note, count(*) from t group by 1", on_progress=read.append).read_all()
    assert read == sorted(read)
    assert read[-1] == 8_000


def test_a_key_a_limit_and_a_column_may_read_what_is_less_than_the_cap(
    table: Table, size: int
) -> None:
    few = 3 * size
    assert table.to_arrow(keys=["a00007"], scan_bytes_max=few).num_rows == 1
    assert table.to_arrow(limit=3, scan_bytes_max=5 * size).num_rows == 3
    assert table.to_arrow(columns="n", scan_bytes_max=few).num_rows == 8_000
    assert table.count(where="n < 5", scan_bytes_max=few) == 5
    with pytest.raises(QueryTooLargeError, match="was stopped") as raised:
        table.query(limit=3, scan_bytes_max=1_000).read_all()
    assert raised.value.facts["files"] == 4
    assert raised.value.facts["bytes_at_most"] == sum(file.bytes for file in table.files())
    assert f"of about 1/{-(-sum(f.bytes for f in table.files()) // 1_000)} of them" in str(
        raised.value.hint
    )


OF_COLUMNS: list[Callable[[Lake, int], object]] = [
    lambda lake, cap: lake["t"].query(columns="n", scan_bytes_max=cap),
    lambda lake, cap: lake["t"].scan(columns="n", scan_bytes_max=cap),
    lambda lake, cap: lake["t"].explain(columns="n", scan_bytes_max=cap),
    lambda lake, cap: lake["t"].count(where="n >= 0", scan_bytes_max=cap),
    lambda lake, cap: lake.sql("select sum(n) from t", scan_bytes_max=cap).read_all(),
    lambda lake, cap: lake.explain_sql("select sum(n) from t", scan_bytes_max=cap),
]


@pytest.mark.parametrize("ask", OF_COLUMNS)
def test_what_columns_would_read_is_told_before_rows_are_read(
    tmp_path: Path, lake: Lake, table: Table, size: int, ask: Callable[[Lake, int], object]
) -> None:
    exact = table.explain(columns="n").bytes
    tail = next(iter(tails_of(table)))
    with lakebed.connect(tmp_path / "lake") as fresh, pytest.MonkeyPatch.context() as patched:
        sent: list[int] = []
        count = ReadFigures.sent

        def counted(self: ReadFigures, requests: int, size: int) -> None:
            sent.append(size)
            count(self, requests, size)

        patched.setattr(ReadFigures, "sent", counted)
        with pytest.raises(QueryTooLargeError, match="would read") as raised:
            ask(fresh, exact // 4)
    facts = raised.value.facts
    assert len(sent) == 1
    assert sent[0] == pytest.approx(tail, rel=0.1), "the tail of one file, and no rows"
    assert (facts["files"], facts["estimate"]) == (4, "by the share of its columns")
    assert exact // 4 < int(str(facts["bytes"])) <= size * 4
    assert "of them (where id < " in str(raised.value.hint)
    assert "for fewer columns" in str(raised.value.hint)


def tails_of(table: Table) -> Iterator[int]:
    with table._opened.head.reading() as state:
        for leaf in state.leaf_figures():
            for reference, _ in state.references(leaf.partition):
                yield reference.file.size - reference.file.tail_offset


@pytest.mark.usefixtures("size")
def test_the_estimate_is_what_is_read(table: Table) -> None:
    for columns in ("n", "note", ["id", "n"]):
        exact = table.explain(columns=columns).bytes  # without tails, which are held
        with pytest.raises(QueryTooLargeError, match="would read") as raised:
            table.query(columns=columns, scan_bytes_max=exact - 1)
        assert raised.value.facts["bytes"] == pytest.approx(exact, rel=0.01)
        assert table.to_arrow(columns=columns, scan_bytes_max=exact + 8).num_rows == 8_000


@pytest.mark.usefixtures("size")
def test_a_data_set_tells_what_columns_would_read(table: Table) -> None:
    table.change_settings(scan_bytes_max=100)
    with pytest.raises(QueryTooLargeError, match="would read"):
        table.dataset().to_table(columns=["n"])


def test_the_smaller_of_both_caps_counts(table: Table, size: int) -> None:
    table.change_settings(scan_bytes_max=2 * size)
    for asked in (None, 0, 9 * size):
        with pytest.raises(QueryTooLargeError) as raised:
            table.query(scan_bytes_max=asked)
        assert raised.value.facts["scan_bytes_max"] == 2 * size
    with pytest.raises(QueryTooLargeError) as raised:
        table.query(scan_bytes_max=size)
    assert raised.value.facts["scan_bytes_max"] == size
    assert len(table) == table.count() == 8_000
    table.change_settings(scan_bytes_max=0)
    assert table.query().read_all().num_rows == 8_000


@pytest.mark.parametrize("cap", [-1, 1.5, "many", True, 1 << 60])
def test_what_is_no_cap_is_refused(table: Table, cap: Any) -> None:  # noqa: ANN401 - odd on purpose
    for ask in (table.query, table.explain, table.count):
        with pytest.raises(InvalidError, match="not a cap"):
            ask(scan_bytes_max=cap)
    with pytest.raises(InvalidError, match="scan_bytes_max"):
        table.change_settings(scan_bytes_max=-1)


def test_a_table_without_rows_has_nothing_to_read(lake: Lake) -> None:
    empty = lake.create_table("e", SCHEMA, settings={"scan_bytes_max": 1})
    assert empty.query().read_all().num_rows == 0
    assert json.loads(json.dumps(empty.settings.scan_bytes_max)) == 1
