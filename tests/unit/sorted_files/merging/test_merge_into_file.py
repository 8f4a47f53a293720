"""Many files become one, and row groups that need no merging as they are stored."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.errors import CorruptError, InvalidError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import KEYS_MAX
from lakebed.model.schema import schema_of
from lakebed.ports.object_store import ObjectReader
from lakebed.ports.sorted_files import FileWritten
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.merging import stretches
from lakebed.sorted_files.merging.stretches import StoredRowGroup
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.tails import Tail
from lakebed.sorted_files.sorting import engines
from tests.unit.sorted_files.lakes import SLEEPER, Lake, batch_of

GROUP_ROWS = 1000


@pytest.fixture(autouse=True)
def _small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", GROUP_ROWS)
    monkeypatch.setattr(stretches, "ROW_GROUP_ROWS_MAX", GROUP_ROWS)


@pytest.fixture(params=["plain", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "compiled":
        if not available():
            pytest.skip("kernels need numba")
        monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    return str(request.param)


def batch(numbers: Sequence[int], seed: int = 0) -> pa.RecordBatch:
    rng = random.Random(seed)
    rows = [
        {
            "key": f"{n:08d}",
            "timestamp": rng.randrange(100),
            "value": rng.choice(["red", "green", "blue"]) * rng.randrange(3),
            "note": rng.choice([None, "x" * rng.randrange(9)]),
        }
        for n in numbers
    ]
    return batch_of(SLEEPER, rows)


def key(number: int) -> bytes:
    return encode_key(SLEEPER.row_keys, (f"{number:08d}",))


class Joined:
    """Files of some rows, and the file that they become."""

    def __init__(self, tmp_path: Path) -> None:
        self.lake = Lake(tmp_path)
        self.files = ParquetFiles(
            self.lake.objects, spill_directory=tmp_path, memory_bytes=64 << 20
        )
        self.passed: list[tuple[str, int]] = []

    def part(self, rows: pa.RecordBatch, key_range: KeyRange = EVERYTHING) -> FilePart:
        written = self.lake.sort_and_write(SLEEPER, [rows])
        return msgspec.structs.replace(self.lake.part(written, key_range), rows=len(rows))

    def join(self, parts: Sequence[FilePart], key_range: KeyRange = EVERYTHING) -> FilePart:
        written = self.files.merge_into_file(
            SLEEPER, parts, name=FileName(bytes([9] * 16)), path="joined", key_range=key_range
        )
        assert written is not None
        self.written: FileWritten = written
        (rows,) = written.key_ranges
        assert rows is not None
        return FilePart(written.file, "joined", key_range, rows.rows)

    def holds(self, joined: FilePart, parts: Sequence[FilePart]) -> None:
        """The rows of all parts, in order, as measuring and other readers find them."""
        wanted = self.lake.read(SLEEPER, parts)
        self.files.measure(SLEEPER, joined, [EVERYTHING])
        found = self.lake.read(SLEEPER, [joined])
        keys = ["key", "timestamp"]
        assert found.select(keys).equals(wanted.select(keys))
        assert told(found) == told(wanted)
        (body,) = self.lake.objects.read(joined.path, [(0, joined.file.size)])
        for other in read_by_others(body):
            assert told(other) == told(wanted)


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def read_by_others(body: bytes) -> Iterator[pa.Table]:
    yield pq.read_table(pa.BufferReader(body), page_checksum_verification=True)
    yield pl.read_parquet(body).to_arrow()


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of row groups that were copied."""
    found: list[int] = []
    whole = stretches.stored_row_groups

    def noted(objects: ObjectReader, read: PartRead, tail: Tail) -> Iterator[StoredRowGroup]:
        for place, row_group in zip(read.row_groups or (), whole(objects, read, tail), strict=True):
            found.append(place)
            yield row_group

    monkeypatch.setattr("lakebed.sorted_files.merging.file_merge.stored_row_groups", noted)
    return found


def test_files_side_by_side_are_joined_as_they_are(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 3000), at)) for at in (6000, 0, 3000)]
    joined.holds(joined.join(parts), parts)
    assert copied == [0, 1, 2] * 3


def test_row_groups_that_meet_others_are_merged_and_the_rest_is_copied(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    low, high = batch(range(5000), 1), batch(range(4500, 9500), 2)
    parts = [joined.part(low), joined.part(high), joined.part(batch([20_000], 3))]
    joined.holds(joined.join(parts), parts)
    assert copied == [0, 1, 2, 3, 1, 2, 3, 4]


def test_only_what_lies_in_the_key_range_is_copied(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    key_range = KeyRange(key(1500), key(7500))
    parts = [joined.part(batch(range(at, at + 4000), at), key_range) for at in (0, 4000)]
    joined.holds(joined.join(parts, key_range), parts)
    assert copied == [2, 3, 0, 1, 2]


def test_a_row_group_that_begins_with_the_key_of_merged_rows_is_copied(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    key_range = KeyRange(key(1), None)  # of the first row group some rows are not wanted
    parts = [joined.part(batch([0, *[1] * 1500, *range(2, 1501)]), key_range)]
    joined.holds(joined.join(parts, key_range), parts)
    assert copied == [1, 2]


def test_small_row_groups_are_not_kept_for_ever(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 100), at)) for at in range(0, 1500, 100)]
    joined.holds(joined.join(parts), parts)
    assert copied == []


