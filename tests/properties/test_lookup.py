"""Rows found by pages, held against whole row groups and a plain filter over all rows;
bytes that are not as they were written (H26)."""

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.errors import CorruptError
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.ranges import EVERYTHING, Box, KeyRange, Range, box_of, box_of_key
from lakebed.model.schema import Schema, schema_of
from lakebed.parquet_bytes.footer import Footer
from lakebed.parquet_bytes.page_index import pages_of
from lakebed.ports.object_store import ObjectRanges
from lakebed.ports.sorted_files import ReadFigures, Selection
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.writing import file_writing, writer_options
from tests.unit.sorted_files.lakes import KEY_VALUES, Lake

FLAT: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "uint16": st.integers(0, 65_535),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=9) | st.sampled_from(["", "red", "green", "\x00", "é" * 5]),
    "binary": st.binary(max_size=9),
    "date32": st.integers(-10_000, 10_000),
    "timestamp[us]": st.integers(-(10**15), 10**15),
    "decimal128(12,2)": st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2)),
}
REPEATED = "dictionary"
"""A field whose few values get a dictionary."""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of at most 5 rows, row groups of at most 23, so that few rows make many of them."""
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 5)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 5)
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 23)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    types = st.lists(st.sampled_from(sorted(KEY_VALUES)), min_size=1, max_size=3)
    row_keys = {f"k{n}": t for n, t in enumerate(draw(types))}
    values = draw(st.lists(st.sampled_from(sorted(FLAT)), max_size=4, unique=True))
    fields: dict[str, object] = {f"v{n}": f"{t}?" for n, t in enumerate(values)}
    return schema_of(
        row_keys=row_keys, sort_keys={"sort": "int32"}, values={**fields, REPEATED: "string?"}
    )


def rows_of(schema: Schema, data: st.DataObject) -> pa.RecordBatch:
    """Rows whose keys repeat, across pages and row groups too."""
    fields = schema.row_keys
    key = st.tuples(*(KEY_VALUES[str(f.type)] for f in fields))
    keys = data.draw(st.lists(key, min_size=1, max_size=8))
    count = data.draw(st.integers(1, 70))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    mixed = [tuple(rng.choice(keys)[n] for n in range(len(fields))) for _ in range(count)]
    columns: list[pa.Array] = []
    for place, field in enumerate(schema.row_keys):
        kind, some = schema_column(schema, field.name).type, [one[place] for one in mixed]
        is_time = pa.types.is_timestamp(kind)
        columns.append(pa.array(some, pa.int64()).cast(kind) if is_time else pa.array(some, kind))
    columns.append(pa.array([rng.randrange(-9, 9) for _ in mixed], pa.int32()))
    for field in schema.values:
        name = str(field.type)
        kind = pa.string() if field.name == REPEATED else schema_column(schema, field.name).type
        some: list[Any] = [None, "north", "south"]
        if field.name != REPEATED:
            some = [None, *data.draw(st.lists(FLAT[name], min_size=1, max_size=3))]
        values = [rng.choice(some) for _ in range(count)]
        is_time = name.startswith("timestamp")
        columns.append(pa.array(values, pa.int64() if is_time else kind).cast(kind))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_columns(schema))


def arrow_columns(schema: Schema) -> pa.Schema:
    from lakebed.sorted_files.format.arrow_schema import arrow_schema

    return arrow_schema(schema)


def schema_column(schema: Schema, name: str) -> pa.Field:
    return arrow_columns(schema).field(name)


def boxes_of(schema: Schema, batches: list[pa.RecordBatch], data: st.DataObject) -> list[Box]:
    """Keys that are there, prefixes of them, keys that are not, and ranges between keys."""
    fields = schema.row_keys
    there = [key for batch in batches for key in keys_in(schema, batch)]
    absent = data.draw(st.tuples(*(KEY_VALUES[str(f.type)] for f in fields)))
    key = st.sampled_from(there) | st.just(absent)
    boxes = []
    for _ in range(data.draw(st.integers(1, 3))):
        one, other = data.draw(key), data.draw(key)
        if data.draw(st.booleans()):
            boxes.append(box_of_key(schema, one[: data.draw(st.integers(1, len(fields)))]))
        else:
            place = data.draw(st.integers(0, len(fields) - 1))
            low, high = sorted((one[place], other[place]))
            boxes.append(box_of(schema, {fields[place].name: Range(low, high)}))
    return boxes


def keys_in(schema: Schema, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    columns = []
    for field in schema.row_keys:
        column = batch.column(field.name)
        if pa.types.is_temporal(column.type):
            is_day = pa.types.is_date(column.type)
            column = column.cast(pa.int32() if is_day else pa.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def is_in(schema: Schema, key: tuple[Any, ...], key_range: KeyRange, boxes: list[Box]) -> bool:
    encoded = [encode_key([f], [v]) for f, v in zip(schema.row_keys, key, strict=True)]
    return key_range.contains(b"".join(encoded)) and any(
        all(r.contains(value) for r, value in zip(box, encoded, strict=True)) for box in boxes
    )


def told(table: pa.Table) -> list[str]:
    """Rows as text, in an order of their own. Dates and times reach further than Python's."""
    for place, column in enumerate(table.schema):
        if pa.types.is_temporal(column.type):
            number = pa.int32() if pa.types.is_date(column.type) else pa.int64()
            table = table.set_column(place, column.name, table.column(place).cast(number))
    return sorted(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True)))


