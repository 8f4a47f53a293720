"""Reads the changes of a table's rows, one commit after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from lakebed.face.versioned_table import VersionedTable
from lakebed.model.names import CommitId, Micros, TransactionNumber
from lakebed.sorted_files.format.arrow_schema import arrow_schema

if TYPE_CHECKING:
    from lakebed.model.ranges import Range
    from lakebed.model.versions import AsOf
    from lakebed.query.follow_changes import ChangeKind, CommittedChange, Following


class RowChange:
    """The change that one commit made to the rows of a table.

    kind: `rows` were taken in, some went by a `delete`, or all by a `clear`.
    number, at: of its log entry, and log time, microseconds since 1970.
    job: the id of the request.
    rows: how many were taken in or deleted; of ranges as they were counted before.
    ranges: of a delete of ranges of keys, as `delete` and `query` take them: all rows in them went.
        Empty otherwise.
    upto: where a follower stands that is done with this change: an entry may hold several.
    """

    kind: ChangeKind
    number: TransactionNumber
    at: Micros
    job: CommitId
    rows: int
    ranges: list[dict[str, Range]]
    upto: TransactionNumber

    def __init__(
        self, change: CommittedChange, read: Callable[[], Iterator[pa.RecordBatch]]
    ) -> None:
        self.kind = change.kind
        self.number, self.at, self.upto = change.number, change.at, change.upto
        self.job, self.rows, self.ranges = change.job, change.rows, change.by_field
        self._schema = arrow_schema(change.schema)
        self._read = read

    def __repr__(self) -> str:
        return f"<change {self.number}: {self.kind} {self.rows}, job {self.job}>"

    def read(self) -> pa.RecordBatchReader:
        """Return the rows that were taken in, as they were then, or that were deleted, as queries
        gave them before, in key order, as a stream.

        Raises:
            VersionExpiredError: while reading: they were merged since, and what they were in was
                collected.
        """
        return pa.RecordBatchReader.from_batches(self._schema, self._read())


class Follower:
    """Changes that are read under a name. Iterate, then acknowledge: what was not acknowledged
    comes again, here or in another process."""

    def __init__(
        self,
        following: Following[pa.RecordBatch],
        shown: Callable[[CommittedChange], RowChange],
    ) -> None:
        self._following = following
        self._shown = shown

    @property
    def name(self) -> str:
        """Its name."""
        return self._following.name

    @property
    def position(self) -> int:
        """Return the number of the last entry up to which everything is acknowledged."""
        return self._following.position

    def __iter__(self) -> Iterator[RowChange]:
        """Yield the changes that were not acknowledged, up to the newest now."""
        return map(self._shown, self._following)

    def acknowledge(self, change: RowChange) -> None:
        """Be done with a change and all before it.

        Raises:
            ConflictError: another process follows under this name.
            FollowerBehindError: it read nothing for `follower_seconds_max`.
        """
        self._following.acknowledge(change.upto)

    def renew(self) -> None:
        """Say that it is alive, where nothing has changed for long. Raises as `acknowledge`."""
        self._following.renew()


class FollowedTable(VersionedTable):
    """A table whose changes are followed."""

    def changes(self, *, after: AsOf | Literal[0] = 0) -> Iterator[RowChange]:
        """Give what each commit did to the rows, in the order of commits, up to the newest: rows
        that were taken in, deletes, and clears. Compactions and splits change no rows.

        after: only behind this version, as `query` takes it; 0 for all that the log keeps.

        Raises:
            VersionExpiredError: the log is not kept so far back, and the hint says which is.
            InvalidError: the version lies ahead.
        """
        return map(self._shown, self._app.follow.changes(self._opened, self._number(after)))

    def follow(self, name: str, *, after: AsOf | Literal[0] | None = None) -> Follower:
        """Read changes under a name: how far they were acknowledged is kept in the table, and they
        stay readable for `follower_seconds_max`.

        after: where a new follower begins, or one that fell behind; None: at the newest version, or
            where it stands.

        Raises:
            FollowerBehindError: it fell behind. InvalidError: not a name; `after` is given and it
                is there.
            VersionExpiredError: changes that far back are not kept.
            FormatGateError: older releases may still work on this lake.
        """
        from lakebed.query.follow_changes import Following

        follow = self._app.follow
        if after is not None or not follow.is_there(self._opened, name):
            follow.begin(self._opened, name, None if after is None else self._number(after))
        return Follower(Following(follow, self._opened, name), self._shown)

    def drop_follower(self, name: str) -> None:
        """Forget a follower: nothing is kept for it any more. Raises: InvalidError."""
        self._app.follow.drop(self._opened, name)

    def wait(self, seconds: float) -> None:
        """Let time pass before changes are asked for again."""
        self._app.clock.sleep(seconds)

    def _shown(self, change: CommittedChange) -> RowChange:
        return RowChange(change, partial(self._app.follow.rows, self._opened, change))

    def _number(self, after: AsOf | Literal[0]) -> TransactionNumber:
        if type(after) is int and after == 0:
            return TransactionNumber(0)
        return self._app.past.number_of(self._opened, after)
