"""Row groups that one process encodes and another one puts into its file."""

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.errors import CorruptError, ObjectMissingError
from lakebed.kernels.toolchain.presence import available
from lakebed.model.files import FilePart
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING
from lakebed.model.schema import Schema
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.merging.row_group_transfer import (
    HandedOver,
    RowGroupsHandedOver,
    hand_over,
)
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder
from lakebed.sorted_files.writing.file_writing import write_file
from tests.unit.sorted_files.lakes import Lake
from tests.unit.sorted_files.merging.helped import NUMBERS, TABLE, batch

ENGINES = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(not available(), reason="kernels need numba")),
]


@pytest.fixture
def lake(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 300)
    return Lake(tmp_path_factory.mktemp("lake"))


def sorted_rows(lake: Lake, schema: Schema, count: int) -> pa.RecordBatch:
    rng = random.Random(count)
    rows = batch(schema, rng, [rng.randrange(900) for _ in range(count)])
    table = lake.read(schema, [lake.part(lake.sort_and_write(schema, [rows]))])
    return table.combine_chunks().to_batches()[0]


def handed_over(
    schema: Schema, rows: pa.RecordBatch, *, compiled: bool
) -> tuple[MemoryObjectStore, HandedOver | None]:
    left = MemoryObjectStore(VirtualClock())
    encoder = RowGroupEncoder(schema, compiled=compiled)
    handed = hand_over(left, schema, [rows] if len(rows) else [], path="some", encoder=encoder)
    encoder.close()
    return left, handed


@pytest.mark.parametrize("compiled", ENGINES)
@pytest.mark.parametrize("schema", [TABLE, NUMBERS], ids=["texts", "numbers"])
@pytest.mark.parametrize("count", [1, 300, 1_000])
def test_what_is_taken_over_is_as_if_it_were_written_here(
    lake: Lake, schema: Schema, count: int, *, compiled: bool
) -> None:
    rows = sorted_rows(lake, schema, count)
    left, handed = handed_over(schema, rows, compiled=compiled)
    assert handed is not None
    files = []
    for contents in ([rows], RowGroupsHandedOver(left, "some", handed)):
        written = write_file(
            lake.objects,
            schema,
            contents,
            name=FileName(bytes(16)),
            path=f"files/{len(files)}",
            key_ranges=[EVERYTHING],
            encoder=RowGroupEncoder(schema, compiled=compiled),
        )
        assert written is not None
        files.append(written)
    here, taken = files
    assert taken.key_ranges == here.key_ranges
    part = FilePart(taken.file, "files/1", EVERYTHING, count)
    assert lake.read(schema, [part]).equals(pa.Table.from_batches([rows]))
    (one,), (other,) = (
        lake.objects.read(f"files/{n}", [(0, file.file.size)]) for n, file in enumerate(files)
    )
    assert one == other


def test_of_no_rows_nothing_is_handed_over() -> None:
    nothing = batch(NUMBERS, random.Random(0), [])
    left, handed = handed_over(NUMBERS, nothing, compiled=False)
    assert handed is None
    assert not list(left.list(""))


def test_any_flipped_bit_is_noticed_before_its_row_group_is_given(lake: Lake) -> None:
    rows = sorted_rows(lake, TABLE, 700)
    left, handed = handed_over(TABLE, rows, compiled=False)
    assert handed is not None
    (body,) = left.read("some", [(0, handed.end)])
    rng = random.Random(1)
    for place in [0, handed.start - 1, handed.start, handed.end - 1] + [
        rng.randrange(handed.end) for _ in range(200)
    ]:
        spoiled = bytearray(body)
        spoiled[place] ^= 1 << rng.randrange(8)
        left.delete(["some"])
        writer = left.create("some")
        writer.write(bytes(spoiled))
        writer.finish()
        with pytest.raises(CorruptError, match="contradict their checksum"):
            list(RowGroupsHandedOver(left, "some", handed))


def test_an_object_that_is_gone_is_told_missing(lake: Lake) -> None:
    rows = sorted_rows(lake, NUMBERS, 10)
    left, handed = handed_over(NUMBERS, rows, compiled=False)
    assert handed is not None
    left.delete(["some"])
    with pytest.raises(ObjectMissingError):
        RowGroupsHandedOver(left, "some", handed)


def test_rows_that_end_with_an_error_leave_nothing(lake: Lake) -> None:
    rows = sorted_rows(lake, NUMBERS, 700)

    def broken() -> Iterator[pa.RecordBatch]:
        yield rows
        raise CorruptError("an input is damaged")

    left = MemoryObjectStore(VirtualClock())
    encoder = RowGroupEncoder(NUMBERS, compiled=False)
    with pytest.raises(CorruptError, match="an input is damaged"):
        hand_over(left, NUMBERS, broken(), path="some", encoder=encoder)
    assert not list(left.list(""))


def test_rows_that_are_not_sorted_are_not_handed_over(lake: Lake) -> None:
    rows = sorted_rows(lake, NUMBERS, 100)
    backwards = rows.take(pa.array(range(99, -1, -1)))
    with pytest.raises(AssertionError, match="not sorted"):
        handed_over(NUMBERS, backwards, compiled=False)