@given(data=st.data())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_pages_give_what_row_groups_and_a_plain_filter_give(
    tmp_path: Path, data: st.DataObject
) -> None:
    schema = data.draw(schemas())
    lake = Lake(tmp_path)
    batches = [rows_of(schema, data) for _ in range(data.draw(st.integers(1, 3)))]
    middle = encode_key(schema.row_keys, data.draw(st.sampled_from(keys_in(schema, batches[0]))))
    key_ranges = [EVERYTHING, KeyRange(b"", middle), KeyRange(middle, None)]
    parts = [
        lake.part(lake.sort_and_write(schema, [batch]), data.draw(st.sampled_from(key_ranges)))
        for batch in batches
    ]
    boxes = boxes_of(schema, batches, data)
    names = arrow_columns(schema).names
    asked = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True) | st.none())
    condition = Selection(tuple(boxes), None if asked is None else tuple(asked))
    figures = ReadFigures()
    columns = [arrow_columns(schema).field(name) for name in asked or names]
    found = pa.Table.from_batches(
        lake.files.read(schema, [parts], condition, figures), pa.schema(columns)
    )
    expected = [
        batch.filter(
            pa.array([is_in(schema, k, part.key_range, boxes) for k in keys_in(schema, batch)])
        )
        for batch, part in zip(batches, parts, strict=True)
    ]
    assert told(found) == told(pa.Table.from_batches(expected).select(asked or names))
    by_groups = lake.read(schema, parts, condition)
    assert told(found) == told(by_groups)
    row_keys = [f.name for f in schema.key_fields]
    if set(row_keys) <= set(found.column_names):
        assert found.select(row_keys).equals(by_groups.select(row_keys))
    assert figures.pages_read <= figures.pages, "dictionaries are pages, too"
    if all(box[0].min or box[0].max is not None for box in boxes):
        assert figures.rounds <= 2, "tails, then all pages at the same time"


class Damaged:
    """Objects of a lake, one of which has other bytes."""

    def __init__(self, lake: Lake, path: str) -> None:
        self.lake, self.path = lake, path
        facts = lake.objects.look(path)
        assert facts is not None
        (self.body,) = lake.objects.read(path, [(0, facts.size)])

    def read(self, path: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        if path != self.path:
            return self.lake.objects.read(path, ranges)
        return [self.body[start:end] for start, end in ranges]

    def read_many(self, wanted: list[ObjectRanges]) -> list[list[bytes]]:
        return [self.read(path, list(ranges)) for path, ranges in wanted]


SCHEMA = schema_of(
    row_keys={"key": "string", "n": "int32"},
    sort_keys={"at": "int64"},
    values={"few": "string?", "many": "string?", "amount": "float64?", "flag": "bool"},
)


def damaged_lake(tmp_path: Path) -> tuple[Lake, FilePart, Damaged, pa.Table]:
    rng = random.Random(5)
    rows = [
        {
            "key": f"{rng.randrange(12):02}",
            "n": rng.randrange(3),
            "at": rng.randrange(10**6),
            "few": rng.choice([None, "red", "green"]),
            "many": rng.choice([None, rng.randbytes(6).hex()]),
            "amount": rng.choice([None, rng.random()]),
            "flag": rng.random() < 0.5,
        }
        for _ in range(90)
    ]
    lake = Lake(tmp_path)
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_columns(SCHEMA))
    part = lake.part(lake.sort_and_write(SCHEMA, [batch]))
    return lake, part, Damaged(lake, part.path), lake.read(SCHEMA, [part])


