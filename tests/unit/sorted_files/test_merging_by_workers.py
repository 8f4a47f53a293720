"""Merges whose range of keys is cut: the rows are those of the plain path, whoever merges them."""

import random
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import CorruptError, SumTooLargeError
from lakebed.kernels.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName, Micros
from lakebed.model.processing import AgeOff, Latest, Processing, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files import (
    engines,
    merging_by_workers,
    row_groups,
    stored_groups,
    writer_options,
)
from lakebed.sorted_files.merging import Source
from lakebed.sorted_files.merging_by_workers import merged_by_workers
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.sorted_files.reading import Share
from lakebed.sorted_files.workers import Workers
from tests.unit.sorted_files.lakes import Lake, batch_of

pytestmark = pytest.mark.skipif(not available(), reason="kernels need numba")

TABLE = schema_of(
    row_keys={"key": "string"},
    sort_keys={"at": "int64"},
    values={"number": "int64", "small": "int32?", "text": "string?", "list": {"list": "int32"}},
)
NUMBERS = schema_of(
    row_keys={"key": "int64"}, sort_keys={"at": "int64"}, values={"number": "int64?"}
)
NOW = Micros(1_000_000_000)
PROCESSINGS = {
    "sum": (NUMBERS, Processing(aggregate={"number": "sum"})),
    "max, the young": (
        NUMBERS,
        Processing(age_off=AgeOff("at", seconds=990, unit="s"), aggregate={"number": "max"}),
    ),
    "latest": (NUMBERS, Processing(latest=Latest("number"))),
    "last": (
        TABLE,
        Processing(
            aggregate={
                "number": "max",
                "small": "sum",
                "text": "last by number",
                "list": "last by number",
            }
        ),
    ),
}


@pytest.fixture(autouse=True)
def _small_pages_and_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 8)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 8)
    monkeypatch.setattr(merging_by_workers, "PART_ROWS", 50)
    monkeypatch.setattr(row_groups, "GROUP_ROWS_MAX", 200)
    monkeypatch.setattr(stored_groups, "GROUP_ROWS_MAX", 200)


def batch(schema: Schema, chance: random.Random, keys: Sequence[int]) -> pa.RecordBatch:
    rows = [
        {
            "key": key if schema is NUMBERS else f"{key:05d}" + "\x00é" * (key % 3 == 0),
            "at": chance.randrange(30),
            "number": chance.choice([None, 1]) if schema is NUMBERS else chance.randrange(99),
            "small": chance.choice([None, 5, -7]),
            "text": chance.choice([None, "", "x" * chance.randrange(30)]),
            "list": [chance.randrange(9)] * chance.randrange(3),
        }
        for key in keys
    ]
    names = {field.name for field in schema.fields}
    return batch_of(schema, [{n: v for n, v in row.items() if n in names} for row in rows])


class Merges:
    """Files of some rows, and what they become."""

    def __init__(self, directory: Path, schema: Schema) -> None:
        self.schema = schema
        self.lake = Lake(directory)
        self._directory = directory
        self._numbers = iter(range(100))

    def part(self, rows: pa.RecordBatch, region: KeyRange = EVERYTHING) -> FilePart:
        return self.lake.part(self.lake.sort_and_write(self.schema, [rows]), region)

    def merged(
        self,
        parts: Sequence[FilePart],
        workers: int,
        processing: Processing | None = None,
        *,
        batch_rows: int = 8,
    ) -> tuple[pa.Table, FilePart]:
        files = ParquetFiles(self.lake.objects, spill_directory=self._directory, workers=workers)
        share = files._share

        def small(inputs: int, *, by_pages: bool = False) -> Share:
            return msgspec.structs.replace(share(inputs, by_pages=by_pages), batch_rows=batch_rows)

        setattr(files, "_share", small)  # noqa: B010  a method
        name = next(self._numbers)
        path = f"merged/{name}"
        written = files.merge_into_file(
            self.schema,
            parts,
            name=FileName(name.to_bytes(16, "big")),
            path=path,
            region=EVERYTHING,
            processing=None
            if processing is None
            else ProcessingPass(processing, NOW, "compaction"),
        )
        assert written is not None
        (rows,) = written.regions
        assert rows is not None
        part = FilePart(written.file, path, EVERYTHING, rows.rows)
        files.measure(self.schema, part, [EVERYTHING])  # sorted, and its notes are true
        return self.lake.read(self.schema, [part]), part


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(1, 7), st.sampled_from([1, 2, 20, 300, 20_000])),
    threads=st.tuples(st.sampled_from([2, 3, 8]), st.sampled_from([1, 8, 40, 10_000])),
    kind=st.sampled_from(["together", "apart", "clipped"]),
)
def test_any_number_of_workers_merges_the_rows_of_the_plain_path(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sizes: tuple[int, int],
    threads: tuple[int, int],
    kind: str,
) -> None:
    (runs, keys), (workers, batch_rows) = sizes, threads
    chance = random.Random(seed)
    merges = Merges(tmp_path_factory.mktemp("merges"), TABLE)
    region = EVERYTHING
    if kind == "clipped":
        region = KeyRange(*(encode_key(TABLE.row_keys, (f"{n:05d}",)) for n in (2, 15_000)))
    parts = []
    for run in range(runs):
        first = (
            700 * run if kind == "apart" else 0
        )  # some row groups meet no others, and are passed on
        numbers = [first + chance.randrange(keys) for _ in range(chance.randrange(1, 500))]
        parts.append(merges.part(batch(TABLE, chance, numbers), region))
    wanted = merges.lake.read(TABLE, parts)
    if not len(wanted):
        return
    found, _ = merges.merged(parts, workers, batch_rows=batch_rows)
    assert found.select(["key", "at"]).equals(wanted.select(["key", "at"]))
    assert told(found) == told(wanted)


