"""Looks at each entry as it lands: a full replay of one table, and what must be true of it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from lakebed.errors import LakebedError
from lakebed.model.files import StoredFile
from lakebed.model.keys import encode_key
from lakebed.model.names import (
    MICROS_PER_SECOND,
    RUN_BYTES,
    SEQUENCE_BYTES,
    CommitId,
    FileName,
    JobId,
    Micros,
    RequestDigest,
    TableId,
    TransactionNumber,
    entry_checksum,
)
from lakebed.model.partitions import PartitionTree
from lakebed.model.paths import file_path
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectFacts
from lakebed.statestore.log_clock import LEAP_MAX
from lakebed.statestore.log_entries.codec import Entry, decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, ReplaceFiles
from lakebed.statestore.log_entries.range_deletes import DeleteRanges
from lakebed.statestore.log_entries.table_changes import (
    Clear,
    CreateTable,
    DropTable,
    SetProcessing,
    Split,
)
from lakebed.statestore.log_entries.transactions import (
    Change,
    Transaction,
    finish_entry,
    new_files,
)
from lakebed.statestore.table_state.kept_versions import kept_versions
from lakebed.statestore.table_state.state import Moment, TableState
from tests.simulation.new_state import new_state
from tests.simulation.rows import ProcessedRows, Request, Row, processed_rows
from tests.simulation.stored_rows import StoredRows
from tests.simulation.violation import (
    CLAIMS,
    DELAY,
    EXISTS,
    KEPT,
    LANDED_ONCE,
    NO_GAP,
    REPLAY,
    ROWS,
    TILES,
    TIME,
    Violation,
)

CLOCK_SLACK = Micros(601 * MICROS_PER_SECOND)
"""A machine's clock may be ten minutes ahead of the store's before it is refused."""

Look = Callable[[str], ObjectFacts | None]
RowsGone = Callable[[Counter[Row]], Counter[Row]]
"""Gives the rows that are left of some."""


class Landing(msgspec.Struct, frozen=True):
    """A commit in the log. at: true time. runs: of its job, which wrote its files."""

    number: TransactionNumber
    at: Micros
    digest: RequestDigest
    user: bool
    runs: frozenset[str]


def _runs_of(transaction: Transaction) -> frozenset[str]:
    """Return which runs wrote the rows that it adds, as the names of its files say."""
    added = [c.files for c in transaction.changes if isinstance(c, AddFiles)]
    names = [r.file.name for files in added for r in files]
    return frozenset(n[-RUN_BYTES - SEQUENCE_BYTES : -SEQUENCE_BYTES].hex() for n in names)


class Auditor:
    """One table as its log says. requests: by digest. look: at the objects that truly exist."""

    def __init__(
        self, table: TableId, clock: Clock, requests: Mapping[RequestDigest, Request], look: Look
    ) -> None:
        self.table = table
        self.bodies: list[bytes] = []
        self.state = new_state()
        self.landings: dict[CommitId, list[Landing]] = {}
        self.cleared_at: list[TransactionNumber] = []
        self._clock = clock
        self._requests = requests
        self._look = look
        self._by_digest: dict[RequestDigest, list[Landing]] = {}
        self._claimed: dict[JobId, set[FileName]] = {}
        self._rows: list[tuple[TransactionNumber, Request | RowsGone]] = []
        self._processed: ProcessedRows | None = None
        self._garbage_since: dict[FileName, Micros] = {}
        self._claimed_at: dict[JobId, TransactionNumber] = {}
        self.wanted_gone: list[Callable[[Row], bool]] = []
        """Which rows were asked to be deleted so far, by values or many keys."""
        self.stored: StoredRows | None = None
        self.deleted: dict[tuple[TransactionNumber, CommitId], Counter[Row] | None] = {}
        """What deletes took away, by entry and commit; None: not known, processing changes rows."""
        self._commit, self._base = CommitId(""), TransactionNumber(0)

    @property
    def number(self) -> TransactionNumber:
        """The newest entry."""
        return TransactionNumber(len(self.bodies))

    def rows_at(self, number: TransactionNumber) -> Counter[Row]:
        """Return the rows of a version: of all requests that had landed since the last clear, but
        for those that were deleted since they did."""
        rows = self.given_at(number)
        return rows if self._processed is None else self._processed(rows)

    def given_at(self, number: TransactionNumber) -> Counter[Row]:
        """Return the rows of a version as they were given, whatever becomes of equal keys."""
        since = max((n for n in self.cleared_at if n <= number), default=0)
        rows: Counter[Row] = Counter()
        for landed, what in self._rows:
            if since < landed <= number:
                rows = rows + what.rows if isinstance(what, Request) else what(rows)
        return rows

    def rows_asked(self, digest: RequestDigest) -> Counter[Row] | None:
        """Return the rows of a request; None: processing may have changed them."""
        return self._requests[digest].rows if self._processed is None else None

    def landings_of(self, digest: RequestDigest) -> list[Landing]:
        """Return where a user's request landed."""
        return self._by_digest.get(digest, [])

    def landed(self, number: TransactionNumber, body: bytes) -> None:
        """Look at an entry that was just written."""
        if number != self.number + 1:
            raise Violation(NO_GAP, f"entry {number} was written after entry {self.number}")
        self.bodies.append(body)
        entry = decode_entry(body, number)
        before = self.state.head().at
        if not before <= entry.at <= self._clock.now() + CLOCK_SLACK:
            raise Violation(TIME, f"entry {number} is at {entry.at}, the one before at {before}")
        moment = Moment(number, entry.at)
        with _replaying(number):
            for transaction in entry.transactions:
                self._note(transaction, moment)
                self._commit, self._base = transaction.id, transaction.base
                for change in transaction.changes:
                    self._apply(change, moment)
                for position in transaction.positions:
                    position.apply(self.state, moment)
                transaction.remember(self.state, moment)
            finish_entry(self.state, moment, entry_checksum(body))
        for garbage in self.state.garbage():
            self._garbage_since.setdefault(garbage.file, self._clock.now())

    def deleting(self, file: FileName) -> None:
        """Look at an object that is about to be deleted."""
        head = self.state.head()
        if head.dropped:
            return
        if self.state.references_of(file):
            raise Violation(EXISTS, f"file {file.hex()} is deleted and referenced")
        now = Micros(self._clock.now() + CLOCK_SLACK)
        delay = self.state.settings().garbage_seconds_min * MICROS_PER_SECOND
        garbage = {g.file: g for g in self.state.garbage()}.get(file)
        if garbage is None:
            return
        since = self._garbage_since[file]
        young = since + delay > now + LEAP_MAX
        # A leap makes it younger than it is: who found it due before may be about to delete it.
        early = garbage.at + delay > now and since + delay > self._clock.now()
        if early or young:
            raise Violation(DELAY, f"file {file.hex()} is deleted before its delay is over")
        if kept_versions(self.state, now=now).need(file, garbage.number):
            raise Violation(KEPT, f"file {file.hex()} is deleted, and a version needs it")

    def _note(self, transaction: Transaction, moment: Moment) -> None:
        landings = self.landings.setdefault(transaction.id, [])
        kept = self.state.settings().job_id_seconds_min if moment.number > 1 else 0
        again = self.landings_of(transaction.digest) if transaction.user else []
        for other in (*landings, *again):
            old = self._clock.now() - other.at > kept * MICROS_PER_SECOND - LEAP_MAX
            if not (transaction.user and other.user and old):
                story = f"{transaction.id} landed in {other.number} and in {moment.number}"
                raise Violation(LANDED_ONCE, story)
        landing = Landing(
            moment.number,
            self._clock.now(),
            transaction.digest,
            user=transaction.user,
            runs=_runs_of(transaction),
        )
        landings.append(landing)
        if transaction.user:
            self._by_digest.setdefault(transaction.digest, []).append(landing)
            self._rows.append((moment.number, self._requests[transaction.digest]))

    def _apply(self, change: Change, moment: Moment) -> None:
        claims = dict(self._claimed)
        if isinstance(change, ClaimFiles):
            free = {r.file.name for r, job in self.state.references(change.partition) if not job}
            if not free.issuperset(change.inputs):
                raise Violation(CLAIMS, f"job {change.job} claims what is not free")
            claims[change.job] = set(change.inputs)
        if isinstance(change, ReplaceFiles) and claims.get(change.job) != set(change.inputs):
            raise Violation(CLAIMS, f"job {change.job} replaces what it does not hold")
        self._note_rewritten(change, moment)
        change.apply(self.state, moment)
        if isinstance(change, Clear | DropTable):
            claims = {}
            self.cleared_at.append(moment.number)
        if claims or self._claimed:
            self._claimed = self._claims()
        if any(claims[job] != files for job, files in self._claimed.items()):
            raise Violation(CLAIMS, f"entry {moment.number} changed the claims of another job")
        if isinstance(change, DeleteRanges):
            self._note_deleted(change, moment)
            fields, ranges = self.state.schema().row_keys, change.key_ranges
            self._rows.append((moment.number, partial(_without, fields, ranges)))
        if isinstance(change, CreateTable | Split | Clear | DeleteRanges):
            self._check_tiles(moment.number)
        if isinstance(change, SetProcessing):
            self._processed = processed_rows(self.state)
        self._check_exist(new_files(change))

    def _note_rewritten(self, change: Change, moment: Moment) -> None:
        """Write down what a job takes away, before it does: rows that users want gone, alone. Where
        rows become one, all that were given with their keys when the job began go with them."""
        if isinstance(change, ClaimFiles):
            self._claimed_at[change.job] = self._base
        if not isinstance(change, ReplaceFiles) or not self.wanted_gone or self.stored is None:
            return
        gone = self.stored.taken_away(self.state, change)
        if not all(any(one(row) for one in self.wanted_gone) for row in gone):
            raise Violation(ROWS, f"job {change.job} took rows away: {dict(gone)}")
        if gone:
            self._deleted(moment.number, None if self._processed else gone)
        if gone and self._processed is not None:
            width = len(self.state.schema().key_fields)
            keys = {row[:width] for row in gone}
            given = self.given_at(self._claimed_at[change.job])
            gone = Counter({row: n for row, n in given.items() if row[:width] in keys})
        if gone:
            self._rows.append((moment.number, lambda rows: rows - gone))

    def _note_deleted(self, change: DeleteRanges, moment: Moment) -> None:
        """Write down what a delete of ranges takes away, before it does. What else the same entry
        brought is not part of the version before."""
        before = self.given_at(TransactionNumber(moment.number - 1))
        left = _without(self.state.schema().row_keys, change.key_ranges, before)
        self._deleted(moment.number, None if self._processed else before - left)

    def _deleted(self, number: TransactionNumber, rows: Counter[Row] | None) -> None:
        self.deleted[number, self._commit] = rows

    def _claims(self) -> dict[JobId, set[FileName]]:
        rows = self.state.connection.execute(
            "SELECT jobs.id, file FROM jobs LEFT JOIN file_references ON job = key"
        )
        claims: dict[JobId, set[FileName]] = {}
        for job, file in rows:
            claims.setdefault(job, set()).update({file} - {None})
        return claims

    def _check_tiles(self, number: int) -> None:
        """Leaves of the first key field follow one another, from below every key to above."""
        with _as_violation(TILES, number):
            tree: PartitionTree = self.state.tree()
            end: bytes | None = b""
            for leaf in tree.leaves():
                key_range = tree.key_range(leaf)
                if key_range.min != end or key_range.is_empty:
                    raise Violation(
                        TILES, f"leaf {leaf} begins at {key_range.min!r}, not at {end!r}"
                    )
                end = key_range.max
            if end is not None:
                raise Violation(TILES, f"no leaf holds keys from {end!r} on")

    def _check_exist(self, files: Iterable[StoredFile]) -> None:
        for file in files:
            found = self._look(file_path(self.table, file.name))
            if found is None or (found.size, found.checksum) != (file.size, file.checksum):
                raise Violation(EXISTS, f"{file.name.hex()} was committed and is not there")

    def replayed(self, state: TableState) -> None:
        """Bring a state of this table to the newest entry."""
        for number in range(state.head().number + 1, self.number + 1):
            body = self.bodies[number - 1]
            entry: Entry = decode_entry(body, number)
            moment = Moment(TransactionNumber(number), entry.at)
            for transaction in entry.transactions:
                transaction.apply(state, moment)
            finish_entry(state, moment, entry_checksum(body))

    def close(self) -> None:
        """Forget the state."""
        self.state.connection.close()


def _without(
    fields: Sequence[Field], ranges: Sequence[KeyRange], rows: Counter[Row]
) -> Counter[Row]:
    """Return the rows whose row keys lie in none of some ranges."""
    keys = {row: encode_key(fields, row[: len(fields)]) for row in rows}
    gone = [row for row, key in keys.items() if any(r.contains(key) for r in ranges)]
    return rows - Counter({row: rows[row] for row in gone})


@contextmanager
def _replaying(number: int) -> Iterator[None]:
    with _as_violation(REPLAY, number):
        yield


@contextmanager
def _as_violation(checker: str, number: int) -> Iterator[None]:
    """Whatever goes wrong while an entry is applied is a broken promise: `apply` never refuses."""
    try:
        yield
    except Violation:
        raise
    except (AssertionError, LakebedError, LookupError, ArithmeticError, sqlite3.Error) as error:
        raise Violation(checker, f"entry {number}: {error!r}") from error
