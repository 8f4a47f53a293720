"""What these tests share: a store in memory, schemas, rows, and strategies for keys."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.model.files import FilePart
from lakebed.model.names import FileName
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.sorted_files import FileWritten, Selection
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.parquet_files import ParquetFiles

EVERY_TYPE = schema_of(
    row_keys={"s": "string", "i": "int64"},
    sort_keys={"t": "timestamp[us, UTC]"},
    values={
        "bool": "bool?",
        "int8": "int8?",
        "int16": "int16?",
        "int32": "int32?",
        "uint8": "uint8?",
        "uint16": "uint16?",
        "uint32": "uint32?",
        "float32": "float32?",
        "float64": "float64?",
        "decimal": "decimal128(12,2)?",
        "text": "string?",
        "bytes": "binary?",
        "day": "date32?",
        "time": "time64[us]?",
        "naive": "timestamp[us]?",
        "list": {"list": "int32"},
        "map": {"map": ["string", {"list": "string"}]},
        "struct": {
            "struct": [
                {"name": "a", "type": "float64"},
                {"name": "b", "type": {"struct": [{"name": "c", "type": "binary"}]}},
            ]
        },
    },
)
"""Nested values are required as fields here, and nullable in `NULLABLE_NESTED`."""

SLEEPER = schema_of(
    row_keys={"key": "string"},
    sort_keys={"timestamp": "int64"},
    values={"value": "string", "note": "string?"},
)

INTS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.text(
    st.sampled_from("\x00\x01a\x7f\x80\xff\ue000\U0001f600\U0010ffff"), max_size=20
)
BYTES = st.binary(max_size=20) | st.lists(
    st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), max_size=20
).map(bytes)
KEY_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "binary": BYTES,
    "int32": st.integers(*INTS["int32"]) | st.sampled_from([*INTS["int32"], -1, 0, 1]),
    "date32": st.integers(*INTS["int32"]) | st.sampled_from([*INTS["int32"], -1, 0, 1]),
    "int64": st.integers(*INTS["int64"]) | st.sampled_from([*INTS["int64"], -1, 0, 1]),
    "timestamp[us, UTC]": st.integers(*INTS["int64"]) | st.sampled_from([-1, 0, 1]),
}


class Lake:
    """Files over a store in memory, written with one call each."""

    def __init__(self, directory: Path, *, memory_bytes: int = 64 * 1024 * 1024) -> None:
        self.objects = MemoryObjectStore(VirtualClock())
        self.directory = directory
        self.memory_bytes = memory_bytes
        self.files = self.over(self.objects)
        self._numbers = itertools.count()

    def over(self, objects: Any) -> ParquetFiles:  # noqa: ANN401  any store
        return ParquetFiles(objects, spill_directory=self.directory, memory_bytes=self.memory_bytes)

    def sort_and_write(
        self,
        schema: Schema,
        batches: Sequence[pa.RecordBatch],
        key_ranges: Sequence[KeyRange] = (EVERYTHING,),
    ) -> FileWritten | None:
        with self.files.sorter(schema) as sorter:
            for batch in batches:
                sorter.add(batch)
            return self.write(schema, sorter.sorted_batches(EVERYTHING), key_ranges)

    def write(
        self,
        schema: Schema,
        batches: Iterator[pa.RecordBatch] | Sequence[pa.RecordBatch],
        key_ranges: Sequence[KeyRange] = (EVERYTHING,),
    ) -> FileWritten | None:
        number = next(self._numbers)
        name = FileName(number.to_bytes(16, "big"))
        return self.files.write(
            schema, batches, name=name, path=path(number), key_ranges=key_ranges
        )

    def part(self, written: FileWritten | None, key_range: KeyRange = EVERYTHING) -> FilePart:
        assert written is not None
        number = int.from_bytes(written.file.name, "big")
        return FilePart(written.file, path(number), key_range, 0)

    def part_of(self, part: FilePart, key_range: KeyRange) -> FilePart:
        return FilePart(part.file, part.path, key_range, part.rows)

    def read(
        self, schema: Schema, parts: Sequence[FilePart], condition: Selection | None = None
    ) -> pa.Table:
        columns = arrow_schema(schema)
        if condition is not None and condition.columns is not None:
            columns = pa.schema([columns.field(name) for name in condition.columns])
        return pa.Table.from_batches(self.files.merge(schema, parts, condition), columns)


def path(number: int) -> str:
    return f"tables/t/files/{number:032x}.parquet"


def batch_of(schema: Schema, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=arrow_schema(schema))


def keys_batch(schema: Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows of key fields only, given as key values."""
    columns = arrow_schema(schema)
    arrays = [
        pa.array([row[place] for row in rows], pa.int64()).cast(column.type)
        if pa.types.is_timestamp(column.type)
        else pa.array([row[place] for row in rows], column.type)
        for place, column in enumerate(columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
