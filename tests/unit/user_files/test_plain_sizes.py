"""Values that are small as they come, and large as plain columns."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import InvalidError, UnavailableError
from lakebed.ingest.sources import ArrowSource
from lakebed.sorted_files import parquet_files
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.sorted_files.sorting import external_sort
from lakebed.user_files import casting, parquet_texts, plain_sizes
from lakebed.user_files.csv_and_parquet import parquet_batches
from lakebed.user_files.input_files import input_files, rows_of
from lakebed.user_files.plain_sizes import pieces, plain_bytes

LONG = "x" * 1_000
TEXTS = ["a", None, "bcd", "", "ä", "eleven bytes"]
LENGTHS = [1, 0, 3, 0, 2, 12]
SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"text": "string?"})
LISTS = lakebed.schema_of(row_keys={"id": "int64"}, values={"texts": {"list": "string"}})


@pytest.fixture
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_sizes, "PIECE_BYTES", 10_000)
    monkeypatch.setattr(plain_sizes, "VALUE_BYTES_MAX", 5_000)
    monkeypatch.setattr(parquet_texts, "TEXTS_BYTES_MAX", 10_000)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_bytes_of_texts(kind: pa.DataType) -> None:
    array = pa.array(TEXTS).cast(kind)
    assert plain_bytes(array).tolist() == LENGTHS
    assert plain_bytes(array.slice(2, 3)).tolist() == LENGTHS[2:5]
    assert plain_bytes(array.slice(0, 0)).tolist() == []


def test_bytes_of_a_dictionary_with_nulls_in_both_places() -> None:
    indices = pa.array([0, 1, None, 2, 0], pa.int32())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["abc", None, ""]))
    assert plain_bytes(array).tolist() == [3, 0, 0, 0, 3]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    assert plain_bytes(nothing).tolist() == [0]


def lists_of(kind: Callable[[pa.DataType], pa.DataType], values: list[Any]) -> pa.Array:
    return pa.array(values, kind(pa.dictionary(pa.int32(), pa.string())))


@pytest.mark.parametrize(
    "array",
    [
        lists_of(pa.list_, [["abc", "d"], None, [], ["ef", None]]),
        lists_of(pa.large_list, [["abc", "d"], None, [], ["ef", None]]),
        lists_of(pa.list_view, [["abc", "d"], None, [], ["ef", None]]),
        lists_of(pa.large_list_view, [["abc", "d"], None, [], ["ef", None]]),
        lists_of(lambda t: pa.list_(t, 2), [["abc", "d"], [None, None], ["", ""], ["ef", None]]),
        lists_of(lambda t: pa.map_(t, t), [[("abc", "d")], None, [], [("ef", None)]]),
        lists_of(
            lambda t: pa.struct([("a", t), ("b", pa.list_(t))]),
            [{"a": "abc", "b": ["d"]}, {"a": ""}, {"b": []}, {"b": ["ef"]}],
        ),
    ],
    ids=lambda array: str(array.type)[:20],
)
def test_bytes_of_what_is_nested(array: pa.Array) -> None:
    assert plain_bytes(array).tolist() == [4, 0, 0, 2]
    assert plain_bytes(array.slice(1, 3)).tolist() == [0, 0, 2]
    assert plain_bytes(array.slice(1, 3).slice(2)).tolist() == [2]


def test_views_that_share_their_values_count_each_time() -> None:
    items = pa.array(["abc", "d"])
    shared = pa.ListViewArray.from_arrays(
        pa.array([0, 0, 1], pa.int32()), pa.array([2, 2, 1], pa.int32()), items
    )
    assert plain_bytes(shared).tolist() == [4, 4, 1]


@pytest.mark.usefixtures("_small_pieces")
def test_rows_come_in_pieces_that_stay_small() -> None:
    rng = random.Random(3)
    texts = [None if rng.random() < 0.1 else LONG[: rng.randrange(999)] for _ in range(500)]
    batch = pa.record_batch({"id": range(500), "text": pa.array(texts).dictionary_encode()})
    given = list(casting.conformed([batch], SCHEMA))
    assert len(given) > 10
    assert max(part.nbytes for part in given) < 10_000 + 500 * 16
    found = pa.Table.from_batches(given)
    assert found.column("id").to_pylist() == list(range(500))
    assert found.column("text").to_pylist() == texts
    lists = pa.record_batch(
        {"id": range(500), "texts": lists_of(pa.list_, [[text, text] for text in texts])}
    )
    given = list(casting.conformed([lists], LISTS))
    assert len(given) > 20
    assert pa.Table.from_batches(given).column("texts").to_pylist() == [[t, t] for t in texts]


def test_plain_rows_are_not_cut() -> None:
    batch = pa.record_batch({"id": range(9), "text": [LONG] * 9})
    assert list(pieces(batch, {"id", "text"})) == [batch]
    empty = batch.slice(0, 0)
    assert list(pieces(empty, {"id", "text"})) == [empty]


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("encode", [lambda a: a, lambda a: a.dictionary_encode()])
def test_a_value_that_is_too_large_is_refused_by_its_row(
    encode: Callable[[pa.Array], pa.Array],
) -> None:
    texts = pa.array([*[LONG] * 7, 6 * LONG, LONG])
    rows = pa.table({"id": range(9), "text": encode(texts)})
    source = ArrowSource(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(4)), SCHEMA)
    with pytest.raises(InvalidError, match="a value is too large") as refused:
        list(source.batches())
    facts = refused.value.facts
    assert (facts["field"], facts["row"], facts["bytes"], facts["max"]) == ("text", 7, 6_000, 5_000)


@pytest.mark.usefixtures("_small_pieces")
def test_columns_that_are_dropped_may_be_large() -> None:
    rows = pa.table({"id": [1], "text": ["a"], "more": [6 * LONG]})
    (batch,) = ArrowSource(rows, SCHEMA, extra_columns="drop").batches()
    assert batch.to_pydict() == {"id": [1], "text": ["a"]}


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("stores_schema", [True, False])
@pytest.mark.parametrize("encode", [lambda a: a, lambda a: a.dictionary_encode()])
def test_a_text_that_parquet_stores_once_is_read_in_pieces(
    tmp_path: Path, encode: Callable[[pa.Array], pa.Array], *, stores_schema: bool
) -> None:
    path = tmp_path / "rows.parquet"
    texts = [f"{n % 3}{LONG}" for n in range(1_000)]
    rows = pa.table({"id": range(1_000), "text": encode(pa.array(texts))})
    pq.write_table(rows, path, row_group_size=400, store_schema=stores_schema)
    assert path.stat().st_size < 20_000
    (file,) = input_files([path])
    given = list(rows_of(file, SCHEMA))
    assert max(part.nbytes for part in given) < 20_000
    assert pa.Table.from_batches(given).column("text").to_pylist() == texts
    assert max(batch.nbytes for batch in parquet_batches(path)) < 20_000


@pytest.mark.usefixtures("_small_pieces")
def test_texts_in_lists_that_parquet_stores_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    lists = [[f"{n % 3}{LONG}", None] for n in range(500)]
    pq.write_table(pa.table({"id": range(500), "texts": lists}), path)
    assert max(batch.nbytes for batch in parquet_batches(path)) < 20_000
    (file,) = input_files([path])
    given = list(rows_of(file, LISTS))
    assert max(part.nbytes for part in given) < 20_000
    assert pa.Table.from_batches(given).column("texts").to_pylist() == lists


def test_short_texts_are_read_plain(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": range(70_000), "text": ["short", "texts"] * 35_000}), path)
    kinds = {batch.schema.field("text").type for batch in parquet_batches(path)}
    assert kinds == {pa.string()}


def test_texts_that_share_beginnings_come_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    texts = [f"{LONG}{n}" for n in range(1_000)]
    pq.write_table(
        pa.table({"id": range(1_000), "text": texts}),
        path,
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY", "id": "PLAIN"},
    )
    monkeypatch.setattr(parquet_texts, "SHARED_BYTES_MAX", 1 << 20)
    batches = list(parquet_batches(path))
    assert max(batch.nbytes for batch in batches) < 1 << 20
    assert pa.Table.from_batches(batches).column("text").to_pylist() == texts


@pytest.mark.parametrize(
    "problem",
    [
        pa.ArrowMemoryError("malloc of size 9 failed"),
        MemoryError(),
        pa.lib.ArrowCapacityError("array cannot contain more than 2147483646 bytes"),
    ],
)
def test_memory_that_runs_out_is_no_mistake_of_the_rows(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(casting, "_fitted", fail)
    rows = pa.table({"id": [1], "text": ["a"]})
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        with pytest.raises(UnavailableError, match="not enough memory") as told:
            table.ingest(rows)
        assert "more memory" in str(told.value)
        assert table.query().read_all().num_rows == 0


def test_memory_that_runs_out_while_rows_are_sorted_or_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        rows = pa.table({"id": [1], "text": ["a"]})
        table.ingest(rows)
        with monkeypatch.context() as patched:
            patched.setattr(external_sort, "check_keys", fail)
            with pytest.raises(UnavailableError, match="not enough memory"):
                table.ingest(rows)
        with monkeypatch.context() as patched:
            patched.setattr(parquet_files, "own_memory", fail)
            with pytest.raises(UnavailableError, match="not enough memory"):
                table.query().read_all()
        assert table.query().read_all().num_rows == 1


@pytest.mark.parametrize("problem", [pa.ArrowMemoryError("malloc of size 9 failed"), MemoryError()])
def test_memory_that_runs_out_in_a_compaction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        for _ in range(2):
            table.ingest(pa.table({"id": [1], "text": ["a"]}))
        with monkeypatch.context() as patched:
            patched.setattr(ParquetFiles, "merge_into_file", fail)
            with pytest.raises(UnavailableError, match="not enough memory"):
                table.compact()
        table.compact()
        assert table.query().read_all().num_rows == 2
