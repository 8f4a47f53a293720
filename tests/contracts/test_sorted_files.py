"""What holds of sorted files, whoever keeps them: bytes are checked, a write that is called written
is there (H25, H26)."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.backends.faulty import Fault, Faults, FaultyObjectStore
from lakebed.backends.memory import MemoryObjectStore, TupleFiles, VirtualClock
from lakebed.errors import (
    CorruptError,
    InvalidError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING, KeyRange, Range, box_of
from lakebed.model.schema import schema_of
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FileWritten, Selection, SortedFiles
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.parquet_files import ParquetFiles

Row = tuple[Any, ...]
SCHEMA = schema_of(
    row_keys={"name": "string", "day": "int64"},
    sort_keys={"at": "int32"},
    values={"count": "int64", "note": "string?"},
)
NAME = FileName(bytes(16))


class Lake:
    """Sorted files of one kind over an object store in memory, with rows in and rows out."""

    def __init__(self, kind: str, spill: Path) -> None:
        self.objects = MemoryObjectStore(VirtualClock())
        self.kind = kind
        self.spill = spill
        self.files = self.over(self.objects)
        self.count = 0

    def over(self, objects: ObjectStore) -> SortedFiles[Any]:
        if self.kind == "tuples":
            return TupleFiles(objects)
        return ParquetFiles(objects, spill_directory=self.spill, memory_bytes=1 << 20)

    def batch(self, rows: Sequence[Row]) -> Any:  # noqa: ANN401  a list, or Arrow's
        if self.kind == "tuples":
            return list(rows)
        columns = arrow_schema(SCHEMA)
        return pa.RecordBatch.from_pylist(
            [dict(zip(columns.names, row, strict=True)) for row in rows], schema=columns
        )

    def rows(self, batches: Any) -> list[Row]:  # noqa: ANN401  lists, or Arrow's
        if self.kind == "tuples":
            return [tuple(row) for batch in batches for row in batch]
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def write(
        self,
        rows: Sequence[Row],
        *,
        path: str | None = None,
        key_ranges: Sequence[KeyRange] = (EVERYTHING,),
        files: SortedFiles[Any] | None = None,
    ) -> tuple[FileWritten | None, str]:
        self.count += 1
        path = path or f"files/{self.count}"
        batches = [self.batch(rows)] if rows else []
        files = files or self.files
        written = files.write(SCHEMA, batches, name=NAME, path=path, key_ranges=key_ranges)
        return written, path

    def part(self, rows: Sequence[Row], key_range: KeyRange = EVERYTHING) -> FilePart:
        written, path = self.write(sorted(rows, key=order))
        assert written is not None
        file = msgspec.structs.replace(written.file, name=FileName(self.count.to_bytes(16, "big")))
        return FilePart(file, path, key_range, len(rows))

    def merged(self, parts: Sequence[FilePart], condition: Selection | None = None) -> list[Row]:
        return self.rows(self.files.merge(SCHEMA, parts, condition))


@pytest.fixture(params=["tuples", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def row(name: str, day: int = 0, at: int = 0, count: int = 0, note: str | None = None) -> Row:
    return name, day, at, count, note


def order(r: Row) -> bytes:
    return encode_key(SCHEMA.key_fields, r[:3])


def from_name(name: str) -> bytes:
    return encode_key(SCHEMA.row_keys, (name,))


def below(name: str) -> KeyRange:
    return KeyRange(b"", from_name(name))


def above(name: str) -> KeyRange:
    return KeyRange(from_name(name), None)


def test_rows_come_back_in_order_with_all_their_values(lake: Lake) -> None:
    rows = [row("a", -1, 3, 7, "x"), row("a", 2, -5, 1, ""), row("b\x00c", 0), row("ü", 9, 9, 9)]
    assert lake.merged([lake.part(rows)]) == rows


def test_files_are_merged_and_equal_rows_are_all_kept(lake: Lake) -> None:
    one = [row("a"), row("c"), row("c")]
    two = [row("a"), row("b"), row("c")]
    merged = lake.merged([lake.part(one), lake.part(two), lake.part(one)])
    assert merged == sorted(one + two + one, key=order)


def test_files_are_merged_into_a_file(lake: Lake) -> None:
    one, two = [row("a"), row("c"), row("c")], [row("b"), row("c"), row("e")]
    parts = [lake.part(one, below("d")), lake.part(two, below("d"))]
    written = lake.files.merge_into_file(
        SCHEMA, parts, name=FileName(bytes(15) + b"m"), path="files/merged", key_range=below("d")
    )
    assert written is not None
    (key_range,) = written.key_ranges
    assert key_range is not None
    assert key_range.rows == 5
    merged = FilePart(written.file, "files/merged", EVERYTHING, 5)
    assert lake.merged([merged]) == sorted(one + two[:2], key=order)
    assert lake.files.measure(SCHEMA, merged, [EVERYTHING]) == (key_range,)


def test_merging_nothing_into_a_file_gives_no_file(lake: Lake) -> None:
    empty = lake.part([row("z")], below("a"))
    written = lake.files.merge_into_file(
        SCHEMA, [empty], name=FileName(bytes(16)), path="files/none", key_range=below("a")
    )
    assert written is None
    assert lake.objects.look("files/none") is None


def test_merging_nothing_gives_nothing(lake: Lake) -> None:
    assert lake.merged([]) == []


def test_without_rows_there_is_no_file(lake: Lake) -> None:
    assert lake.write([])[0] is None
    assert list(lake.objects.list("")) == []


def test_a_part_gives_its_key_range_only(lake: Lake) -> None:
    part = lake.part([row(name, day) for name in "abcd" for day in range(3)])
    key_ranges = [below("b"), KeyRange(from_name("b"), from_name("c")), above("c"), above("x")]
    got = [
        {r[0] for r in lake.merged([msgspec.structs.replace(part, key_range=key_range)])}
        for key_range in key_ranges
    ]
    assert got == [{"a"}, {"b"}, {"c", "d"}, set()]


def test_the_key_ranges_of_a_file_have_exact_rows_and_bounds(lake: Lake) -> None:
    key_ranges = [below("b"), KeyRange(from_name("b"), from_name("c")), above("c")]
    rows = [row("a", 1), row("a", 1), row("c", 5), row("d" * 100, 6), row("d" * 100, 7)]
    written, _ = lake.write(rows, key_ranges=key_ranges)
    assert written is not None
    low, middle, high = written.key_ranges
    assert low is not None
    assert middle is None
    assert high is not None
    assert (low.rows, high.rows) == (2, 3)
    for counted, held in ((low, rows[:2]), (high, rows[2:])):
        keys = [encode_key(SCHEMA.row_keys, r[:2]) for r in held]
        assert all(counted.bounds.as_range().contains(key) for key in keys)
        assert counted.bounds.min == keys[0][:24]
        assert len(counted.bounds.max or b"") <= 24


def test_the_reference_tells_the_objects_size_and_checksum(lake: Lake) -> None:
    written, path = lake.write([row("a"), row("b")])
    found = lake.objects.look(path)
    assert written is not None
    assert found is not None
    assert (written.file.size, written.file.checksum) == (found.size, found.checksum)
    assert 0 < written.file.tail_offset < written.file.size


def test_conditions_choose_rows_in_any_of_their_boxes(lake: Lake) -> None:
    rows = [row(name, day) for name in "abc" for day in range(4)]
    part = lake.part(rows)
    boxes = (
        box_of(SCHEMA, {"name": Range("b", "b", max_inclusive=True), "day": Range(1, 3)}),
        box_of(SCHEMA, {"day": Range(3, None)}),
    )
    merged = lake.merged([part], Selection(boxes))
    assert merged == [r for r in rows if (r[0] == "b" and 1 <= r[1] < 3) or r[1] >= 3]
    assert lake.merged([part], Selection(())) == []


def test_conditions_choose_columns(lake: Lake) -> None:
    part = lake.part([row("a", 1, 2, 3, "x"), row("b", 4, 5, 6)])
    everything = (box_of(SCHEMA, {}),)
    assert lake.merged([part], Selection(everything, ("note", "name"))) == [("x", "a"), (None, "b")]
    with pytest.raises(InvalidError):
        lake.merged([part], Selection(everything, ("nonsense",)))


def test_samples_hold_whole_keys_and_are_cut_to_the_key_range(lake: Lake) -> None:
    part = lake.part([row(f"{n:05}", n) for n in range(1000)])
    sample = lake.files.sample(SCHEMA, part)
    keys = [encode_key(SCHEMA.row_keys, (f"{n:05}", n)) for n in range(1000)]
    assert sample.rows == 1000
    assert sample.keys == tuple(keys[:: sample.stride])
    assert 128 <= len(sample.keys) <= 256
    half = lake.files.sample(SCHEMA, msgspec.structs.replace(part, key_range=above("00500")))
    assert all(key >= from_name("00500") for key in half.keys)
    assert 490 <= half.rows <= 510


def test_a_sorter_sorts_counts_and_gives_key_ranges(lake: Lake) -> None:
    rows = [row(name, day) for name in "dacb" for day in (3, 1, 2)]
    with lake.files.sorter(SCHEMA) as sorter:
        assert sorter.add(lake.batch(rows[:5])) == 5
        assert sorter.add(lake.batch(rows[5:])) == 7
        assert sorter.rows_in([below("b"), above("b"), EVERYTHING, above("z")]) == [3, 9, 12, 0]
        assert lake.rows(sorter.sorted_batches(EVERYTHING)) == sorted(rows, key=order)
        assert {r[0] for r in lake.rows(sorter.sorted_batches(above("c")))} == {"c", "d"}
        assert {r[0] for r in lake.rows(sorter.sorted_batches(below("b")))} == {"a"}


def test_an_empty_sorter_gives_nothing(lake: Lake) -> None:
    with lake.files.sorter(SCHEMA) as sorter:
        assert sorter.rows_in([EVERYTHING]) == [0]
        assert lake.rows(sorter.sorted_batches(EVERYTHING)) == []


def test_a_sorter_refuses_keys_that_are_too_long(lake: Lake) -> None:
    with lake.files.sorter(SCHEMA) as sorter, pytest.raises(InvalidError):
        sorter.add(lake.batch([row("x" * 1025)]))


def test_batches_are_counted_and_cut(lake: Lake) -> None:
    batch = lake.batch([row("a"), row("b"), row("c")])
    assert lake.files.rows(batch) == 3
    assert lake.rows([lake.files.head(batch, 2)]) == [row("a"), row("b")]
    assert lake.files.rows(lake.files.head(batch, 0)) == 0
    assert lake.files.rows(lake.files.head(batch, 9)) == 3


def test_a_file_is_never_written_over_another(lake: Lake) -> None:
    lake.write([row("a")], path="files/x")
    with pytest.raises(ObjectExistsError):
        lake.write([row("b")], path="files/x")


def test_writing_the_same_again_succeeds(lake: Lake) -> None:
    first, _ = lake.write([row("a")], path="files/x")
    again, _ = lake.write([row("a")], path="files/x")
    assert first == again


def test_a_missing_file_is_missing_not_empty(lake: Lake) -> None:
    part = lake.part([row("a")])
    lake.objects.delete([part.path])
    with pytest.raises(ObjectMissingError):
        lake.merged([part])
    with pytest.raises(ObjectMissingError):
        lake.over(lake.objects).sample(SCHEMA, part)


def damaged(lake: Lake, part: FilePart, change: Callable[[bytes], bytes]) -> None:
    ((body),) = lake.objects.read(part.path, [(0, part.file.size)])
    lake.objects.delete([part.path])
    writer = lake.objects.create(part.path)
    writer.write(change(body))
    writer.finish()
    lake.files = lake.over(lake.objects)  # no tail is cached


@pytest.mark.parametrize("place", [5, 40, -5, -200])
def test_a_changed_byte_is_corruption_not_other_rows(lake: Lake, place: int) -> None:
    part = lake.part([row(f"name {n}", n, n, n, f"note {n}") for n in range(50)])

    def flip(body: bytes) -> bytes:
        at = place % len(body)
        return body[:at] + bytes([body[at] ^ 0x40]) + body[at + 1 :]

    damaged(lake, part, flip)
    with pytest.raises(CorruptError):
        lake.merged([part])


def test_a_file_cut_short_is_corruption(lake: Lake) -> None:
    part = lake.part([row(f"name {n}") for n in range(50)])
    damaged(lake, part, lambda body: body[:-10])
    with pytest.raises(CorruptError):
        lake.merged([part])
    with pytest.raises(CorruptError):
        lake.files.sample(SCHEMA, part)


def faulty(lake: Lake, fault: Fault) -> tuple[Faults, SortedFiles[Any]]:
    faults = Faults(random.Random(1), {fault: 1.0})
    return faults, lake.over(FaultyObjectStore(lake.objects, faults))


@pytest.mark.parametrize("fault", [Fault.PUT_UNANSWERED, Fault.PUT_OWN_TRY, Fault.PUT_TWICE])
def test_a_write_that_landed_is_found_whatever_the_answer(lake: Lake, fault: Fault) -> None:
    faults, files = faulty(lake, fault)
    written, path = lake.write([row("a")], files=files)
    assert faults.fired[fault] == 1
    assert written is not None
    assert lake.merged([FilePart(written.file, path, EVERYTHING, 1)]) == [row("a")]


@pytest.mark.parametrize("fault", [Fault.PUT_LOST, Fault.PUT_LATE])
def test_a_write_that_has_not_landed_is_not_called_written(lake: Lake, fault: Fault) -> None:
    faults, files = faulty(lake, fault)
    with pytest.raises(UnknownOutcomeError):
        lake.write([row("a")], files=files)
    assert faults.late_count == (fault is Fault.PUT_LATE)


def test_a_throttled_write_says_so(lake: Lake) -> None:
    _, files = faulty(lake, Fault.PUT_THROTTLED)
    with pytest.raises(UnavailableError):
        lake.write([row("a")], files=files)


names = st.text(alphabet="ab\x00ü", max_size=3)
some_rows = st.lists(
    st.builds(row, names, st.integers(-3, 3), st.integers(-2, 2), st.integers(0, 9)), max_size=12
)


@pytest.mark.parametrize("kind", ["tuples", "parquet"])
@given(inputs=st.lists(some_rows, max_size=4), point=names, data=st.data())
def test_any_files_merge_to_all_their_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    inputs: list[list[Row]],
    point: str,
    data: st.DataObject,
) -> None:
    lake = Lake(kind, tmp_path_factory.getbasetemp())
    sides = [data.draw(st.sampled_from([EVERYTHING, below(point), above(point)])) for _ in inputs]
    parts = [lake.part(r, side) for r, side in zip(inputs, sides, strict=True) if r]
    wanted = [
        r for rows, side in zip(inputs, sides, strict=True) for r in rows if side.contains(order(r))
    ]
    merged = lake.merged(parts)
    assert [order(r) for r in merged] == sorted(order(r) for r in wanted)
    assert sorted(merged, key=repr) == sorted(wanted, key=repr)