@pytest.mark.parametrize("tail_is_cached", [True, False])
def test_no_changed_byte_of_a_file_makes_wrong_rows(tmp_path: Path, tail_is_cached: bool) -> None:
    lake, part, store, rows = damaged_lake(tmp_path)
    rng = random.Random(11)
    good, noticed, harmless = store.body, 0, 0
    keys = [(f"{n:02}",) for n in range(12)]
    wanted = {key: told(rows.filter(pa.compute.equal(rows["key"], key[0]))) for key in keys}
    end = part.file.tail_offset
    places = rng.sample(range(end) if tail_is_cached else range(end, len(good)), 150)
    for at in places:
        files = lake.over(store)
        store.body = good
        if tail_is_cached:
            files.sample(SCHEMA, part)
        changed = bytearray(good)
        changed[at] ^= rng.choice([1 << rng.randrange(8), 1 + rng.randrange(255)])
        store.body = bytes(changed)
        key = rng.choice(keys)
        condition = Selection((box_of_key(SCHEMA, key),))
        try:
            found = pa.Table.from_batches(files.read(SCHEMA, [[part]], condition), rows.schema)
        except CorruptError:
            noticed += 1
            continue
        assert told(found) == wanted[key], f"byte {at} of {len(good)}"
        harmless += 1
    assert noticed
    assert harmless or not tail_is_cached


FIXED = schema_of(row_keys={"key": "int64"}, values={"v": "float64"})


def fixed_part(lake: Lake, rng: random.Random) -> FilePart:
    rows = [{"key": n, "v": rng.random()} for n in range(60)]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_columns(FIXED))
    return lake.part(lake.sort_and_write(FIXED, [batch]))


def test_another_valid_page_in_a_page_s_place_is_noticed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    one, other = (fixed_part(lake, random.Random(seed)) for seed in range(2))
    store = Damaged(lake, one.path)
    condition = Selection((box_of_key(FIXED, (7,)),))
    assert [len(batch) for batch in lake.over(store).read(FIXED, [[one]], condition)] == [1]
    footer = Footer(store.body[one.file.tail_offset :], one.file.tail_offset)
    pages = pages_of(footer, footer.row_group(0), footer.row_group(0).chunks[1])
    assert pages is not None
    (first, second), size = pages.offsets[1:3], pages.sizes[1]
    assert pages.sizes[2] == size
    swapped = bytearray(store.body)
    swapped[first : first + size] = store.body[second : second + size]
    swapped[second : second + size] = store.body[first : first + size]
    for body in (bytes(swapped), Damaged(lake, other.path).body):
        files = lake.over(store)
        files.sample(FIXED, one)  # its tail is known
        good, store.body = store.body, body
        with pytest.raises(CorruptError):
            list(files.read(FIXED, [[one]], condition))
        store.body = good


def test_files_without_checksums_of_pages_are_read_by_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writing, "page_checksums", lambda _: b"")
    lake = Lake(tmp_path)
    part = fixed_part(lake, random.Random(0))
    figures = ReadFigures()
    condition = Selection((box_of_key(FIXED, (7,)),))
    (batch,) = lake.files.read(FIXED, [[part]], condition, figures)
    assert batch.column("key").to_pylist() == [7]
    assert (figures.pages, figures.row_groups_read) == (0, 1)


DOTTED = schema_of(row_keys={"a": "int64"}, values={"a.b.c": "int32", "a.b": "string?"})


def test_a_name_may_be_what_others_begin_with(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    written = [
        [{"a": n, "a.b.c": n + seed, "a.b": f"{seed}"} for n in range(60)] for seed in (100, 200)
    ]
    batches = [pa.RecordBatch.from_pylist(one, schema=arrow_columns(DOTTED)) for one in written]
    parts = [lake.part(lake.sort_and_write(DOTTED, [batch])) for batch in batches]
    for columns in (None, ("a.b",), ("a.b.c", "a")):
        figures = ReadFigures()
        condition = Selection((box_of_key(DOTTED, (7,)),), columns)
        found = pa.Table.from_batches(lake.files.read(DOTTED, [parts], condition, figures))
        assert figures.pages_read
        names = columns or ("a", "a.b.c", "a.b")
        wanted = [{name: rows[7][name] for name in names} for rows in written]
        assert sorted(found.to_pylist(), key=repr) == sorted(wanted, key=repr)
