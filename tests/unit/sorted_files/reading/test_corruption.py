import random
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lakebed.errors import CorruptError, NewerFormatError, ObjectMissingError
from lakebed.model.files import FilePart
from lakebed.model.schema import schema_of
from lakebed.ports.object_store import ObjectFacts, ObjectRanges
from tests.unit.sorted_files.lakes import SLEEPER, Lake, batch_of, path


class DamagedStore:
    """One object whose bytes a test chooses."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def read(self, path: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        if any(end > len(self.body) for _, end in ranges):
            raise CorruptError("shorter than a range", path=path)
        return [self.body[start:end] for start, end in ranges]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        return [self.read(path, list(ranges)) for path, ranges in wanted]

    def look(self, path: str) -> ObjectFacts | None:
        return None


def written(tmp_path: Path, rows: int) -> tuple[Lake, FilePart, pa.Table]:
    lake = Lake(tmp_path)
    rng = random.Random(7)
    batch = batch_of(
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
    part = lake.part(lake.sort_and_write(SLEEPER, [batch]))
    return lake, part, lake.read(SLEEPER, [part])


def read_damaged(lake: Lake, part: FilePart, body: bytes) -> pa.Table:
    damaged = Lake(lake.directory)
    damaged.files = lake.over(DamagedStore(body))
    return damaged.read(SLEEPER, [part])


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_anywhere_is_found_and_never_makes_wrong_rows(
    tmp_path: Path, seed: int
) -> None:
    lake, part, _ = written(tmp_path, 500)
    (body,) = lake.objects.read(part.path, [(0, part.file.size)])
    rng = random.Random(seed)
    places = rng.sample(range(len(body)), 300) + list(range(seed * 20, seed * 20 + 20))
    for at in places:
        flipped = bytearray(body)
        flipped[at] ^= 1 << rng.randrange(8)
        with pytest.raises(CorruptError):
            read_damaged(lake, part, bytes(flipped))


def test_a_flipped_bit_in_a_page_header_is_found_where_pages_are_read_piece_by_piece(
    tmp_path: Path,
) -> None:
    lake, part, rows = written(tmp_path, 60_000)
    (body,) = lake.objects.read(part.path, [(0, part.file.size)])
    small = Lake(tmp_path, memory_bytes=1024 * 1024)
    rng = random.Random(3)
    store = DamagedStore(body)
    small.files = small.over(store)
    assert small.read(SLEEPER, [part]).equals(rows)
    for _ in range(20):
        flipped = bytearray(body)
        flipped[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        store.body = bytes(flipped)
        small.files = small.over(store)
        with pytest.raises(CorruptError):
            small.read(SLEEPER, [part])


@pytest.mark.parametrize("kept", [0, 1, 100, -100, -8, -1])
def test_a_file_that_is_cut_off_is_corrupt(tmp_path: Path, kept: int) -> None:
    lake, part, _ = written(tmp_path, 500)
    (body,) = lake.objects.read(part.path, [(0, part.file.size)])
    with pytest.raises(CorruptError):
        read_damaged(lake, part, body[:kept])


def test_a_file_that_is_not_there_is_missing_and_not_corrupt(tmp_path: Path) -> None:
    lake, part, _ = written(tmp_path, 5)
    lake.objects.delete([part.path])
    fresh = type(lake.files)(lake.objects, spill_directory=tmp_path)
    with pytest.raises(ObjectMissingError):
        list(fresh.merge(SLEEPER, [part]))


def test_a_file_of_other_columns_is_corrupt(tmp_path: Path) -> None:
    lake, part, _ = written(tmp_path, 5)
    other = schema_of(row_keys={"key": "string"}, sort_keys={"timestamp": "int32"})
    with pytest.raises(CorruptError, match="contradict the table's schema"):
        list(lake.files.merge(other, [part]))


def test_bytes_that_are_no_file_of_ours_are_corrupt_even_with_a_right_checksum(
    tmp_path: Path,
) -> None:
    lake, part, _ = written(tmp_path, 5)
    for body in (b"nonsense", b"PAR1" * 20, bytes(100)):
        file = msgspec.structs.replace(
            part.file, size=len(body), tail_offset=0, tail_checksum=zlib.crc32(body)
        )
        with pytest.raises(CorruptError):
            read_damaged(lake, msgspec.structs.replace(part, file=file), body)


def test_a_newer_format_is_told_from_corruption(tmp_path: Path) -> None:
    from lakebed.sorted_files.format.file_notes import decode_notes

    with pytest.raises(NewerFormatError):
        decode_notes({b"lakebed.format": b"2"}, path(1))
    with pytest.raises(CorruptError):
        decode_notes({b"lakebed.format": b"1", b"lakebed.sample": b"*"}, path(1))
