"""Encodes what a bulk import sends to its tasks, and what they answer: bytes that a cluster passes
on.

Driver and tasks run the same release, so these forms have no format number; nothing stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from lakebed import errors
from lakebed.errors import LakebedError
from lakebed.model.names import JobId, Micros, RequestDigest, TableId, TransactionNumber
from lakebed.model.ranges import KeyRange
from lakebed.model.table_text import TableText
from lakebed.ports.sorted_files import FileWritten
from lakebed.sorted_files.sorting.stored_runs import StoredRun
from lakebed.statestore.table_state.leaves import Leaves
from lakebed.tasks.user_jobs import JobRun
from lakebed.user_files.input_files import ExtraColumns, InputFile

AnswerT = TypeVar("AnswerT")


class Cluster(Protocol):
    """Runs tasks, each at least once, wherever it likes, and gives one answer of each.

    An attempt may be repeated, run twice at once, or be killed; whose answer is given, is whole.
    """

    @property
    def tasks_at_once(self) -> int:
        """Return about how many tasks may run at the same time."""
        ...

    def sort(self, job: bytes, works: Sequence[bytes]) -> Iterable[bytes]:
        """Return what `DoTask.sort` answers for each, in any order.

        Raises:
            UnavailableError: the cluster gave the job up.
        """
        ...

    def merge(self, job: bytes, works: Sequence[bytes]) -> Iterable[bytes]:
        """Return what `DoTask.merge` answers for each, in any order. Raises: as `sort`."""
        ...


class ImportJob(msgspec.Struct, frozen=True, kw_only=True):
    """The description of an import that all tasks of one run share.

    at: the instant by which old rows are left out.
    points: where leaves end.
    base: the log number before the first PUT.
    rows_about: a guess, before rows were counted.
    """

    table: TableId
    job: JobId
    base: TransactionNumber
    table_text: TableText
    at: Micros
    points: tuple[bytes, ...]
    extra_columns: ExtraColumns
    value_statistics: bool
    rows_about: int


class BegunImport(msgspec.Struct, frozen=True):
    """A job whose first stage its caller does. It may be ended by another process.

    job: what the tasks are given.
    leaves: of the state that `job` was made from.
    """

    run: JobRun
    digest: RequestDigest
    job: ImportJob
    leaves: Leaves


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Rows of an input file: of all row groups, or of `[begin, end)`.

    spans: the bytes of the file that it takes to read them; None: all.
    """

    file: InputFile
    row_groups: tuple[int, int] | None = None
    spans: tuple[tuple[int, int], ...] | None = None


class SortWork(msgspec.Struct, frozen=True):
    """One task of the first stage: sort these rows, put them as one run."""

    number: int
    pieces: tuple[Piece, ...]


class MergeWork(msgspec.Struct, frozen=True):
    """One task of the second stage: one file of all rows in `key_range`, which has these leaves'
    key ranges.

    job_rows: of the whole job.
    """

    number: int
    key_range: KeyRange
    key_ranges: tuple[KeyRange, ...]
    sorted_runs: tuple[StoredRun, ...]
    job_rows: int


class RunSorted(msgspec.Struct, frozen=True, tag=True):
    """Answer of the first stage.

    sorted_run: None: there were no rows, or none were left.
    read: rows of the input.
    filtered: those that filter or age-off left out.
    """

    number: int
    sorted_run: StoredRun | None
    read: int = 0
    filtered: int = 0


class FileMerged(msgspec.Struct, frozen=True, tag=True):
    """Answer of the second stage.

    written: None: processing left no rows.
    """

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


def encode(value: ImportJob | BegunImport | SortWork | MergeWork | _Answer) -> bytes:
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
            if not isinstance(answer, type_):
                problem = f"a task answers its own question, got {answer}"
                raise AssertionError(problem)  # noqa: TRY004 - a bug, of no caller's types
            answers.append(answer)
    return answers, error


def check_numbers(numbers: Sequence[int], tasks: int | None) -> None:
    """Assert that each task answered once. tasks: how many there were; None: those that had
    rows."""
    wanted = sorted(set(numbers)) if tasks is None else list(range(tasks))
    if sorted(numbers) != wanted:
        raise AssertionError("each task answers once")
