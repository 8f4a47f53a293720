"""A landing table against its log: what commits say that they took, and the rows that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import LogTruncatedError
from lakebed.model.feeds.positions import decode_position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog
from lakebed.query.conditions import condition_of
from lakebed.query.run_query import RunQuery
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.feed_changes import Count, RecordGap
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable

FINDINGS_MAX = 1_000

Problem = Literal["not-taken", "rows-missing", "rows-unexpected", "row-twice"]


class TakenRange(msgspec.Struct, frozen=True, kw_only=True):
    """The range that a log entry took of a source split.

    number, at: of the entry.
    begin, end: positions; the end lies outside.
    is_gap: the source had no longer what lies between.
    """

    number: TransactionNumber
    at: Micros
    source_split: str
    begin: int
    end: int
    stored: int
    is_gap: bool


class LandingFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not fit.

    problem: `not-taken`: no commit took these positions, and no gap says why; `rows-missing` and
        `rows-unexpected`: there are fewer or more rows than were counted; `row-twice`.
    rows, counted: that are there, and that commits say.
    """

    problem: Problem
    source_split: str
    begin: int
    end: int
    rows: int = 0
    counted: int = 0


def taken_ranges(
    log: TransactionLog, connection: ConnectionId
) -> tuple[list[TakenRange], TransactionNumber]:
    """Return what each entry took since the table was cleared last, as far back as the log goes,
    and the oldest entry.

    Raises:
        CorruptError, NewerFormatError: an entry cannot be read.
    """
    oldest = _oldest(log)
    found: list[TakenRange] = []
    for number, body in log.read_after(TransactionNumber(oldest - 1)):
        entry = decode_entry(body, number)
        for one in entry.transactions:
            if any(isinstance(change, Clear) for change in one.changes):
                found.clear()
            found += _taken(one, connection, number, entry.at)
    return found, oldest


def ranges_taken_by(
    body: bytes, number: TransactionNumber, connection: ConnectionId
) -> Iterator[TakenRange]:
    """Yield what an entry took. Raises: CorruptError, NewerFormatError: it cannot be read."""
    entry = decode_entry(body, number)
    for one in entry.transactions:
        yield from _taken(one, connection, number, entry.at)


def verified(
    query: RunQuery[pa.RecordBatch],
    table: OpenTable,
    taken: list[TakenRange],
    *,
    is_whole: bool,
) -> list[LandingFinding]:
    """Return what does not fit, at most a thousand findings. Rows behind the last range are not
    judged: a feed may have gone on meanwhile.

    is_whole: whether the ranges go back to the first one; else rows before them are not judged.
    """
    splits = {name: _Split(name, of) for name, of in _by_split(taken).items()}
    condition = condition_of(table.schema, columns=["source_split", "position"])
    for batch in query.run(table, condition):
        names = batch["source_split"].dictionary_encode()
        indices, positions = names.indices.to_numpy(), batch["position"].to_numpy()
        for index, name in enumerate(names.dictionary.to_pylist()):  # bounded: source splits
            if name in splits:
                splits[name].see(positions[indices == index])
    findings = [one for split in splits.values() for one in split.findings(is_whole=is_whole)]
    return findings[:FINDINGS_MAX]


class _Split:
    """A source split: ranges that touch no other, and the rows that were counted in each."""

    def __init__(self, name: str, taken: list[TakenRange]) -> None:
        self._name = name
        self._not_taken: list[LandingFinding] = []
        self._ends: list[list[int]] = []  # begin, end, counted
        for one in sorted(taken, key=lambda one: (one.begin, one.end)):
            last = self._ends[-1] if self._ends else None
            if last is not None and one.begin < last[1]:  # taken again after a reset
                last[1], last[2] = max(last[1], one.end), last[2] + one.stored
                continue
            if last is not None and one.begin > last[1]:
                self._not_taken.append(self._finding("not-taken", last[1], one.begin))
            self._ends.append([one.begin, one.end, one.stored])
        self._begins = np.array([begin for begin, _, _ in self._ends], np.int64)
        self._rows = np.zeros(len(self._ends), np.int64)
        self._before = self._first = 0
        self._last: int | None = None
        self._twice: list[int] = []

    def see(self, positions: npt.NDArray[np.int64]) -> None:
        """Take in positions of rows, in order."""
        whole = positions if self._last is None else np.append([self._last], positions)
        again = whole[1:][whole[1:] == whole[:-1]]
        self._twice += again[: FINDINGS_MAX - len(self._twice)].tolist()
        self._last = int(positions[-1])
        judged = positions[positions < self._ends[-1][1]]
        at = np.searchsorted(self._begins, judged, side="right") - 1
        self._before += int((at < 0).sum())
        if (at < 0).any() and not self._first:
            self._first = int(judged[0])
        self._rows += np.bincount(at[at >= 0], minlength=len(self._rows))

    def findings(self, *, is_whole: bool) -> Iterator[LandingFinding]:
        """Yield what does not fit."""
        yield from self._not_taken
        if self._before and is_whole:
            end = int(self._begins[0])
            yield self._finding("rows-unexpected", self._first, end, self._before)
        for (begin, end, counted), rows in zip(self._ends, self._rows.tolist(), strict=True):
            if rows != counted:
                problem: Problem = "rows-missing" if rows < counted else "rows-unexpected"
                yield self._finding(problem, begin, end, rows, counted)
        for position in self._twice:
            yield self._finding("row-twice", position, position + 1)

    def _finding(
        self, problem: Problem, begin: int, end: int, rows: int = 0, counted: int = 0
    ) -> LandingFinding:
        return LandingFinding(
            problem=problem,
            source_split=self._name,
            begin=begin,
            end=end,
            rows=rows,
            counted=counted,
        )


def _by_split(taken: list[TakenRange]) -> dict[str, list[TakenRange]]:
    found: dict[str, list[TakenRange]] = {}
    for one in taken:
        found.setdefault(one.source_split, []).append(one)
    return found


def _taken(
    one: Transaction, connection: ConnectionId, number: TransactionNumber, at: Micros
) -> Iterator[TakenRange]:
    tallies: dict[str, Tally] = {}
    gaps: set[str] = set()
    for change in one.changes:
        if isinstance(change, Count) and change.connection == connection:
            tallies[change.source_split] = change.tally
        if isinstance(change, RecordGap) and change.connection == connection:
            gaps.add(change.source_split)
    prefix = f"{connection}/"
    for move in one.positions:
        split = move.name.removeprefix(prefix)
        if not move.name.startswith(prefix) or split not in tallies.keys() | gaps:
            continue
        begin = 0 if move.expected is None else decode_position(move.expected).next
        end = decode_position(move.value).next
        if isinstance(begin, int) and isinstance(end, int):
            yield TakenRange(
                number=number,
                at=at,
                source_split=split,
                begin=begin,
                end=end,
                stored=tallies.get(split, Tally()).stored,
                is_gap=split in gaps,
            )


def _oldest(log: TransactionLog) -> TransactionNumber:
    try:
        next(iter(log.read_after(TransactionNumber(0))), None)
    except LogTruncatedError as error:
        return TransactionNumber(error.oldest)
    return TransactionNumber(1)
