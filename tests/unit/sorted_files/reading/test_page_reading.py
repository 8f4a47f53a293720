"""Files read by pages hold what Arrow reads from them, whatever is wrong with their bytes."""

import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebed.errors import CorruptError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.ranges import KeyRange
from lakebed.model.samples import KEYS_MIN
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.merging import memory_shares
from lakebed.sorted_files.reading import page_reading
from lakebed.sorted_files.sorting import engines
from lakebed.sorted_files.writing.writer_options import PAGE_ROWS_MAX
from tests.unit.sorted_files.lakes import EVERY_TYPE, SLEEPER, Lake, batch_of
from tests.unit.sorted_files.reading.test_corruption import DamagedStore

if not available():
    pytest.skip("kernels need numba", allow_module_level=True)

from lakebed.parquet_bytes.decoding import RowGroupPages
from lakebed.parquet_bytes.footer import Footer
from lakebed.parquet_bytes.page_index import pages_of
from lakebed.sorted_files.reading.page_reading import PagedRowGroups

FLAT = schema_of(
    row_keys={"s": "string", "i": "int64"},
    sort_keys={"t": "timestamp[us, UTC]"},
    values={
        field.name: f"{field.type}?"
        for field in EVERY_TYPE.values
        if field.name not in ("list", "map", "struct")
    }
    | {"kind": "string"},
)


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)


