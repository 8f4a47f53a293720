"""Merges of ranges of keys: what they share, and where they are cut."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.parquet_bytes.decoding import RowGroupPages
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES
from lakebed.sorted_files.merging.memory_shares import MergeMemory
from lakebed.sorted_files.merging.stretch_merge import StretchMerge
from lakebed.sorted_files.reading.open_row_groups import OpenRowGroups
from lakebed.sorted_files.reading.part_reading import RowGroupsByArrow, Share
from lakebed.sorted_files.reading.part_sources import reads_of
from lakebed.sorted_files.reading.row_requests import row_request
from lakebed.sorted_files.reading.tails import Tail
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.lakes import Lake


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)


def merge_of(lake: Lake, schema: Schema, parts: Sequence[FilePart]) -> StretchMerge:
    memory = MergeMemory(1 << 28)
    request = row_request(schema, None, None)
    reads = reads_of(request, parts, memory.share(len(parts), paged_columns=len(schema.fields)))
    summaries, engine = memory.summaries(lake.objects), engines.engine_for(len(parts))
    return StretchMerge(lake.objects, summaries, request, reads, engine)


@pytest.mark.skipif(not available(), reason="only kernels read by pages, and they need numba")
@pytest.mark.parametrize(
    "cuts", [[5000], [1, 2, 3, 99_999, 100_000, 100_001], range(9_000, 120_000, 9_000)]
)
def test_ranges_of_a_merge_open_each_row_group_and_decode_each_page_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: Sequence[int]
) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"}, values={"kind": "string", "text": "string"})
    count, kinds = 120_000, ["red", "green", "blue"]
    columns = [range(count), [kinds[n % 3] for n in range(count)], [f"{n}" for n in range(count)]]
    rows = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=arrow_schema(schema))
    parts = [lake.part(lake.write(schema, [rows])) for _ in range(2)]
    opened: list[int] = []
    row_group_of = Tail.row_group_of

    def noted(tail: Tail, row_group: int) -> object:
        opened.append(row_group)
        return row_group_of(tail, row_group)

    decoded: list[int] = []
    decode = RowGroupPages.decode

    def counted(pages: RowGroupPages, page: int, last: int) -> list[pa.Array] | None:
        arrays = decode(pages, page, last)
        decoded.extend(len(array) for array in arrays or [])
        return arrays

    monkeypatch.setattr(Tail, "row_group_of", noted)
    monkeypatch.setattr(RowGroupPages, "decode", counted)
    merge = merge_of(lake, schema, parts)
    keys = [encode_key(schema.row_keys, (cut,)) for cut in cuts]
    bounds = [b"", *keys, None]
    found = [batch for low, high in pairwise(bounds) for batch in merge.rows(KeyRange(low, high))]
    twice = pa.Table.from_batches([rows, rows]).sort_by("k")
    assert pa.Table.from_batches(found).equals(twice)
    assert sorted(opened) == [0, 0, 1, 1]
    dictionaries = len(opened) * len(kinds)
    assert sum(decoded) == 2 * count * len(schema.fields) + dictionaries


@pytest.mark.parametrize("count", [2, 3, 8, 20])
def test_ranges_of_a_merge_have_as_many_rows_each(tmp_path: Path, count: int) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"})
    rows = pa.RecordBatch.from_arrays([pa.array(range(60_000))], schema=arrow_schema(schema))
    merge = merge_of(lake, schema, [lake.part(lake.write(schema, [rows]))])
    found = [sum(map(len, merge.rows(within))) for within in merge.ranges(count)]
    assert sum(found) == 60_000
    assert found == pytest.approx([60_000 / count] * count, rel=0.1)


@pytest.mark.parametrize(("rows", "row_groups"), [(0, 1), (1, 1), (95_000, 1), (96_000, 2)])
def test_row_groups_to_come_are_counted_with_room_to_spare(
    tmp_path: Path, rows: int, row_groups: int
) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"})
    halves = [pa.array(range(rows // 2)), pa.array(range(rows // 2, rows))]
    parts = [
        lake.part(
            lake.write(schema, [pa.RecordBatch.from_arrays([h], schema=arrow_schema(schema))])
        )
        for h in halves
        if len(h)
    ]
    assert merge_of(lake, schema, parts).row_groups_out() == row_groups


def test_rows_that_are_wide_in_one_file_only_count_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"}, values={"text": "string"})
    columns = arrow_schema(schema)
    narrow = pa.RecordBatch.from_arrays(
        [pa.array(range(150_000)), pa.array(["x"] * 150_000)], schema=columns
    )
    wide = pa.RecordBatch.from_arrays(
        [pa.array(range(10)), pa.array(["x" * (12 << 20)] * 10)], schema=columns
    )
    parts = [lake.part(lake.write(schema, [rows])) for rows in (narrow, wide)]
    assert merge_of(lake, schema, parts[:1]).row_groups_out() == 2
    assert 5 <= merge_of(lake, schema, parts[1:]).row_groups_out() <= 6
    assert 6 <= merge_of(lake, schema, parts).row_groups_out() <= 8


@pytest.mark.skipif(not available(), reason="only kernels read by pages, and they need numba")
def test_rows_of_a_cut_are_kept_for_the_next_range_and_no_other(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"})
    rows = pa.RecordBatch.from_arrays([pa.array(range(60_000))], schema=arrow_schema(schema))
    merge = merge_of(lake, schema, [lake.part(lake.write(schema, [rows]))])

    def kept() -> list[bool]:
        return [known.decoded is not None for known in merge._row_groups._open_row_groups.all()]

    first, second, last = merge.ranges(3)
    assert sum(map(len, merge.rows(first))) > 0
    assert kept() == [True]
    later = merge.rows(last)
    next(later)
    assert not any(kept())
    later.close()
    assert sum(map(len, merge.rows())) == 60_000
    assert not any(kept())
    assert sum(len(b) for within in (first, second, last) for b in merge.rows(within)) == 60_000


@pytest.mark.skipif(not available(), reason="only kernels read by pages, and they need numba")
def test_a_range_of_nested_columns_ends_where_its_rows_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"}, values={"list": {"list": "int32"}})
    columns = [pa.array(range(60_000)), pa.array([[n] for n in range(60_000)])]
    columns[1] = columns[1].cast(arrow_schema(schema).field("list").type)
    rows = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))
    merge = merge_of(lake, schema, [lake.part(lake.write(schema, [rows]))])
    read: list[int] = []
    batches = RowGroupsByArrow.batches

    def counted(
        self: RowGroupsByArrow, row_group: int, *, skip: int = 0
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches(self, row_group, skip=skip):
            read.append(len(batch))
            yield batch

    monkeypatch.setattr(RowGroupsByArrow, "batches", counted)
    merge.share(Share(1 << 20, 4096, 1 << 20))
    first, *_ = merge.ranges(6)
    assert sum(map(len, merge.rows(first))) > 0
    assert sum(read) < 30_000


def test_ranges_are_fewer_where_samples_tell_too_little(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"})
    rows = pa.RecordBatch.from_arrays([pa.array(range(20))], schema=arrow_schema(schema))
    merge = merge_of(lake, schema, [lake.part(lake.write(schema, [rows]))])
    found = [sum(map(len, merge.rows(within))) for within in merge.ranges(18)]
    assert sum(found) == 20
    assert max(found) <= 2


def test_open_row_groups_are_as_many_as_files_are_read_at_once() -> None:
    held: OpenRowGroups[str] = OpenRowGroups(2)
    for path in ("a", "b", "a", "c"):
        held.put(path, 7, f"of {path}")
    assert held.take("b", 7) is None
    assert held.take("a", 7) == "of a"
    assert held.take("a", 7) is None
    assert held.take("c", 8) is None
    assert held.take("c", 7) is None


def test_pages_of_many_columns_have_room_for_a_block_of_each() -> None:
    narrow, wide = (MergeMemory(1 << 30).share(10, paged_columns=n) for n in (2, 40))
    assert wide.file_bytes - narrow.file_bytes == 38 * BLOCK_BYTES
    assert wide.batch_bytes == narrow.batch_bytes
    for inputs in (50, 500):  # never more than its share
        share = MergeMemory(1 << 28).share(inputs, paged_columns=40)
        assert share.file_bytes * 4 * inputs <= 1 << 28
