"""Changes of a table's rows, in the order of commits: what each took in or away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Literal, TypeVar

import msgspec

from lakebed.errors import InvalidError, LogTruncatedError, ObjectMissingError
from lakebed.model.changes.schema_changes import changed
from lakebed.model.files import FilePart, StoredFile
from lakebed.model.names import (
    MICROS_PER_SECOND,
    CommitId,
    Micros,
    TransactionNumber,
)
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING, KeyRange, Range, ranges_by_field
from lakebed.model.schema import Schema, schema_from_json
from lakebed.ports.sorted_files import Selection, SortedFiles
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.conditions import condition_of
from lakebed.query.past_versions import PastVersions
from lakebed.query.run_query import RunQuery
from lakebed.statestore.keep_versions import commit_kept
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.range_deletes import DeleteRanges, RecordDeleted
from lakebed.statestore.log_entries.table_changes import ChangeSchema, Clear, CreateTable
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.log_entries.version_changes import (
    BeginFollowing,
    DropFollower,
    MoveFollower,
    expired,
    require_follower,
)
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import follower_of

BatchT = TypeVar("BatchT")


ChangeKind = Literal["rows", "delete", "clear"]


class CommittedChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change that one commit made to the rows of a table.

    kind: `rows` were taken in, some went by a `delete`, or all by a `clear`.
    number, at: of its log entry, and log time.
    job: the id of the request; a user's, where one was given.
    rows: how many were taken in or deleted.
    upto: the number that a follower has reached when it has done with this change: an entry may
        hold several.
    files, schema: where the rows are, and their fields.
    ranges: whose rows all went; they are in the version before. Empty: rows are in `files`.
    """

    kind: ChangeKind
    number: TransactionNumber
    at: Micros
    job: CommitId
    rows: int
    upto: TransactionNumber
    files: tuple[StoredFile, ...]
    schema: Schema
    ranges: tuple[KeyRange, ...] = ()

    @property
    def by_field(self) -> list[dict[str, Range]]:
        """Return the ranges as ranges of fields, as a user gives them."""
        return self.by_fields_of(self.schema)

    def by_fields_of(self, schema: Schema) -> list[dict[str, Range]]:
        """Return the ranges in the words of a schema: fields may have other names in it."""
        keys = schema.row_keys
        return [one for whole in self.ranges for one in ranges_by_field(keys, whole)]


class FollowChanges(Generic[BatchT]):
    """Gives the changes of tables, and keeps how far followers have read."""

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        logs: TransactionLogs,
        past: PastVersions,
        query: RunQuery[BatchT],
    ) -> None:
        self._files = files
        self._query = query
        self._logs = logs
        self._past = past

    def changes(self, table: OpenTable, after: TransactionNumber) -> Iterator[CommittedChange]:
        """Yield what happened behind an entry, up to the newest. after: 0 for all.

        Raises:
            VersionExpiredError: the log is not kept so far back. InvalidError: it ends earlier.
        """
        with table.head.reading() as state:
            state.require_table()
            last = state.head().number
        if not 0 <= after <= last:
            hint = f"the newest version is {last}"
            raise InvalidError("the version lies ahead", after=after, hint=hint)
        try:
            yield from self._changes(table, after, last)
        except LogTruncatedError:
            with table.head.reading() as state:
                raise expired(state, after) from None

    def _changes(
        self, table: OpenTable, after: TransactionNumber, last: TransactionNumber
    ) -> Iterator[CommittedChange]:
        schema: Schema | None = None
        for number, body in self._logs.open(table.id).read_after(after):
            if number > last:
                return
            entry = decode_entry(body, number)
            found: list[CommittedChange] = []
            for transaction in entry.transactions:
                if schema is None and not isinstance(transaction.changes[0], CreateTable):
                    schema = self._schema_at(table, after)
                schema = _schema_behind(transaction, schema, entry.at)
                found += _changes_of(transaction, number, entry.at, schema)
            before = TransactionNumber(number - 1)
            for change in found[:-1]:
                yield msgspec.structs.replace(change, upto=before)
            yield from found[-1:]

    def _schema_at(self, table: OpenTable, number: TransactionNumber) -> Schema:
        with self._past.reading(table, int(number)) as state:
            return state.schema()

    def rows(self, table: OpenTable, change: CommittedChange) -> Iterator[BatchT]:
        """Yield the rows that a change took in, as they were written, or took away, as queries gave
        them, in key order.

        Raises:
            VersionExpiredError: they were merged away, and what they were in was collected.
        """
        if change.ranges:
            yield from self._rows_before(table, change)
            return
        parts = [
            FilePart(file, file_path(table.id, file.name), EVERYTHING, change.rows)
            for file in change.files
        ]
        try:
            if parts:
                yield from self._files.merge(change.schema, parts)
        except ObjectMissingError:
            with table.head.reading() as state:
                raise expired(state, change.number) from None

    def _rows_before(self, table: OpenTable, change: CommittedChange) -> Iterator[BatchT]:
        """Yield the rows that some ranges had in the version before."""

        def ask(schema: Schema) -> Selection:
            return condition_of(schema, ranges=change.by_fields_of(schema))

        plan = self._query.plan(table, ask, as_of=change.number - 1)
        yield from self._query.read(table, msgspec.structs.replace(plan, scan_bytes_max=0))

    # followers

    def begin(
        self, table: OpenTable, name: str, after: TransactionNumber | None
    ) -> TransactionNumber:
        """Let a follower begin behind an entry; None: behind the newest. Returns its position.

        Raises:
            InvalidError: the follower is there, or it is no name. VersionExpiredError: changes that
                far back are not kept. FormatGateError: older releases may still work on the lake.
        """
        number = commit_kept(table, BeginFollowing(name, after, self._until(table)))
        return number if after is None else after

    def position(self, table: OpenTable, name: str) -> TransactionNumber:
        """Return up to which entry a follower has read.

        Raises:
            InvalidError: there is none of this name. FollowerBehindError: it fell behind.
        """
        with table.head.reading() as state:
            return require_follower(state, name).number

    def is_there(self, table: OpenTable, name: str) -> bool:
        """Return whether there is such a follower, one that fell behind too."""
        with table.head.reading() as state:
            return follower_of(state, name) is not None

    def acknowledge(
        self, table: OpenTable, name: str, upto: TransactionNumber, *, since: TransactionNumber
    ) -> None:
        """Let a follower be done with all up to an entry. since: where it was.

        Raises:
            ConflictError: another process moved it. FollowerBehindError: it fell behind.
        """
        commit_kept(table, MoveFollower(name, since, upto, self._until(table)))

    def newest_to_renew(self, table: OpenTable, name: str) -> TransactionNumber | None:
        """Return the newest entry, if less than three quarters of a follower's time are left."""
        now = table.head.log_time()
        with table.head.reading() as state:
            found = require_follower(state, name)
            whole = state.settings().follower_seconds_max * MICROS_PER_SECOND
            return state.head().number if found.until - now < whole * 3 // 4 else None

    def drop(self, table: OpenTable, name: str) -> None:
        """Forget a follower. Raises: InvalidError: there is none of this name."""
        commit_kept(table, DropFollower(name))

    def _until(self, table: OpenTable) -> Micros:
        seconds = table.settings().follower_seconds_max
        return Micros(table.head.log_time() + seconds * MICROS_PER_SECOND)


