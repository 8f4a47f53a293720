import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.errors import (
    ObjectExistsError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING, Box, KeyRange, Range, box_of, box_of_key
from lakebed.model.schema import schema_from_json, schema_of
from lakebed.ports.object_store import ObjectFacts
from lakebed.ports.sorted_files import FileWritten, Selection
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from tests.unit.sorted_files.lakes import SLEEPER, Lake, batch_of, path

TWO_KEYS = schema_of(row_keys={"a": "int64", "b": "string"}, values={"v": "int64"})


def point(value: int) -> bytes:
    return encode_key(TWO_KEYS.row_keys, [value])


def two_key_rows(rows: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {"a": rng.randrange(-20, 20), "b": rng.choice("abcdef"), "v": number}
        for number in range(rows)
    ]


def by_key(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["a"], row["b"], row["v"]))


def test_key_ranges_hold_exactly_their_rows_and_say_how_many(tmp_path: Path) -> None:
    lake, rows = Lake(tmp_path), two_key_rows(3000)
    rows = [row for row in rows if not 5 <= row["a"] < 9]
    cuts = [point(v) for v in (-20, -3, 0, 5, 9, 19)]
    key_ranges = [
        KeyRange(low or b"", high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)
    ]
    with lake.files.sorter(TWO_KEYS) as sorter:
        sorter.add(batch_of(TWO_KEYS, rows))
        counted = sorter.rows_in(key_ranges)
        written = lake.write(TWO_KEYS, sorter.sorted_batches(EVERYTHING), key_ranges)
        apart = [
            [row for b in sorter.sorted_batches(r) for row in b.to_pylist()] for r in key_ranges
        ]
    assert written is not None
    for key_range, count, facts, sorted_rows in zip(
        key_ranges, counted, written.key_ranges, apart, strict=True
    ):
        keys = [encode_key(TWO_KEYS.row_keys, [row["a"], row["b"]]) for row in rows]
        inside = sorted(key for key in keys if key_range.contains(key))
        assert count == len(inside) == len(sorted_rows)
        part = lake.part(written, key_range)
        found = lake.read(TWO_KEYS, [part]).to_pylist()
        assert by_key(found) == by_key(sorted_rows)
        if not inside:
            assert facts is None
            continue
        assert facts is not None
        assert facts.rows == count
        assert facts.bounds.min <= inside[0]
        assert facts.bounds.max is None or inside[-1] < facts.bounds.max


BOXES: list[tuple[Box, ...]] = [
    (),
    (box_of_key(TWO_KEYS, 3),),
    (box_of_key(TWO_KEYS, (3, "b")),),
    (box_of(TWO_KEYS, {"b": ("b", "d")}),),
    (box_of(TWO_KEYS, {"a": (-5, 5), "b": Range("c", None)}),),
    (box_of(TWO_KEYS, {"a": Range(None, 4)}), box_of_key(TWO_KEYS, (2, "b"))),
    (box_of_key(TWO_KEYS, (2, "b")), box_of_key(TWO_KEYS, (2, "c")), box_of_key(TWO_KEYS, 19)),
    (box_of(TWO_KEYS, {"a": (0, 0)}),),
    (box_of(TWO_KEYS, {}),),
]


@pytest.mark.parametrize("boxes", BOXES)
@pytest.mark.parametrize("columns", [None, ("v",), ("b", "v"), ("a", "b", "v")])
def test_a_condition_gives_the_rows_in_its_boxes_and_the_columns_asked_for(
    tmp_path: Path, boxes: tuple[Box, ...], columns: tuple[str, ...] | None
) -> None:
    lake = Lake(tmp_path)
    inputs = [two_key_rows(500, seed) for seed in range(3)]
    parts = [lake.part(lake.sort_and_write(TWO_KEYS, [batch_of(TWO_KEYS, r)])) for r in inputs]
    found = lake.read(TWO_KEYS, parts, Selection(boxes, columns))

    def wanted(row: dict[str, Any]) -> bool:
        fields = [encode_key([f], [row[f.name]]) for f in TWO_KEYS.row_keys]
        return any(all(r.contains(f) for r, f in zip(box, fields, strict=True)) for box in boxes)

    names = list(columns or ("a", "b", "v"))
    rows = [{n: row[n] for n in names} for rows in inputs for row in rows if wanted(row)]
    told = sorted(map(repr, rows))
    assert found.column_names == names
    assert sorted(map(repr, found.to_pylist())) == told


