"""Every source of records: the same position gives the same records, whatever happened since."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.local.file_tail import FileTail
from lakebed.decoding.raw_records import RAW_RECORDS
from lakebed.ports.record_source import Records, RecordSource, SourceSplit


class GrowingFiles:
    """Source splits of a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source: RecordSource[pa.RecordBatch] = FileTail(str(folder / "*.log"))

    def append(self, split: str, *lines: str) -> None:
        with (self.folder / f"{split}.log").open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def given(tmp_path: Path) -> GrowingFiles:
    return GrowingFiles(tmp_path)


def only(source: RecordSource[pa.RecordBatch]) -> SourceSplit:
    (split,) = source.splits()
    return split


def all_lines(given: GrowingFiles, split: SourceSplit, bytes_max: int) -> Iterator[str]:
    at = given.source.start(split)
    reader = given.source.open(split, at)
    while (records := reader.read(bytes_max=bytes_max)) is not None:
        check(records)
        assert records.begin == at
        yield from texts(records)
        at = records.end
    assert reader.behind() == 0
    reader.close()


def check(records: Records[pa.RecordBatch]) -> None:
    """Look at what every source promises of a batch."""
    batch = records.batch
    batch.validate(full=True)
    assert batch.schema == RAW_RECORDS
    assert records.count == batch.num_rows > 0
    positions = batch["position"].to_pylist()
    assert positions == sorted(set(positions))
    assert records.begin <= positions[0]
    assert positions[-1] < records.end


def texts(records: Records[pa.RecordBatch] | None) -> list[str]:
    assert records is not None
    return [value.decode() for value in records.batch["value"].to_pylist()]


@pytest.mark.parametrize("bytes_max", [1, 7, 100, 1 << 20])
def test_all_records_are_read_in_order_in_batches_of_any_size(
    given: GrowingFiles, bytes_max: int
) -> None:
    wanted = [f"line {number}" * (number % 3) for number in range(50)]
    given.append("a", *wanted)
    assert list(all_lines(given, only(given.source), bytes_max)) == wanted


def test_the_same_position_gives_the_same_records_and_later_ones_come_behind(
    given: GrowingFiles,
) -> None:
    given.append("a", "one", "two")
    split = only(given.source)
    reader = given.source.open(split, 0)
    first = reader.read(bytes_max=100)
    assert first is not None
    assert reader.read(bytes_max=100) is None
    given.append("a", "three")
    again = given.source.open(split, 0).read(bytes_max=first.end)
    assert again == first
    assert only(given.source) == split
    assert texts(reader.read(bytes_max=100)) == ["three"]
    assert texts(given.source.open(split, first.end).read(bytes_max=100)) == ["three"]


def test_source_splits_are_told_apart_and_come_later(given: GrowingFiles) -> None:
    assert given.source.splits() == []
    given.append("b", "same")
    (b,) = given.source.splits()
    given.append("a", "same")
    names = {split.title[-5:]: split.name for split in given.source.splits()}
    assert names["b.log"] == b.name
    assert len(set(names.values())) == 2
