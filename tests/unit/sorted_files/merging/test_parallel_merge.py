"""Merges that helpers take part in: the rows are those of one process."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import (
    InvalidError,
)
from lakebed.kernels.toolchain.presence import available
from lakebed.model.keys import encode_key
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.sorted_files.merging import parallel_merge
from lakebed.sorted_files.merging.range_messages import (
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
)
from tests.unit.sorted_files.merging.helped import (
    PROCESSINGS,
    TABLE,
    HelperHere,
    Merges,
    batch,
    told,
)

pytestmark = [
    pytest.mark.skipif(not available(), reason="kernels need numba"),
    pytest.mark.usefixtures("small_pages_and_ranges"),
]


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(1, 7), st.sampled_from([1, 2, 20, 300, 20_000])),
    count=st.sampled_from([1, 2, 7]),
    kind=st.sampled_from(["together", "apart", "clipped"]),
)
def test_helpers_and_one_process_give_the_rows_of_the_plain_path(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sizes: tuple[int, int],
    count: int,
    kind: str,
) -> None:
    runs, keys = sizes
    rng = random.Random(seed)
    merges = Merges(tmp_path_factory.mktemp("merges"), TABLE)
    key_range = EVERYTHING
    if kind == "clipped":
        key_range = KeyRange(*(encode_key(TABLE.row_keys, (f"{n:05d}",)) for n in (2, 15_000)))
    parts = []
    for run in range(runs):
        first = (
            700 * run if kind == "apart" else 0
        )  # some row groups meet no others, and are copied
        numbers = [first + rng.randrange(keys) for _ in range(rng.randrange(1, 500))]
        parts.append(merges.part(batch(TABLE, rng, numbers), key_range))
    wanted = merges.lake.read(TABLE, parts)
    if not len(wanted):
        return
    helpers = merges.helpers(count)
    found, _ = merges.merged(parts, helpers)
    assert found.select(["key", "at"]).equals(wanted.select(["key", "at"]))
    assert told(found) == told(wanted)
    helpers.asked()
    assert not list(helpers.left.list(""))


@pytest.mark.parametrize("kind", PROCESSINGS)
@pytest.mark.parametrize("keys", [1, 3, 200])
def test_rows_of_equal_keys_become_one_in_whichever_range_they_are(
    tmp_path: Path, kind: str, keys: int
) -> None:
    schema, processing = PROCESSINGS[kind]
    merges = Merges(tmp_path, schema)
    parts = merges.parts(random.Random(keys), 4, keys, 250)
    wanted, _ = merges.merged(parts, None, processing)
    for count in (1, 4):
        found, _ = merges.merged(parts, merges.helpers(count), processing)
        assert found.equals(wanted)
    assert len(wanted) == len({(r["key"], r["at"]) for r in wanted.to_pylist()})


def test_helpers_do_most_of_the_ranges_where_there_are_several(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(1), 4, 9_000, 2_000)
    helpers = merges.helpers(1)
    merges.merged(parts, helpers)
    assert 2 <= helpers.asked() <= parallel_merge.RANGES_EACH * 2


def test_a_thin_slice_of_many_files_of_which_no_sample_tells(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    key_range = KeyRange(*(encode_key(TABLE.row_keys, (f"{n:05d}",)) for n in (4_001, 4_004)))
    rng = random.Random(3)
    rows = [batch(TABLE, rng, range(run, 9_000, 3)) for run in range(3)]
    parts = [merges.part(some, key_range) for some in rows]
    helpers = merges.helpers(1)
    found, _ = merges.merged(parts, helpers)
    assert [key[:5] for key in found["key"].to_pylist()] == ["04001", "04002", "04003"]
    helpers.asked()


def test_a_limit_of_memory_is_for_all_processes_or_for_one(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(7), 4, 9_000, 2_000)
    told_of: list[int] = []

    class Noting(HelperHere):
        def merged(self, told: MergeTask, asked: RangeTask) -> RangeMerged | RangeFailed:
            told_of.append(told.memory)
            return super().merged(told, asked)

    def memory_of(merge_bytes: int) -> set[int]:
        told_of.clear()
        helpers = merges.helpers(1)
        helpers.helpers = [Noting(merges.lake.objects, helpers.left)]
        merges.merged(parts, helpers, merge_bytes=merge_bytes)
        helpers.asked()
        return set(told_of)

    assert memory_of(512 << 20) == {256 << 20}
    assert memory_of(200 << 20) == set()  # half of it would not do
    with pytest.raises(InvalidError, match="needs more memory"):
        memory_of(100 << 20)