class NotRead:
    """In place of what must not be used."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def batches(self, *_: object, **__: object) -> Iterator[pa.RecordBatch]:
        raise AssertionError("this file should be read in the other way")


def only_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reading, "RowGroupsByArrow", NotRead)


def rows_of(schema: Schema, rows: int, seed: int = 0) -> pa.RecordBatch:
    rng = random.Random(seed)
    values: dict[str, Any] = {
        "bool": lambda: rng.random() < 0.5,
        "decimal": lambda: rng.randrange(-(10**9), 10**9),
        "text": lambda: rng.choice(["", "\0", "ü", "日本", "x" * rng.randrange(90)]),
        "bytes": lambda: rng.randbytes(rng.randrange(9)),
        "kind": lambda: rng.choice(["red", "green", "blue"]),
        "s": lambda: f"key {rng.randrange(10**4)}",
        "time": lambda: rng.randrange(86_400_000_000),
    }
    arrays = []
    for column in arrow_schema(schema):
        value = values.get(column.name, lambda: rng.randrange(100))
        found = [None if column.nullable and rng.random() < 0.2 else value() for _ in range(rows)]
        plain = pa.int32() if column.type == pa.date32() else pa.int64()
        if pa.types.is_timestamp(column.type) or column.name in ("day", "time"):
            arrays.append(pa.array(found, plain).cast(column.type))
        else:
            arrays.append(pa.array(found, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def read_plainly(lake: Lake, schema: Schema, part: FilePart) -> pa.Table:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engines, "COMPILED_ROWS_MIN", 1 << 60)
        return lake.read(schema, [part])


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1 << 26])
@pytest.mark.parametrize("rows", [1, 7, 5000, 120_000])
def test_a_file_of_flat_columns_is_read_by_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, memory_bytes: int
) -> None:
    lake = Lake(tmp_path, memory_bytes=memory_bytes)
    part = lake.part(lake.sort_and_write(FLAT, [rows_of(FLAT, rows)]))
    wanted = read_plainly(lake, FLAT, part)
    only_by_pages(monkeypatch)
    assert lake.read(FLAT, [part]).equals(wanted)


def test_a_key_range_of_a_file_is_read_by_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    part = lake.part(lake.sort_and_write(FLAT, [rows_of(FLAT, 9000)]))
    low, high = (encode_key(FLAT.row_keys, (key, 0)) for key in ("key 2", "key 7"))
    inside = lake.part_of(part, KeyRange(low, high))
    wanted = read_plainly(lake, FLAT, inside)
    only_by_pages(monkeypatch)
    assert lake.read(FLAT, [inside]).equals(wanted)
    assert 0 < len(wanted) < 9000


@pytest.mark.parametrize("few_keys", [False, True], ids=["whole tails", "summaries"])
def test_of_a_key_range_only_pages_near_it_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_keys: bool
) -> None:
    rows, inside = 90_000, 3_000
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"}, values={"kind": "string", "text": "string"})
    kinds = ["red", "green", "blue"]
    columns = [range(rows), [kinds[n % 3] for n in range(rows)], [f"{n}" * 9 for n in range(rows)]]
    batch = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=arrow_schema(schema))
    part = lake.part(lake.write(schema, [batch]))
    only_by_pages(monkeypatch)
    if few_keys:
        monkeypatch.setattr(memory_shares, "TAILS_FRACTION", 1 << 60)
    decode, decoded = RowGroupPages.decode, [0]

    def counted(self: RowGroupPages, page: int, last: int) -> object:
        arrays = decode(self, page, last)
        assert arrays is not None
        decoded[0] += len(arrays[0])
        return arrays

    monkeypatch.setattr(RowGroupPages, "decode", counted)
    rng, stride = random.Random(3), rows // KEYS_MIN * (8 if few_keys else 1)
    for low in (0, 1, rows - 1, rows - inside, *(rng.randrange(rows) for _ in range(6))):
        key_range = KeyRange(*(encode_key(schema.row_keys, (key,)) for key in (low, low + inside)))
        decoded[0] = 0
        found = lake.read(schema, [lake.part_of(part, key_range)])
        assert found.equals(pa.Table.from_batches([batch.slice(low, inside)]))
        assert decoded[0] <= len(found) + 2 * stride + 2 * PAGE_ROWS_MAX


def test_a_file_with_nested_columns_is_left_to_arrow(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    rows = [
        {"s": f"{n:05d}", "i": n, "t": n, "list": [n], "map": [("a", ["b"])], "struct": None}
        for n in range(500)
    ]
    schema = schema_of(row_keys={"s": "string"}, values={"i": "int64", "list": {"list": "int32"}})
    batch = batch_of(schema, [{k: row[k] for k in ("s", "i", "list")} for row in rows])
    part = lake.part(lake.sort_and_write(schema, [batch]))
    assert lake.read(schema, [part]).equals(pa.Table.from_batches([batch]))


def test_many_columns_read_a_few_pages_at_a_time_do_not_keep_what_lies_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, share = 8, 2 << 20
    lake = Lake(tmp_path, memory_bytes=4 * inputs * share)
    values = [f"v{n}" for n in range(19)]
    schema = schema_of(row_keys={"k": "int64"}, values=dict.fromkeys(values, "float64"))
    rng = np.random.default_rng(1)
    columns = [np.arange(30_000), *(rng.random(30_000) for _ in values)]
    rows = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=arrow_schema(schema))
    part = lake.part(lake.write(schema, [rows]))
    assert part.file.size > 2 * share
    only_by_pages(monkeypatch)
    next(lake.files.merge(schema, [part]))  # what is imported meanwhile is not of a merge
    merged = lake.files.merge(schema, [part] * inputs)
    tracemalloc.start()
    try:
        first = next(merged)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < inputs * share + (8 << 20)  # pages being decompressed
    assert peak < held + 3 * share  # nor what one of them reads at a time
    assert len(first) + sum(map(len, merged)) == inputs * len(rows)


def test_rows_of_a_megabyte_are_read_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path, memory_bytes=4 << 20)
    schema = schema_of(row_keys={"k": "int64"}, values={"small": "int64", "large": "binary"})
    rng = random.Random(1)
    rows = [{"k": k, "small": k, "large": rng.randbytes(1 << 20)} for k in range(40)]
    part = lake.part(lake.write(schema, [batch_of(schema, rows)]))
    only_by_pages(monkeypatch)
    batches = list(lake.files.merge(schema, [part]))
    assert pa.Table.from_batches(batches).to_pylist() == rows
    assert max(map(len, batches)) <= 2


def test_what_is_not_understood_from_some_row_on_is_left_to_arrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    part = lake.part(lake.sort_and_write(SLEEPER, [rows_of_sleeper(150_000)]))
    wanted = read_plainly(lake, SLEEPER, part)
    whole = PagedRowGroups.batches
    given = []

    def only_the_first(*args: object, **more: bool) -> Iterator[tuple[int, pa.RecordBatch]]:
        begin, batch = next(whole(*args, **more))  # type: ignore[arg-type]  # as given
        given.append(len(batch))
        yield begin, batch

    monkeypatch.setattr(PagedRowGroups, "batches", only_the_first)
    assert lake.read(SLEEPER, [part]).equals(wanted)
    assert len(given) == 2
    assert sum(given) < 150_000


# --- planted corruptions --------------------------------------------------------------------------

PLACES = ("page header", "page body", "page index", "footer", "notes", "lengths", "pages swapped")


def rows_of_sleeper(rows: int) -> pa.RecordBatch:
    rng = random.Random(7)
    return batch_of(
        SLEEPER,
        [
            {
                "key": f"{rng.randrange(10**6):06d}",
                "timestamp": rng.randrange(-(10**12), 10**12),
                "value": rng.choice(["red", "green"]),
                "note": rng.choice([None, "x" * rng.randrange(9)]),
            }
            for _ in range(rows)
        ],
    )


class Planting:
    """A small file, and the places in it of all kinds."""

    def __init__(self, tmp_path: Path) -> None:
        self.lake = Lake(tmp_path)
        written = self.lake.sort_and_write(SLEEPER, [rows_of_sleeper(9000)])
        self.part = self.lake.part(written)
        self.rows = read_plainly(self.lake, SLEEPER, self.part)
        (self.body,) = self.lake.objects.read(self.part.path, [(0, self.part.file.size)])
        tail_offset = self.part.file.tail_offset
        footer = Footer(self.body[tail_offset:], tail_offset)
        row_group = footer.row_group(0)
        self.pages = [
            (offset, offset + size)
            for chunk in row_group.chunks
            for pages in [pages_of(footer, row_group, chunk)]
            if pages is not None
            for offset, size in zip(pages.offsets, pages.sizes, strict=True)
        ]
        footer_at = len(self.body) - 8 - int.from_bytes(self.body[-8:-4], "little")
        notes_at = self.body.index(b"lakebed.", footer_at)
        self.spans = {
            "page index": (tail_offset, footer_at),
            "footer": (footer_at, notes_at),
            "notes": (notes_at, len(self.body) - 8),
            "lengths": (len(self.body) - 8, len(self.body)),
        }

    def plant(self, kind: str, rng: random.Random) -> bytes:
        if kind == "pages swapped":
            (a, a_end), (b, b_end) = sorted(rng.sample(self.pages, 2))
            body = self.body
            return body[:a] + body[b:b_end] + body[a_end:b] + body[a:a_end] + body[b_end:]
        start, end = self.spans.get(kind) or rng.choice(self.pages)
        if kind == "page header":
            end = self.body.index(b"\x28\xb5\x2f\xfd", start)  # where zstd begins
        if kind == "page body":
            start = self.body.index(b"\x28\xb5\x2f\xfd", start)
        flipped = bytearray(self.body)
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            flipped[rng.randrange(start, end)] ^= 1 << rng.randrange(8)
        return bytes(flipped)

    def outcome(self, damaged: bytes) -> str:
        if damaged == self.body:
            return "harmless"
        lake = Lake(self.lake.directory)
        lake.files = self.lake.over(DamagedStore(damaged))
        try:
            rows = lake.read(SLEEPER, [self.part])
        except CorruptError:
            return "noticed"
        return "harmless" if rows.equals(self.rows) else "wrong rows"


def plant_many(tmp_path: Path, count: int, seed: int) -> Counter[tuple[str, str]]:
    planting, rng = Planting(tmp_path), random.Random(seed)
    found: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        kind = PLACES[number % len(PLACES)]
        found[kind, planting.outcome(planting.plant(kind, rng))] += 1
    for kind in PLACES:
        counts = {o: found[kind, o] for o in ("noticed", "harmless", "wrong rows")}
        told = "  ".join(f"{name} {count:6}" for name, count in counts.items())
        sys.stdout.write(f"{kind:14}  {told}\n")
    return found


def test_planted_corruptions_are_noticed_or_harmless(tmp_path: Path) -> None:
    found = plant_many(tmp_path, 350, seed=1)
    assert not [kind for kind, outcome in found if outcome == "wrong rows"]
    assert found["page header", "noticed"] > 40


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_planted_corruptions_are_noticed_or_harmless(tmp_path: Path) -> None:
    found = plant_many(tmp_path, 10_000, seed=2)
    assert not [kind for kind, outcome in found if outcome == "wrong rows"]
    assert sum(found.values()) == 10_000


def test_a_file_cut_off_or_replaced_is_corrupt(tmp_path: Path) -> None:
    planting = Planting(tmp_path)
    other = Lake(tmp_path)
    part = other.part(other.sort_and_write(SLEEPER, [rows_of_sleeper(8999)]))
    (body,) = other.objects.read(part.path, [(0, part.file.size)])
    for damaged in (planting.body[:-1], planting.body[: len(planting.body) // 2], b"", body):
        assert planting.outcome(damaged) == "noticed"
    longer = body + bytes(max(0, len(planting.body) - len(body)))
    assert planting.outcome(longer) == "noticed"
