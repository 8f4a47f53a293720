"""Requests with rows that can be told apart, and their batches: tuples, or Arrow's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lakebed import AgeOff, Latest, Processing, field
from lakebed.backends.memory.row_layout import RowLayout
from lakebed.backends.memory.row_processing import TupleWork
from lakebed.model.names import CommitId, Micros, RequestDigest, digest_of
from lakebed.model.processing import ProcessingPass
from lakebed.model.schema import Schema, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.table_state.state import TableState

Row = tuple[Any, ...]
PROCESSING_EVERY = 4

SCHEMAS = (
    schema_of(row_keys={"key": "int64"}, sort_keys={"at": "int32"}, values={"id": "int64"}),
    schema_of(row_keys={"key": "string"}, values={"id": "int64", "note": "string?"}),
    schema_of(row_keys={"key": "int64", "part": "string"}, values={"id": "int64"}),
)


AGING_SCHEMA = schema_of(row_keys={"key": "int64"}, values={"id": "int64", "born": "int64"})
AGE_SECONDS = 20 * 86_400
AGING = Processing(age_off=AgeOff("born", seconds=AGE_SECONDS, unit="us"))
"""Of worlds whose clocks lie by months: each row tells when it was truly made."""


class Request(msgspec.Struct, frozen=True):
    """What a user asked to ingest. Each row holds an id that no other row of the world has."""

    id: CommitId
    digest: RequestDigest
    batches: tuple[tuple[Row, ...], ...]

    @property
    def rows(self) -> Counter[Row]:
        """All rows."""
        return Counter(row for batch in self.batches for row in batch)


class RowMaker:
    """Makes requests whose keys meet often: some keys are hot, and the hot ones move."""

    def __init__(self, schema: Schema, rng: random.Random, now: Callable[[], Micros]) -> None:
        self._now = now
        self._schema = schema
        self._rng = rng
        self._last = 0
        self._width = rng.choice((3, 30, 300))
        self._is_text = str(schema.row_keys[0].type) == "string"

    def request(self, id_: CommitId, *, rows_max: int = 14) -> Request:
        """Return a request with fresh rows under this id."""
        middle = self._rng.randrange(-self._width, self._width)
        batches = []
        for _ in range(self._rng.choice((1, 1, 2))):
            rows = [self._row(middle) for _ in range(self._rng.randrange(1, rows_max))]
            batches.append(tuple(rows))
        return Request(id_, digest_of(id_.encode(), str(self._last).encode()), tuple(batches))

    def key(self) -> Any:  # noqa: ANN401 - an integer or text, as the schema has it
        """Return some key."""
        number = self._rng.randrange(-self._width, self._width)
        return f"{number + 500:05}" if self._is_text else number

    def key_behind(self, key: Any) -> Any:  # noqa: ANN401 - as `key` gives them
        """Return a key a little greater than another one."""
        more = self._rng.randrange(1, 9)
        return f"{int(key) + more:05}" if self._is_text else key + more

    def _row(self, middle: int) -> Row:
        self._last += 1
        number = middle + self._rng.randrange(5) if self._rng.random() < 0.5 else None
        key = self.key()
        if number is not None:
            key = f"{number + 500:05}" if self._is_text else number
        others = {"at": self._rng.randrange(3), "part": self._rng.choice("abc")}
        others |= {"id": self._last, "note": None, "born": self._now()}
        return (key, *(others[f.name] for f in self._schema.fields[1:]))


class TupleRequest:
    """A request as tuples: what `IngestRows` takes."""

    def __init__(self, schema: Schema, request: Request) -> None:
        self.schema = schema
        self._request = request

    @property
    def digest(self) -> RequestDigest:
        """Stands for the request."""
        return self._request.digest

    def batches(self) -> Iterator[Any]:
        """Yield its rows."""
        for batch in self._request.batches:
            yield list(batch)


class ArrowRequest(TupleRequest):
    """The same as Arrow record batches."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its rows."""
        columns = arrow_schema(self.schema)
        for batch in self._request.batches:
            rows = [dict(zip(columns.names, row, strict=True)) for row in batch]
            yield pa.RecordBatch.from_pylist(rows, schema=columns)


ProcessedRows = Callable[[Counter[Row]], Counter[Row]]


def processing_of(seed: int, schema: Schema) -> Processing | None:
    """Return what the tables of a world do with their rows; of three worlds in four, nothing.

    Sums of ids that no two rows share tell of each row that was lost or came twice.
    """
    if seed % PROCESSING_EVERY != PROCESSING_EVERY - 1:
        return None
    if seed // PROCESSING_EVERY % 2:
        few = field("id").is_in(range(0, 1_000, 7))
        return Processing(filter=~few, latest=Latest("id"))
    functions = {"id": "sum", "note": "max"}
    return Processing(aggregate={f.name: functions[f.name] for f in schema.values})


def processed_rows(state: TableState) -> ProcessedRows:
    """Return what makes of all rows of a table those that its queries give."""
    processing, schema = state.processing(), state.schema()
    assert processing is not None, "just set"
    work = TupleWork(schema, ProcessingPass(processing, Micros(0), "query"))
    key = RowLayout(schema).key

    def processed(rows: Counter[Row]) -> Counter[Row]:
        pairs = sorted((key(row), row) for row in work.selected(rows.elements()))
        return Counter(row for _, row in work.merged(pairs))

    return processed


def rows_asked(batch: Any, schema: Schema) -> Sequence[Row]:  # noqa: ANN401 - tuples or Arrow
    """Return the rows of a batch as they were asked for: fields that came later are null."""
    width = len(schema.fields)
    rows = rows_of(batch)
    assert all(value is None for row in rows for value in row[width:]), "nobody gave it a value"
    return [row[:width] for row in rows]


def rows_of(batch: Any) -> Sequence[Row]:  # noqa: ANN401 - tuples or Arrow
    """Return the rows of a batch of either kind."""
    if isinstance(batch, pa.RecordBatch):
        return [tuple(row.values()) for row in batch.to_pylist()]
    return [tuple(row) for row in batch]