def test_rows_of_one_key_stay_together_where_files_meet(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    parts = [
        joined.part(batch([*range(2000), *[2000] * 2500], 1)),
        joined.part(batch([*[2000] * 700, *range(2001, 4000)], 2)),
    ]
    joined.holds(joined.join(parts), parts)
    assert 0 in copied


def test_a_file_of_other_columns_is_not_copied(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 3000), at)) for at in (0, 3000)]
    newer = schema_of(
        row_keys={"key": "string"},
        sort_keys={"timestamp": "int64"},
        values={"value": "string", "note": "string?", "more": "int64?"},
    )
    written = joined.files.merge_into_file(
        newer, parts, name=FileName(bytes(16)), path="newer", key_range=EVERYTHING
    )
    assert written is not None
    assert copied == []


def test_a_sample_over_row_groups_copied_says_how_far_it_may_be_off(
    tmp_path: Path, engine: str, copied: list[int]
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 7000), at)) for at in (0, 7000, 14_000)]
    file = joined.join(parts)
    sample = joined.files.sample(SLEEPER, file)
    assert len(copied) == 21
    assert sample.rows == 21_000
    assert len(sample.keys) <= KEYS_MAX
    assert 0 < sample.slack <= 32
    off = [abs(int(k[:8]) - place * sample.stride) for place, k in enumerate(sample.keys)]
    assert max(off) <= sample.slack
    again = joined.files.merge_into_file(
        SLEEPER, [file], name=FileName(bytes(16)), path="again", key_range=EVERYTHING
    )
    assert again is not None
    twice = FilePart(again.file, "again", EVERYTHING, 21_000)
    joined.files.measure(SLEEPER, twice, [EVERYTHING])
    assert joined.files.sample(SLEEPER, twice).slack >= sample.slack


def test_measuring_notices_a_sample_that_is_further_off_than_it_says(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 7000), at)) for at in (0, 7000)]
    whole = stretches._known

    def moved(*args: object) -> stretches.Known:
        first, *known = whole(*args)  # type: ignore[arg-type]  # as given
        return [first, *((place + 400, k, slack) for place, k, slack in known if place < 500)]

    monkeypatch.setattr(stretches, "_known", moved)
    file = joined.join(parts)
    with pytest.raises(CorruptError, match="sample"):
        joined.files.measure(SLEEPER, file, [EVERYTHING])


def test_a_flipped_bit_in_a_row_group_that_is_copied_is_noticed(
    tmp_path: Path, engine: str
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 3000), at)) for at in (0, 3000)]
    (body,) = joined.lake.objects.read(parts[1].path, [(0, parts[1].file.size)])
    flipped = bytearray(body)
    flipped[parts[1].file.tail_offset // 2] ^= 4
    joined.lake.objects.delete([parts[1].path])
    writer = joined.lake.objects.create(parts[1].path)
    writer.write(bytes(flipped))
    writer.finish()
    with pytest.raises(CorruptError):
        joined.join(parts)
    assert joined.lake.objects.look("joined") is None


def test_duckdb_reads_a_joined_file(tmp_path: Path, engine: str) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, at + 2500), at)) for at in (0, 2400, 6000)]
    file = joined.join(parts)
    (body,) = joined.lake.objects.read("joined", [(0, file.file.size)])
    (tmp_path / "joined.parquet").write_bytes(body)
    path = tmp_path / "joined.parquet"
    found = duckdb.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    assert told(found) == told(joined.lake.read(SLEEPER, parts))


def test_a_limit_of_memory_that_cannot_be_kept_is_refused_with_one_that_can(
    tmp_path: Path, engine: str
) -> None:
    joined = Joined(tmp_path)
    parts = [joined.part(batch(range(at, 3000, 150), at)) for at in range(150)]

    def join(merge_bytes: int) -> FileWritten | None:
        files = ParquetFiles(joined.lake.objects, spill_directory=tmp_path, merge_bytes=merge_bytes)
        return files.merge_into_file(
            SLEEPER, parts, name=FileName(bytes(16)), path="limited", key_range=EVERYTHING
        )

    with pytest.raises(InvalidError, match="needs more memory") as refused:
        join(200 << 20)
    assert joined.lake.objects.look("limited") is None
    smallest = refused.value.facts["smallest"]
    assert isinstance(smallest, int)
    assert smallest < 256 << 20
    written = join(smallest)
    assert written is not None
    joined.holds(FilePart(written.file, "limited", EVERYTHING, 3000), parts)


def test_nothing_gives_no_file(tmp_path: Path, engine: str) -> None:
    joined = Joined(tmp_path)
    part = joined.part(batch(range(10)), KeyRange(key(50), None))
    for parts in ([], [part]):
        written = joined.files.merge_into_file(
            SLEEPER, parts, name=FileName(bytes(16)), path="none", key_range=EVERYTHING
        )
        assert written is None
        assert joined.lake.objects.look("none") is None
