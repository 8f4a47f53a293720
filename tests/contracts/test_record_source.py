"""Every source of records: the same position gives the same records, whatever happened since."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.backends.local.file_tail import FileTail
from lakebed.ports.record_source import RecordSource, SourceSplit


class GrowingFiles:
    """Source splits of a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source: RecordSource = FileTail(str(folder / "*.log"))

    def append(self, split: str, *lines: str) -> None:
        with (self.folder / f"{split}.log").open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def given(tmp_path: Path) -> GrowingFiles:
    return GrowingFiles(tmp_path)


def only(source: RecordSource) -> SourceSplit:
    (split,) = source.splits()
    return split


def all_lines(source: RecordSource, split: SourceSplit, bytes_max: int) -> Iterator[str]:
    at = 0
    while (records := source.read(split, at, bytes_max=bytes_max)) is not None:
        assert records.begin == at
        assert records.end == at + len(records.lines)
        yield from records.lines.decode().splitlines()
        at = records.end


@pytest.mark.parametrize("bytes_max", [1, 7, 100, 1 << 20])
def test_all_records_are_read_in_order_in_batches_of_any_size(
    given: GrowingFiles, bytes_max: int
) -> None:
    wanted = [f"line {number}" * (number % 3) for number in range(50)]
    given.append("a", *wanted)
    assert list(all_lines(given.source, only(given.source), bytes_max)) == wanted


def test_the_same_position_gives_the_same_records_and_later_ones_come_behind(
    given: GrowingFiles,
) -> None:
    given.append("a", "one", "two")
    split = only(given.source)
    first = given.source.read(split, 0, bytes_max=100)
    assert first is not None
    assert given.source.read(split, first.end, bytes_max=100) is None
    given.append("a", "three")
    again = given.source.read(split, 0, bytes_max=first.end)
    assert again == first
    assert only(given.source) == split
    then = given.source.read(split, first.end, bytes_max=100)
    assert then is not None
    assert then.lines == b"three\n"


def test_source_splits_are_told_apart_and_come_later(given: GrowingFiles) -> None:
    assert given.source.splits() == []
    given.append("b", "same")
    (b,) = given.source.splits()
    given.append("a", "same")
    names = {split.title[-5:]: split.name for split in given.source.splits()}
    assert names["b.log"] == b.name
    assert len(set(names.values())) == 2
