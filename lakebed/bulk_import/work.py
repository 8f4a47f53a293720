"""What a bulk import tells its tasks, and what they answer: bytes that a cluster passes on.

Driver and tasks run the same release, so these forms have no format number; nothing stores them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from lakebed import errors
from lakebed.errors import LakebedError
from lakebed.model.names import JobId, Micros, TableId, TransactionNumber
from lakebed.model.processing import (
    Processing,
    checked_processing,
    processing_from_json,
    processing_json,
)
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema, schema_from_json, schema_json
from lakebed.ports.sorted_files import FileWritten
from lakebed.sorted_files.input_files import ExtraColumns, InputFile
from lakebed.sorted_files.stored_runs import StoredRun

AnswerT = TypeVar("AnswerT")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What all tasks of one run must know. columns, processing: as JSON. at: the instant by which
    old rows are left out. points: where leaves end. base: the log number before the first PUT.
    rows_about: a guess, before rows were counted."""

    table: TableId
    job: JobId
    base: TransactionNumber
    columns: str
    processing: str | None
    at: Micros
    points: tuple[bytes, ...]
    extra_columns: ExtraColumns
    value_statistics: bool
    rows_about: int

    def schema(self) -> Schema:
        """Return the table's schema."""
        return schema_from_json(json.loads(self.columns))

    def row_processing(self) -> Processing | None:
        """Return what the table does with its rows."""
        if self.processing is None:
            return None
        return checked_processing(processing_from_json(json.loads(self.processing)), self.schema())


def texts_of(schema: Schema, processing: Processing | None) -> tuple[str, str | None]:
    """Return a schema and a processing as `Job` has them."""
    done = None if processing is None else json.dumps(processing_json(processing, schema))
    return json.dumps(schema_json(schema)), done


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Rows of an input file: of all row groups, or of `[begin, end)`. spans: the bytes of the file
    that it takes to read them; None: all."""

    file: InputFile
    groups: tuple[int, int] | None = None
    spans: tuple[tuple[int, int], ...] | None = None


class SortWork(msgspec.Struct, frozen=True):
    """One task of the first stage: sort these rows, put them as one run."""

    number: int
    pieces: tuple[Piece, ...]


class MergeWork(msgspec.Struct, frozen=True):
    """One task of the second stage: one file of all rows in `region`, which has these leaves'
    regions. job_rows: of the whole job."""

    number: int
    region: KeyRange
    regions: tuple[KeyRange, ...]
    runs: tuple[StoredRun, ...]
    job_rows: int


class RunSorted(msgspec.Struct, frozen=True, tag=True):
    """Answer of the first stage. run: None: there were no rows, or none were left."""

    number: int
    run: StoredRun | None


class FileMerged(msgspec.Struct, frozen=True, tag=True):
    """Answer of the second stage. written: None: processing left no rows."""

    number: int
    written: FileWritten | None


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Answer of a task that no retry can help: the error that it met."""

    kind: str
    message: str
    hint: str | None
    facts: dict[str, str]

    def error(self) -> LakebedError:
        """Return the error, to be raised where the user hears of it."""
        kind: type[LakebedError] = getattr(errors, self.kind)
        error = kind.__new__(kind)
        LakebedError.__init__(error, self.message, hint=self.hint, **self.facts)
        return error


def refused(error: LakebedError) -> Refused:
    """Return an error as an answer."""
    facts = {name: str(value) for name, value in error.facts.items()}
    return Refused(type(error).__name__, error.message, error.hint, facts)


_Answer = RunSorted | FileMerged | Refused
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Answer)


def encode(value: Job | SortWork | MergeWork | _Answer) -> bytes:
    """Return it as bytes."""
    return _encoder.encode(value)


def decode(body: bytes, type_: type[AnswerT]) -> AnswerT:
    """Return what `encode` was given."""
    return msgspec.msgpack.decode(body, type=type_)


def answers_in(
    bodies: Iterable[bytes], type_: type[AnswerT]
) -> tuple[list[AnswerT], LakebedError | None]:
    """Return what tasks answered, and the first error that one of them met."""
    answers, error = [], None
    for body in bodies:
        answer = _decoder.decode(body)
        if isinstance(answer, Refused):
            error = error or answer.error()
        else:
            assert isinstance(answer, type_), f"a task answers its own question, got {answer}"
            answers.append(answer)
    return answers, error