@pytest.mark.parametrize("kind", PROCESSINGS)
@pytest.mark.parametrize("keys", [1, 3, 200])
def test_rows_of_equal_keys_become_one_whichever_parts_they_are_in(
    tmp_path: Path, kind: str, keys: int
) -> None:
    schema, processing = PROCESSINGS[kind]
    chance = random.Random(keys)
    merges = Merges(tmp_path, schema)
    rows = [[chance.randrange(keys) for _ in range(250)] for _ in range(4)]
    parts = [merges.part(batch(schema, chance, some)) for some in rows]
    wanted, _ = merges.merged(parts, 1, processing)
    for workers, batch_rows in ((2, 8), (5, 1), (3, 10_000)):
        found, _ = merges.merged(parts, workers, processing, batch_rows=batch_rows)
        assert found.equals(wanted)
    assert len(wanted) == len({(r["key"], r["at"]) for r in wanted.to_pylist()})


def test_the_same_merge_by_as_many_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    chance = random.Random(3)
    merges = Merges(tmp_path, TABLE)
    rows = [[chance.randrange(300) for _ in range(250)] for _ in range(4)]
    parts = [merges.part(batch(TABLE, chance, some)) for some in rows]
    checksums = {merges.merged(parts, 3)[1].file.checksum for _ in range(4)}
    assert len(checksums) == 1


@pytest.mark.parametrize("place", [0.02, 0.5, 0.97])
def test_a_flipped_bit_in_any_part_ends_the_merge_and_nothing_is_visible(
    tmp_path: Path, place: float
) -> None:
    chance = random.Random(4)
    merges = Merges(tmp_path, TABLE)
    rows = [[chance.randrange(9000) for _ in range(2000)] for _ in range(4)]
    parts = [merges.part(batch(TABLE, chance, some)) for some in rows]
    bad, objects = parts[2], merges.lake.objects
    (body,) = objects.read(bad.path, [(0, bad.file.size)])
    flipped = bytearray(body)
    flipped[int(bad.file.tail_offset * place)] ^= 4
    objects.delete([bad.path])
    writer = objects.create(bad.path)
    writer.write(bytes(flipped))
    writer.finish()
    with pytest.raises(CorruptError, match="contradict their checksum"):
        merges.merged(parts, 3)
    assert not list(objects.list("merged"))


def test_a_sum_that_is_too_large_in_one_part_ends_the_merge(tmp_path: Path) -> None:
    merges = Merges(tmp_path, NUMBERS)
    rows = [{"key": key, "at": 0, "number": 2**62 if key == 700 else 1} for key in range(1000)]
    parts = [merges.part(batch_of(NUMBERS, rows)) for _ in range(3)]
    with pytest.raises(SumTooLargeError):
        merges.merged(parts, 3, Processing(aggregate={"number": "sum"}))
    assert not list(merges.lake.objects.list("merged"))


def sources(batches: int, rows: int) -> list[Source]:
    """Two runs with the same keys."""

    def run(first: int) -> Iterator[pa.RecordBatch]:
        for at in range(batches):
            numbers = pa.array(range(first + 2 * rows * at, first + 2 * rows * (at + 1), 2))
            columns = [numbers.cast(pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, names=["key"])

    return [Source(b"", partial(run, first)) for first in (0, 1)]


ROW_BYTES = 8
WINDOW_BYTES = 2 * 200 * ROW_BYTES


@pytest.mark.parametrize("bytes_max", [1, 2 * WINDOW_BYTES, 12 * WINDOW_BYTES, 1 << 30])
def test_no_more_is_held_than_memory_allows(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging_by_workers, "PART_ROWS", 10 * 400)
    schema = schema_of(row_keys={"key": "int64"}, values={})
    lock, held, parts = threading.Lock(), [0, 0], list[int]()

    def merge(part: Sequence[Source]) -> Iterator[pa.RecordBatch]:
        batches = [rows for source in part for rows in source.open()]
        with lock:
            parts.append(ROW_BYTES * sum(map(len, batches)))
            held[0] += parts[-1]
            held[1] = max(held)
        yield pa.Table.from_batches(batches).sort_by("key").combine_chunks().to_batches()[0]

    found = []
    with Workers(3) as workers:
        fields = schema.key_fields
        merged = merged_by_workers(sources(40, 200), fields, merge, workers, bytes_max=bytes_max)
        for rows in merged:
            with lock:
                held[0] -= ROW_BYTES * len(rows)
            found += rows.column("key").to_pylist()
    assert found == list(range(40 * 400))
    assert max(parts) <= bytes_max // 4 + WINDOW_BYTES
    assert held[1] <= max(bytes_max, WINDOW_BYTES)
