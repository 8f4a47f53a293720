"""Merges that keep no whole tails: the same rows, little memory for each file."""

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.errors import CorruptError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.names import FileName
from lakebed.model.schema import Schema, schema_of
from lakebed.parquet_bytes.page_index import pages_of
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.merging import memory_shares
from lakebed.sorted_files.reading import file_summaries
from lakebed.sorted_files.reading.file_summaries import FileSummaries, FileSummary
from lakebed.sorted_files.reading.tails import Tail
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.lakes import SLEEPER, Lake, batch_of
from tests.unit.sorted_files.reading.test_corruption import DamagedStore

NESTED = schema_of(
    row_keys={"key": "int64"},
    values={"text": "string?", "tags": {"list": "string"}, "a.b": "float64?"},
)


@pytest.fixture(params=["plain", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "compiled":
        if not available():
            pytest.skip("kernels need numba")
        monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    return str(request.param)


@pytest.fixture(autouse=True)
def _no_whole_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_shares, "TAILS_FRACTION", 1 << 60)
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 100)


def rows_of(schema: Schema, keys: Sequence[int]) -> pa.RecordBatch:
    named = {
        "key": lambda n: n if schema is NESTED else f"{n:06d}",
        "timestamp": lambda n: n % 7,
        "value": lambda n: "v" * (n % 5),
        "note": lambda n: None if n % 3 else f"note {n}",
        "text": lambda n: None if n % 3 else f"text {n}",
        "tags": lambda n: [f"tag {n}"] * (n % 4),
        "a.b": lambda n: n / 7,
    }
    return batch_of(
        schema, [{f.name: named[f.name](n) for f in schema.fields} for n in sorted(keys)]
    )


def parts_of(lake: Lake, schema: Schema) -> list[FilePart]:
    keys = [range(file, 4000, 3 + file) for file in range(4)]
    return [lake.part(lake.write(schema, [rows_of(schema, some)])) for some in keys]


def merged(lake: Lake, schema: Schema, parts: Sequence[FilePart]) -> pa.Table:
    written = lake.files.merge_into_file(
        schema, parts, name=FileName(b"m" * 16), path="merged", key_range=parts[0].key_range
    )
    assert written is not None
    return lake.read(schema, [FilePart(written.file, "merged", parts[0].key_range, 0)])


@pytest.mark.parametrize("schema", [SLEEPER, NESTED])
def test_rows_are_the_same_without_whole_tails(
    tmp_path: Path, engine: str, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    parts = parts_of(lake, schema)
    found = merged(lake, schema, parts)
    monkeypatch.setattr(memory_shares, "TAILS_FRACTION", 1)
    monkeypatch.setattr(FileSummaries, "_summary", None)
    wanted = lake.read(schema, parts)
    assert len(found) > 3000
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_row_groups_are_copied_without_whole_tails(tmp_path: Path, engine: str) -> None:
    lake = Lake(tmp_path)
    parts = [
        lake.part(lake.write(SLEEPER, [rows_of(SLEEPER, range(at, at + 500))]))
        for at in (1000, 0, 2000)
    ]
    assert merged(lake, SLEEPER, parts).column("key").to_pylist() == [
        f"{n:06d}" for at in (0, 1000, 2000) for n in range(at, at + 500)
    ]


@pytest.mark.parametrize("schema", [SLEEPER, NESTED])
def test_a_row_group_is_described_alone_as_with_all_others(tmp_path: Path, schema: Schema) -> None:
    lake = Lake(tmp_path)
    for part in parts_of(lake, schema):
        whole = FileSummaries(lake.objects, whole_bytes_max=1 << 30).of(part)
        summary = FileSummaries(lake.objects, whole_bytes_max=0).of(part)
        assert isinstance(whole, Tail)
        assert summary.columns.equals(whole.columns, check_metadata=True)
        for row_group in range(len(whole.row_groups)):
            metadata, index = summary.metadata_of(row_group)
            assert (metadata.num_row_groups, index) == (1, 0)
            assert metadata.num_rows == summary.rows_of(row_group) == whole.rows_of(row_group)
            assert facts_of(metadata, 0) == facts_of(whole.metadata, row_group)
            columns = metadata.schema.to_arrow_schema()
            assert columns.equals(whole.columns, check_metadata=True)
            assert b"lakebed.sample" not in metadata.metadata
            (footer, alone), (known, stored) = (
                summary.row_group_of(row_group),
                whole.row_group_of(row_group),
            )
            assert footer.columns == known.columns
            for chunk, other in zip(alone.chunks, stored.chunks, strict=True):
                assert pages_of(footer, alone, chunk) == pages_of(known, stored, other)


def facts_of(metadata: pq.FileMetaData, row_group: int) -> dict[str, object]:
    facts: dict[str, object] = metadata.row_group(row_group).to_dict()
    return facts


def test_a_tail_that_is_no_longer_what_it_was_is_noticed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    (part, *_) = parts_of(lake, SLEEPER)
    (body,) = lake.objects.read(part.path, [(0, part.file.size)])
    store = DamagedStore(body)
    summary = FileSummaries(store, whole_bytes_max=0).of(part)
    assert isinstance(summary, FileSummary)
    _, row_group = summary.row_group_of(3)
    assert row_group.rows == summary.rows_of(3) == 100
    offsets = summary.row_group_offsets
    for at in (offsets[3], offsets[0] - 1):  # a row group, an OffsetIndex
        changed = bytearray(body)
        changed[part.file.tail_offset + at] ^= 1
        store.body = bytes(changed)
        with pytest.raises(CorruptError, match="tail contradicts its checksum"):
            summary.row_group_of(3 if at == offsets[3] else len(summary.row_groups) - 1)


def test_a_file_of_many_row_groups_and_columns_keeps_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, row_groups, values = 40, 20, [f"v{n}" for n in range(15)]
    lake = Lake(tmp_path)
    schema = schema_of(row_keys={"k": "int64"}, values=dict.fromkeys(values, "int64"))
    columns = [np.arange(100 * row_groups)] * (1 + len(values))
    rows = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=arrow_schema(schema))
    part = lake.part(lake.write(schema, [rows]))
    names = [FileName(n.to_bytes(16, "big")) for n in range(inputs)]
    files = [msgspec.structs.replace(part.file, name=name) for name in names]
    parts = [msgspec.structs.replace(part, file=file) for file in files]
    tail_bytes = part.file.size - part.file.tail_offset
    assert tail_bytes > 20_000
    known = FileSummaries(lake.objects, whole_bytes_max=0)
    known.read(parts[:1])  # what all have in common
    monkeypatch.setattr(file_summaries, "TOGETHER_BYTES", 1 << 18)
    tracemalloc.start()
    try:
        known.read(parts)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < inputs * 5_000
    assert peak < held + (1 << 20)
    assert all(isinstance(known.of(one), FileSummary) for one in parts)
    assert len({id(known.of(one).columns) for one in parts}) == 1