class Following(Generic[BatchT]):
    """One process that follows a table under a name. It reads what it has not acknowledged."""

    def __init__(self, changes: FollowChanges[BatchT], table: OpenTable, name: str) -> None:
        self._changes = changes
        self._table = table
        self.name = name
        self.position = changes.position(table, name)
        self._given: TransactionNumber | None = None

    def __iter__(self) -> Iterator[CommittedChange]:
        """Yield the changes that were not acknowledged, up to the newest now."""
        for change in self._changes.changes(self._table, self.position):
            self._given = change.number
            yield change

    def acknowledge(self, upto: TransactionNumber) -> None:
        """Be done with all up to an entry, as changes name it: they do not come again.

        Raises:
            ConflictError: another process follows under this name.
            FollowerBehindError: it fell behind.
        """
        if upto > self.position:
            self._move(upto)

    def renew(self) -> None:
        """Say that this follower is alive, where it has read all there is: else it falls behind on
        a table whose rows do not change. An entry for a quarter of `follower_seconds_max`.

        Raises:
            As `acknowledge`.
        """
        if self._given is not None and self._given > self.position:
            return  # what was given and not acknowledged comes again
        newest = self._changes.newest_to_renew(self._table, self.name)
        if newest is not None and next(iter(self), None) is None:
            self._move(newest)

    def _move(self, upto: TransactionNumber) -> None:
        self._changes.acknowledge(self._table, self.name, upto, since=self.position)
        self.position = upto


def _schema_behind(transaction: Transaction, schema: Schema | None, at: Micros) -> Schema:
    for change in transaction.changes:
        if isinstance(change, CreateTable):
            schema = schema_from_json(dict(change.schema))
        elif isinstance(change, ChangeSchema):
            assert schema is not None, "a table is created first"
            schema = changed(schema, change.changes, at=at)
    assert schema is not None, "a table is created first"
    return schema


def _changes_of(
    transaction: Transaction, number: TransactionNumber, at: Micros, schema: Schema
) -> Iterator[CommittedChange]:
    """Yield what a commit did to rows; all of them end with its entry."""
    for change in transaction.changes:
        files: tuple[StoredFile, ...] = ()
        ranges: tuple[KeyRange, ...] = ()
        rows = 0
        match change:
            case AddFiles() if change.files:
                kind: ChangeKind = "rows"
                files = tuple({r.file.name: r.file for r in change.files}.values())
                rows = sum(reference.rows for reference in change.files)
            case DeleteRanges():
                kind, ranges, rows = "delete", change.key_ranges, change.rows
            case RecordDeleted():
                kind, files, rows = "delete", (change.file,), change.rows
            case Clear():
                kind = "clear"
            case _:
                continue
        yield CommittedChange(
            kind=kind,
            number=number,
            at=at,
            job=transaction.id,
            rows=rows,
            upto=number,
            files=files,
            schema=schema,
            ranges=ranges,
        )
