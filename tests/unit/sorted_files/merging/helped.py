"""Merges that threads help in, in place of processes: what is said is bytes all the same."""

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.model.files import FilePart
from lakebed.model.names import FileName, Micros
from lakebed.model.processing import AgeOff, Latest, Processing, ProcessingPass
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.merging.helper_processes import Help, Helper, MergeHelpers
from lakebed.sorted_files.merging.range_merger import RangeMerger
from lakebed.sorted_files.merging.range_messages import (
    MergeTask,
    RangeFailed,
    RangeMerged,
    RangeTask,
    decode_answer,
    encode,
)
from lakebed.sorted_files.parquet_files import ParquetFiles
from tests.unit.sorted_files.lakes import Lake, batch_of

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


def batch(schema: Schema, rng: random.Random, keys: Sequence[int]) -> pa.RecordBatch:
    rows = [
        {
            "key": key if schema is NUMBERS else f"{key:05d}" + "\x00é" * (key % 3 == 0),
            "at": rng.randrange(30),
            "number": rng.choice([None, 1]) if schema is NUMBERS else rng.randrange(99),
            "small": rng.choice([None, 5, -7]),
            "text": rng.choice([None, "", "x" * rng.randrange(30)]),
            "list": [rng.randrange(9)] * rng.randrange(3),
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

    def merged(self, told: MergeTask, asked: RangeTask) -> RangeMerged | RangeFailed:
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
        super().__init__((), open_scratch=lambda: self.left, count=count)
        self.left = MemoryObjectStore(VirtualClock())
        self.helpers = [HelperHere(objects, self.left) for _ in range(count)]
        self._running: list[threading.Thread] = []

    def each(self, help_: Help, *, at_most: int | None = None) -> None:
        def run(helper: Helper) -> None:
            try:
                help_(helper)
            except BrokenPipeError:
                return

        self._running = [
            threading.Thread(target=run, args=[helper]) for helper in self.helpers[:at_most]
        ]
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

    def part(self, rows: pa.RecordBatch, key_range: KeyRange = EVERYTHING) -> FilePart:
        part = self.lake.part(self.lake.sort_and_write(self.schema, [rows]), key_range)
        return msgspec.structs.replace(part, rows=len(rows))

    def parts(self, rng: random.Random, files: int, keys: int, rows: int) -> list[FilePart]:
        numbers = [[rng.randrange(keys) for _ in range(rows)] for _ in range(files)]
        return [self.part(batch(self.schema, rng, some)) for some in numbers]

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
            key_range=EVERYTHING,
            processing=None
            if processing is None
            else ProcessingPass(processing, NOW, "compaction"),
        )
        assert written is not None
        (rows,) = written.key_ranges
        assert rows is not None
        part = FilePart(written.file, path, EVERYTHING, rows.rows)
        files.measure(self.schema, part, [EVERYTHING])  # sorted, and its notes are true
        return self.lake.read(self.schema, [part]), part


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
