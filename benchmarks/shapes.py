"""Rows to measure with: five shapes, made up from a seed.

`sleeper` is that of Sleeper's system test: a random key of ten letters, a time, a value of ten
letters and one that is null in a fifth of the rows. `dup` has a tenth as many keys as rows: it is
for merges that filter and aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.names import Micros
from lakebed.model.predicates.language import Compare
from lakebed.model.processing import Processing, ProcessingPass
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema

FILES = 10
LEAVES = 16
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)
_WORD_LETTERS = 10
_DUP_KEYS_FRACTION = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A table to measure with. file_rows: of each of ten files; columns: makes so many rows.

    split_points: of sixteen leaves with about as many rows each; dictionaries: the columns that
    gain by one. folds: what becomes of values when rows of equal keys become one, and since: a
    column and its least value, those below are left out.
    """

    name: str
    schema: Schema
    file_rows: int
    columns: Callable[[np.random.Generator, int], list[pa.Array]]
    split_points: tuple[object, ...] = ()
    dictionaries: tuple[str, ...] = ()
    folds: Mapping[str, Literal["sum", "max"]] | None = None
    since: tuple[str, int] | None = None

    @property
    def keys(self) -> list[str]:
        """The columns by which rows are sorted."""
        return [field.name for field in self.schema.key_fields]

    def rows(self, seed: int, count: int) -> pa.Table:
        """Return rows in no order. The same seed and count give the same rows."""
        rng = np.random.default_rng([seed, count])
        return pa.Table.from_arrays(self.columns(rng, count), schema=arrow_schema(self.schema))

    @property
    def processing(self) -> ProcessingPass | None:
        """What a merge does with rows: it leaves old ones out, then folds, as the peer does. A
        table would refuse this filter, of a value that is merged: results would depend on what was
        compacted when."""
        if self.folds is None or self.since is None:
            return None
        column, least = self.since
        processing = Processing(filter=Compare(column, ">=", least), aggregate=self.folds)
        return ProcessingPass(processing, Micros(0), "compaction")

    def for_peers(self) -> str:
        """Return, as JSON, what a peer's process needs to know: it imports nothing of ours."""
        plan = {
            "keys": self.keys,
            "split_points": self.split_points,
            "encodings": {
                field.name: encoding
                for field in arrow_schema(self.schema)
                if (encoding := self._encoding(field)) is not None
            },
            "dictionaries": self.dictionaries,
            "columns": arrow_schema(self.schema).names,
            "folds": self.folds,
            "since": self.since,
        }
        return msgspec.json.encode(plan).decode()

    def _encoding(self, column: pa.Field) -> str | None:
        """Return the encoding that our writer takes; None: plain, or a dictionary."""
        if column.name in self.dictionaries:
            return None
        if pa.types.is_integer(column.type):
            return "delta_binary_packed"
        if pa.types.is_string(column.type):
            return "delta_byte_array"
        return None


