"""Merges that helpers take part in: the rows are those of one process, whoever fails when."""

import logging
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.errors import CorruptError, InvalidError, StorageFullError, SumTooLargeError
from lakebed.kernels.presence import available
from lakebed.model.files import FilePart
from lakebed.model.keys import encode_key
from lakebed.model.names import FileName, Micros
from lakebed.model.processing import AgeOff, Latest, Processing, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.observe import events
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files import (
    engines,
    merging_together,
    row_groups,
    stored_groups,
    writer_options,
)
from lakebed.sorted_files.merge_helpers import Command, Help, Helper, MergeHelpers
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.sorted_files.range_merger import RangeMerger
from lakebed.sorted_files.range_messages import (
    MergeTold,
    RangeFailed,
    RangeMerged,
    RangeTold,
    decode_answer,
    encode,
)
from tests.unit.sorted_files.lakes import Lake, batch_of

pytestmark = pytest.mark.skipif(not available(), reason="kernels need numba")

TABLE = schema_of(
    row_keys={"key": "string"},
    sort_keys={"at": "int64"},
    values={"number": "int64", "small": "int32?", "text": "string?", "list": {"list": "int32"}},
)
NUMBERS = schema_of(
    row_keys={"key": "int64"}, sort_keys={"at": "int64"}, values={"number": "int64?"}
)
NOW = Micros(1_000_000_000)
PROCESSINGS = {
    "sum": (NUMBERS, Processing(aggregate={"number": "sum"})),
    "max, the young": (
        NUMBERS,
        Processing(age_off=AgeOff("at", seconds=990, unit="s"), aggregate={"number": "max"}),
    ),
    "latest": (NUMBERS, Processing(latest=Latest("number"))),
    "last": (
        TABLE,
        Processing(
            aggregate={
                "number": "max",
                "small": "sum",
                "text": "last by number",
                "list": "last by number",
            }
        ),
    ),
}


@pytest.fixture(autouse=True)
def _small_pages_and_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 8)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 8)
    monkeypatch.setattr(merging_together, "HELPED_GROUPS_MIN", 2)
    monkeypatch.setattr(merging_together, "RANGE_GROUPS_MIN", 1)
    monkeypatch.setattr(row_groups, "GROUP_ROWS_MAX", 200)
    monkeypatch.setattr(stored_groups, "GROUP_ROWS_MAX", 200)


def batch(schema: Schema, chance: random.Random, keys: Sequence[int]) -> pa.RecordBatch:
    rows = [
        {
            "key": key if schema is NUMBERS else f"{key:05d}" + "\x00é" * (key % 3 == 0),
            "at": chance.randrange(30),
            "number": chance.choice([None, 1]) if schema is NUMBERS else chance.randrange(99),
            "small": chance.choice([None, 5, -7]),
            "text": chance.choice([None, "", "x" * chance.randrange(30)]),
            "list": [chance.randrange(9)] * chance.randrange(3),
        }
        for key in keys
    ]
    names = {field.name for field in schema.fields}
    return batch_of(schema, [{n: v for n, v in row.items() if n in names} for row in rows])


class HelperHere(Helper):
    """Merges in a thread of this process what it is told in bytes. loses: of its answers, those at
    these places: the process is gone; fails: an error is the answer."""

    def __init__(self, objects: ObjectStore, scratch: ObjectStore) -> None:
        self._merger = RangeMerger(objects, scratch)
        self.asked = 0
        self.loses: Sequence[int] = ()
        self.fails: Sequence[int] = ()

    def merged(self, told: MergeTold, asked: RangeTold) -> RangeMerged | RangeFailed:
        place, self.asked = self.asked, self.asked + 1
        if place in self.loses:
            raise BrokenPipeError("gone")
        if place in self.fails:
            return RangeFailed("no room")
        assert self._merger.answer(encode(told)) is None
        answer = self._merger.answer(encode(asked))
        assert answer is not None
        return decode_answer(answer)


class HelpersHere(MergeHelpers):
    """Helpers that are threads."""

    def __init__(self, objects: ObjectStore, count: int) -> None:
        super().__init__(Command(()), open_scratch=lambda: self.left, count=count)
        self.left = MemoryObjectStore(VirtualClock())
        self.helpers = [HelperHere(objects, self.left) for _ in range(count)]
        self._running: list[threading.Thread] = []

    def each(self, help_: Help) -> None:
        def run(helper: Helper) -> None:
            try:
                help_(helper)
            except BrokenPipeError:
                return

        self._running = [threading.Thread(target=run, args=[helper]) for helper in self.helpers]
        for thread in self._running:
            thread.start()

    def asked(self) -> int:
        """How many ranges were asked for, once all are done."""
        for thread in self._running:
            thread.join()
        return sum(helper.asked for helper in self.helpers)


