"""Helpers of a merge that fail, are lost, or leave what cannot be read."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.errors import (
    CorruptError,
    StorageFullError,
    SumTooLargeError,
    UnavailableError,
)
from lakebed.kernels.toolchain.presence import available
from lakebed.model.processing import Processing
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.format.object_sink import ObjectSink
from lakebed.sorted_files.merging.helper_processes import Help
from lakebed.sorted_files.merging.range_messages import (
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
)
from lakebed.sorted_files.writing import file_writing
from tests.unit.sorted_files.lakes import batch_of
from tests.unit.sorted_files.merging.helped import (
    NUMBERS,
    TABLE,
    HelperHere,
    HelpersHere,
    Merges,
    told,
)

pytestmark = [
    pytest.mark.skipif(not available(), reason="kernels need numba"),
    pytest.mark.usefixtures("small_pages_and_ranges"),
]


@pytest.mark.parametrize("how", ["loses", "fails"])
@pytest.mark.parametrize("when", [range(1), range(2, 3), range(99)], ids=["first", "later", "all"])
def test_what_a_helper_does_not_do_is_done_without_it(
    tmp_path: Path, how: str, when: range
) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(2), 4, 9_000, 2_000)
    wanted = merges.lake.read(TABLE, parts)
    helpers = merges.helpers(2)
    for helper in helpers.helpers:
        setattr(helper, how, when)
    found, _ = merges.merged(parts, helpers)
    assert told(found) == told(wanted)
    assert helpers.asked() > 0
    assert not list(helpers.left.list(""))


@pytest.mark.parametrize("place", [0.02, 0.5, 0.97])
def test_a_flipped_bit_in_any_range_ends_the_merge_and_nothing_is_left(
    tmp_path: Path, place: float
) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(4), 4, 9_000, 2_000)
    bad, objects = parts[2], merges.lake.objects
    (body,) = objects.read(bad.path, [(0, bad.file.size)])
    flipped = bytearray(body)
    flipped[int(bad.file.tail_offset * place)] ^= 4
    objects.delete([bad.path])
    writer = objects.create(bad.path)
    writer.write(bytes(flipped))
    writer.finish()
    helpers = merges.helpers(2)
    with pytest.raises(CorruptError, match="contradict their checksum"):
        merges.merged(parts, helpers)
    helpers.asked()
    assert not list(objects.list("merged"))
    assert not list(helpers.left.list(""))


def test_a_sum_that_is_too_large_in_one_range_ends_the_merge(tmp_path: Path) -> None:
    merges = Merges(tmp_path, NUMBERS)
    rows = [{"key": key, "at": 0, "number": 2**62 if key == 700 else 1} for key in range(1000)]
    parts = [merges.part(batch_of(NUMBERS, rows)) for _ in range(3)]
    with pytest.raises(SumTooLargeError):
        merges.merged(parts, merges.helpers(2), Processing(aggregate={"number": "sum"}))
    assert not list(merges.lake.objects.list("merged"))


class Spoiling(HelperHere):
    """What it merged is lost, or has a flipped bit."""

    def __init__(self, objects: ObjectStore, scratch: ObjectStore, place: int | None) -> None:
        super().__init__(objects, scratch)
        self._left = scratch
        self._place = place

    def merged(self, told: MergeTask, asked: RangeTask) -> RangeMerged | RangeFailed:
        answer = super().merged(told, asked)
        assert isinstance(answer, RangeMerged)
        assert answer.handed is not None
        (body,) = self._left.read(answer.path, [(0, answer.handed.end)])
        self._left.delete([answer.path])
        if self._place is not None:
            spoiled = bytearray(body)
            spoiled[self._place] ^= 1
            writer = self._left.create(answer.path)
            writer.write(bytes(spoiled))
            writer.finish()
        return answer


@pytest.mark.parametrize("place", [None, -20], ids=["lost", "damaged tail"])
def test_a_file_of_a_helper_that_cannot_be_read_is_done_without(
    tmp_path: Path, place: int | None
) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(5), 4, 9_000, 2_000)
    wanted = merges.lake.read(TABLE, parts)
    helpers = merges.helpers(1)
    helpers.helpers = [Spoiling(merges.lake.objects, helpers.left, place)]
    found, _ = merges.merged(parts, helpers)
    assert told(found) == told(wanted)


def test_a_damaged_row_group_of_a_helper_is_no_damage_of_the_lake(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(5), 4, 9_000, 2_000)
    helpers = merges.helpers(1)
    helpers.helpers = [Spoiling(merges.lake.objects, helpers.left, 50)]
    with pytest.raises(UnavailableError, match="cannot be read"):
        merges.merged(parts, helpers)
    assert not list(merges.lake.objects.list("merged"))


def test_where_no_thread_is_to_be_had_one_process_merges(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(8), 4, 9_000, 2_000)
    wanted = merges.lake.read(TABLE, parts)

    class Threadless(HelpersHere):
        def each(self, help_: Help, *, at_most: int | None = None) -> None:
            raise RuntimeError(f"can't start new thread for {help_}, {at_most}")

    found, _ = merges.merged(parts, Threadless(merges.lake.objects, 2))
    assert told(found) == told(wanted)


def test_when_writing_fails_helpers_stop_and_leave_nothing(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(9), 6, 90_000, 6_000)
    helpers = merges.helpers(1)

    class Full(ObjectSink):
        def write(self, pieces: Sequence[bytes | memoryview]) -> None:
            raise StorageFullError(f"no room for {len(pieces)} pieces")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_writing, "ObjectSink", Full)
        with pytest.raises(StorageFullError) as kept:
            merges.merged(parts, helpers)
    assert helpers.asked() <= 2  # the error is held, and so is all that raised it
    assert not list(helpers.left.list(""))
    assert kept.value.__traceback__ is not None


def test_no_room_for_a_helper_is_room_enough_here(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(6), 4, 9_000, 2_000)
    wanted = merges.lake.read(TABLE, parts)
    helpers = merges.helpers(1)

    class Full(MemoryObjectStore):
        def create(self, path: str) -> object:  # type: ignore[override]  # none is made
            raise StorageFullError(f"no room for {path}")

    helpers.helpers = [HelperHere(merges.lake.objects, Full(VirtualClock()))]
    found, _ = merges.merged(parts, helpers)
    assert told(found) == told(wanted)