def test_an_empty_stream_makes_no_object(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.write(TWO_KEYS, []) is None
    assert lake.write(TWO_KEYS, [batch_of(TWO_KEYS, [])]) is None
    assert list(lake.objects.list("")) == []
    assert list(lake.files.merge(TWO_KEYS, [])) == []


def test_rows_that_are_not_sorted_are_never_written(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    low, high = (batch_of(TWO_KEYS, [{"a": v, "b": "", "v": 0}]) for v in (1, 2))
    for batches in (
        [high, low],
        [pa.Table.from_batches([high, low]).combine_chunks().to_batches()[0]],
    ):
        with pytest.raises(AssertionError, match="not sorted"):
            lake.write(TWO_KEYS, batches)
    assert list(lake.objects.list("")) == []


def test_a_sample_gives_ranks_within_a_128th_of_the_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for rows in (1, 128, 256, 257, 5000):
        batch = batch_of(TWO_KEYS, [{"a": n, "b": "x", "v": n} for n in range(rows)])
        part = lake.part(lake.write(TWO_KEYS, [batch.slice(at, 97) for at in range(0, rows, 97)]))
        sample = lake.files.sample(TWO_KEYS, part)
        whole = [encode_key(TWO_KEYS.row_keys, [n, "x"]) for n in range(rows)]
        assert list(sample.keys) == whole[:: sample.stride]
        assert len(sample.keys) <= 256
        assert sample.rows == rows
        assert sample.stride <= max(1, -(-rows // 128))
        inside = lake.files.sample(TWO_KEYS, lake.part_of(part, KeyRange(point(rows // 2), None)))
        assert all(key >= point(rows // 2) for key in inside.keys)


def test_a_file_is_plain_parquet_with_field_ids_order_and_page_index(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    batch = batch_of(
        SLEEPER,
        [{"key": f"{n:05}", "timestamp": n, "value": "v", "note": None} for n in range(9000)],
    )
    written = lake.write(SLEEPER, [batch])
    part = lake.part(written)
    (body,) = lake.objects.read(part.path, [(0, part.file.size)])
    local = tmp_path / "copy.parquet"
    local.write_bytes(body)
    metadata = pq.read_metadata(local)
    row_group = metadata.row_group(0)
    ends = [
        row_group.column(i).data_page_offset + row_group.column(i).total_compressed_size
        for i in range(metadata.num_columns)
        if not row_group.column(i).has_dictionary_page
    ]
    assert max(ends) <= part.file.tail_offset < part.file.size
    assert [s.column_index for s in row_group.sorting_columns] == [0, 1]
    assert all(row_group.column(i).has_column_index for i in (0, 1))
    assert row_group.column(0).statistics.max == "08999"
    assert row_group.column(2).statistics is None
    ids = [f.metadata[b"PARQUET:field_id"] for f in pq.read_schema(local)]
    assert ids == [b"1", b"2", b"3", b"4"]
    assert pq.read_table(local).equals(pa.Table.from_batches([batch]))
    count = duckdb.sql(f"SELECT count(*), max(timestamp) FROM '{local}'").fetchall()
    assert count == [(9000, 8999)]


def test_null_empty_and_list_of_nulls_stay_three_things(tmp_path: Path) -> None:
    types: list[object] = [
        {"list": "int32"},
        {"list": {"list": "string"}},
        {"map": ["int64", "string"]},
        {"struct": [{"name": "x", "type": {"list": "int8"}}]},
    ]
    values = [{"name": f"v{i}", "type": t, "nullable": True} for i, t in enumerate(types)]
    schema = schema_from_json({"row_keys": [{"name": "k", "type": "int32"}], "values": values})
    rows = [
        {"k": 0, "v0": None, "v1": None, "v2": None, "v3": None},
        {"k": 1, "v0": [], "v1": [], "v2": [], "v3": {"x": None}},
        {"k": 2, "v0": [None], "v1": [None, [], [None]], "v2": [(1, None)], "v3": {"x": []}},
        {"k": 3, "v0": [1, None], "v1": [["", None]], "v2": [(0, "")], "v3": {"x": [None]}},
    ]
    lake = Lake(tmp_path)
    parts = [lake.part(lake.write(schema, [batch_of(schema, rows[at::2])])) for at in (0, 1)]
    assert lake.read(schema, parts).to_pylist() == rows
    assert arrow_schema(schema).field("v0").nullable


@pytest.mark.parametrize("member", ["int64", "float64"])
@pytest.mark.parametrize("field", ["string", "int32"])
def test_fields_with_dots_in_their_names_are_told_apart(
    tmp_path: Path, field: str, member: str
) -> None:
    schema = schema_of(
        row_keys={"k": "int32"},
        values={"a.b": field, "a": {"struct": [{"name": "b", "type": member}]}},
    )
    rows = [{"k": n, "a.b": f"{n}" if field == "string" else n, "a": {"b": n}} for n in range(3)]
    lake = Lake(tmp_path)
    part = lake.part(lake.write(schema, [batch_of(schema, rows)]))
    assert lake.read(schema, [part]).to_pylist() == rows
    for name in ("a.b", "a"):
        found = lake.read(schema, [part], Selection((box_of(schema, {}),), (name,)))
        assert found.to_pylist() == [{name: row[name]} for row in rows]


class LossyStore:
    """A store whose `finish` fails in a way that a test chooses."""

    def __init__(self, lake: Lake, problem: Exception, *, lands: bool) -> None:
        self.lake, self.problem, self.lands = lake, problem, lands
        self.aborted = 0
        self.looks: Exception | None = None

    def create(self, path: str) -> "LossyStore":
        self.inner = self.lake.objects.create(path)
        return self

    def write(self, data: bytes) -> int:
        if isinstance(self.problem, (StorageFullError, AssertionError)):
            raise self.problem
        return self.inner.write(data)

    def finish(self) -> ObjectFacts:
        if self.lands:
            self.inner.finish()
        raise self.problem

    def abort(self) -> None:
        self.aborted += 1
        self.inner.abort()
        self.problem = AssertionError("written to after it was given up")

    def look(self, path: str) -> ObjectFacts | None:
        if self.looks is not None:
            raise self.looks
        return self.lake.objects.look(path)


def write_through(store: LossyStore, lake: Lake, rows: int = 3) -> FileWritten:
    files = lake.over(store)
    batch = batch_of(TWO_KEYS, [{"a": n, "b": "", "v": n} for n in range(rows)])
    name = FileName(b"n" * 16)
    written = files.write(TWO_KEYS, [batch], name=name, path=path(9), key_ranges=[EVERYTHING])
    assert written is not None
    return written


@pytest.mark.parametrize("problem", [UnknownOutcomeError("lost"), ObjectExistsError(path(9))])
def test_a_write_whose_answer_was_lost_is_read_back(tmp_path: Path, problem: Exception) -> None:
    lake = Lake(tmp_path)
    written = write_through(LossyStore(lake, problem, lands=True), lake)
    facts = lake.objects.look(path(9))
    assert facts is not None
    assert (written.file.size, written.file.checksum) == (facts.size, facts.checksum)
    with pytest.raises(ObjectExistsError):
        write_through(LossyStore(lake, problem, lands=False), lake, rows=4)


def test_a_write_that_may_still_land_stays_unknown(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    store = LossyStore(lake, UnknownOutcomeError("lost"), lands=False)
    with pytest.raises(UnknownOutcomeError):
        write_through(store, lake)
    store = LossyStore(lake, ObjectExistsError(path(9)), lands=False)
    store.looks = UnavailableError("busy")
    with pytest.raises(UnknownOutcomeError):
        write_through(store, lake)


def test_an_error_of_the_store_comes_out_as_it_is_and_the_object_is_given_up(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path)
    for problem in (StorageFullError("full"), UnavailableError("busy")):
        store = LossyStore(lake, problem, lands=False)
        with pytest.raises(type(problem)):
            write_through(store, lake)
        assert store.aborted
    assert list(lake.objects.list("")) == []