class Merges:
    """Files of some rows, and what they become."""

    def __init__(self, directory: Path, schema: Schema) -> None:
        self.schema = schema
        self.lake = Lake(directory)
        self._directory = directory
        self._numbers = iter(range(100))

    def part(self, rows: pa.RecordBatch, region: KeyRange = EVERYTHING) -> FilePart:
        part = self.lake.part(self.lake.sort_and_write(self.schema, [rows]), region)
        return msgspec.structs.replace(part, rows=len(rows))

    def parts(self, chance: random.Random, files: int, keys: int, rows: int) -> list[FilePart]:
        numbers = [[chance.randrange(keys) for _ in range(rows)] for _ in range(files)]
        return [self.part(batch(self.schema, chance, some)) for some in numbers]

    def helpers(self, count: int) -> HelpersHere:
        return HelpersHere(self.lake.objects, count)

    def merged(
        self,
        parts: Sequence[FilePart],
        helpers: MergeHelpers | None,
        processing: Processing | None = None,
        *,
        merge_bytes: int | None = None,
    ) -> tuple[pa.Table, FilePart]:
        files = ParquetFiles(
            self.lake.objects,
            spill_directory=self._directory,
            merge_bytes=merge_bytes,
            helpers=helpers,
        )
        name = next(self._numbers)
        path = f"merged/{name}"
        written = files.merge_into_file(
            self.schema,
            parts,
            name=FileName(name.to_bytes(16, "big")),
            path=path,
            region=EVERYTHING,
            processing=None
            if processing is None
            else ProcessingPass(processing, NOW, "compaction"),
        )
        assert written is not None
        (rows,) = written.regions
        assert rows is not None
        part = FilePart(written.file, path, EVERYTHING, rows.rows)
        files.measure(self.schema, part, [EVERYTHING])  # sorted, and its notes are true
        return self.lake.read(self.schema, [part]), part


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


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
    chance = random.Random(seed)
    merges = Merges(tmp_path_factory.mktemp("merges"), TABLE)
    region = EVERYTHING
    if kind == "clipped":
        region = KeyRange(*(encode_key(TABLE.row_keys, (f"{n:05d}",)) for n in (2, 15_000)))
    parts = []
    for run in range(runs):
        first = (
            700 * run if kind == "apart" else 0
        )  # some row groups meet no others, and are passed on
        numbers = [first + chance.randrange(keys) for _ in range(chance.randrange(1, 500))]
        parts.append(merges.part(batch(TABLE, chance, numbers), region))
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
    assert 2 <= helpers.asked() <= merging_together.RANGES_EACH * 2


@pytest.mark.parametrize("how", ["loses", "fails"])
@pytest.mark.parametrize("when", [range(1), range(2, 3), range(99)], ids=["first", "later", "all"])
def test_what_a_helper_does_not_do_is_done_without_it(
    tmp_path: Path, how: str, when: range, caplog: pytest.LogCaptureFixture
) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(2), 4, 9_000, 2_000)
    wanted = merges.lake.read(TABLE, parts)
    helpers = merges.helpers(2)
    for helper in helpers.helpers:
        setattr(helper, how, when)
    with caplog.at_level(logging.INFO, "lakebed"):
        found, _ = merges.merged(parts, helpers)
    assert told(found) == told(wanted)
    assert helpers.asked() > 0
    assert not list(helpers.left.list(""))
    lost = [r for r in caplog.records if getattr(r, "event", "") == events.MERGE_HELPER_LOST]
    assert bool(lost) is (how == "fails")  # of those that are lost, whoever lends them tells


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


def test_a_damaged_file_of_a_helper_is_noticed(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(5), 4, 9_000, 2_000)
    helpers = merges.helpers(1)

    class Damaging(HelperHere):
        def merged(self, told: MergeTold, asked: RangeTold) -> RangeMerged | RangeFailed:
            answer = super().merged(told, asked)
            assert isinstance(answer, RangeMerged)
            assert answer.written is not None
            (body,) = helpers.left.read(answer.path, [(0, answer.written.file.size)])
            helpers.left.delete([answer.path])
            writer = helpers.left.create(answer.path)
            writer.write(body[:50] + bytes([body[50] ^ 1]) + body[51:])
            writer.finish()
            return answer

    helpers.helpers = [Damaging(merges.lake.objects, helpers.left)]
    with pytest.raises(CorruptError):
        merges.merged(parts, helpers)
    assert not list(merges.lake.objects.list("merged"))


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


def test_a_limit_of_memory_is_for_all_processes_or_for_one(tmp_path: Path) -> None:
    merges = Merges(tmp_path, TABLE)
    parts = merges.parts(random.Random(7), 4, 9_000, 2_000)
    told_of: list[int] = []

    class Noting(HelperHere):
        def merged(self, told: MergeTold, asked: RangeTold) -> RangeMerged | RangeFailed:
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