def _sleeper(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    absent = pa.array(rng.random(rows) < 0.2)
    nullable = pc.if_else(absent, pa.scalar(None, pa.string()), _words(rng, rows))
    return [_words(rng, rows), _times(rng, rows), _words(rng, rows), nullable]


def _sys(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    millis = pa.array(rng.integers(1_600_000_000_000, 1_800_000_000_000, rows))
    return [_uuids(rng, rows), millis, _texts(rng, rows, 50, 100)]


def _narrow(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    keys = pa.array(rng.integers(-(2**62), 2**62, rows))
    return [keys, _times(rng, rows), pa.array(rng.integers(0, 1000, rows))]


def _wide(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    columns = [_uuids(rng, rows), _times(rng, rows)]
    columns += [pa.array(rng.integers(0, 10 ** (2 + i), rows)) for i in range(6)]
    columns += [pa.array(rng.random(rows) * 10**i) for i in range(6)]
    few = pa.array([f"word-{i:05}" for i in range(1000)])
    columns += [few.take(pa.array(rng.integers(0, 10 * 4**i, rows))) for i in range(4)]
    return columns + [_texts(rng, rows, 10, 40) for _ in range(2)]


def _dup(rng: np.random.Generator, rows: int) -> list[pa.Array]:
    # Ten files have so many rows, each key has about ten of them.
    keys = pa.array(rng.integers(0, max(1, rows * FILES // _DUP_KEYS_FRACTION), rows))
    return [keys, _times(rng, rows), pa.array(rng.integers(0, 1000, rows))]


def _times(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(rng.integers(0, 10**10, rows))


def _words(rng: np.random.Generator, rows: int) -> pa.Array:
    letters = rng.integers(ord("a"), ord("z") + 1, rows * _WORD_LETTERS, dtype=np.uint8)
    return _strings(np.full(rows, _WORD_LETTERS, np.int32), letters)


def _texts(rng: np.random.Generator, rows: int, shortest: int, longest: int) -> pa.Array:
    lengths = rng.integers(shortest, longest + 1, rows, dtype=np.int32)
    places = rng.integers(0, len(_LETTERS), int(lengths.sum()), dtype=np.uint8)
    return _strings(lengths, _LETTERS[places])


def _uuids(rng: np.random.Generator, rows: int) -> pa.Array:
    letters = _HEX[rng.integers(0, len(_HEX), (rows, 36), dtype=np.uint8)]
    letters[:, _DASHES] = ord("-")
    letters[:, 14] = ord("4")
    return _strings(np.full(rows, 36, np.int32), letters)


def _strings(lengths: np.ndarray, letters: np.ndarray) -> pa.Array:
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(letters))
    )


def _two_letters() -> tuple[str, ...]:
    places = (leaf * len(_LETTERS) ** 2 // LEAVES for leaf in range(1, LEAVES))
    return tuple(chr(97 + place // 26) + chr(97 + place % 26) for place in places)


_HEX_POINTS = tuple("123456789abcdef")
SLEEPER = Shape(
    name="sleeper",
    schema=schema_of(
        row_keys={"key": "string"},
        sort_keys={"timestamp": "int64"},
        values={"value": "string", "nullable_value": "string?"},
    ),
    file_rows=1_000_000,
    columns=_sleeper,
    split_points=_two_letters(),
)
SYS = Shape(
    name="sys",
    schema=schema_of(
        row_keys={"key": "string"}, sort_keys={"timestamp": "int64"}, values={"value": "string"}
    ),
    file_rows=500_000,
    columns=_sys,
    split_points=_HEX_POINTS,
)
NARROW = Shape(
    name="narrow",
    schema=schema_of(
        row_keys={"key": "int64"}, sort_keys={"timestamp": "int64"}, values={"value": "int64"}
    ),
    file_rows=1_000_000,
    columns=_narrow,
    split_points=tuple(-(2**62) + leaf * 2**63 // LEAVES for leaf in range(1, LEAVES)),
)
WIDE = Shape(
    name="wide",
    schema=schema_of(
        row_keys={"key": "string"},
        sort_keys={"timestamp": "int64"},
        values={f"i{i}": "int64" for i in range(6)}
        | {f"f{i}": "float64" for i in range(6)}
        | {f"s{i}": "string" for i in range(4)}
        | {f"v{i}": "string" for i in range(2)},
    ),
    file_rows=200_000,
    columns=_wide,
    split_points=_HEX_POINTS,
    dictionaries=("s0", "s1", "s2", "s3"),
)
DUP = Shape(
    name="dup",
    schema=schema_of(row_keys={"key": "int64"}, values={"timestamp": "int64", "value": "int64"}),
    file_rows=1_000_000,
    columns=_dup,
    folds={"timestamp": "max", "value": "sum"},
    since=("timestamp", 2 * 10**9),
)
SHAPES = {shape.name: shape for shape in (SLEEPER, SYS, NARROW, WIDE, DUP)}


def shapes_named(names: Sequence[str]) -> list[Shape]:
    """Return shapes by their names; all of them for none."""
    return [SHAPES[name] for name in names] or list(SHAPES.values())
