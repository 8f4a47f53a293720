"""The async twin of `lakebed.face.followed_table`.

Made by `make docs` from `lakebed/face/followed_table.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lakebed.aio.batches import AsyncItems, Batches
from lakebed.aio.calls import Twin
from lakebed.aio.versioned_table import VersionedTable
from lakebed.face.followed_table import FollowedTable as SyncFollowedTable
from lakebed.face.followed_table import Follower as SyncFollower
from lakebed.face.followed_table import RowChange as SyncRowChange
from lakebed.model.names import CommitId, Micros, TransactionNumber

if TYPE_CHECKING:
    from lakebed.model.ranges import Range
    from lakebed.model.versions import AsOf
    from lakebed.query.follow_changes import ChangeKind


class RowChange(Twin):
    """The change that one commit made to the rows of a table.

    kind: `rows` were taken in, some went by a `delete`, or all by a `clear`.
    number, at: of its log entry, and log time, microseconds since 1970.
    job: the id of the request.
    rows: how many were taken in or deleted; of ranges as they were counted before.
    ranges: of a delete of ranges of keys, as `delete` and `query` take them: all rows in them went.
        Empty otherwise.
    upto: where a follower stands that is done with this change: an entry may hold several.
    """

    _sync: SyncRowChange

    @property
    def kind(self) -> ChangeKind:
        return self._sync.kind

    @property
    def number(self) -> TransactionNumber:
        return self._sync.number

    @property
    def at(self) -> Micros:
        return self._sync.at

    @property
    def job(self) -> CommitId:
        return self._sync.job

    @property
    def rows(self) -> int:
        return self._sync.rows

    @property
    def ranges(self) -> list[dict[str, Range]]:
        return self._sync.ranges

    @property
    def upto(self) -> TransactionNumber:
        return self._sync.upto

    def read(self) -> Batches:
        """Return the rows that were taken in, as they were then, or that were deleted, as queries
        gave them before, in key order, as a stream.

        Raises:
            VersionExpiredError: while reading: they were merged since, and what they were in was
                collected.
        """
        return Batches(self._calls, self._sync.read)


class Follower(Twin):
    """Changes that are read under a name. Iterate, then acknowledge: what was not acknowledged
    comes again, here or in another process.
    """

    _sync: SyncFollower

    @property
    def name(self) -> str:
        """Its name."""
        return self._sync.name

    @property
    def position(self) -> int:
        """Return the number of the last entry up to which everything is acknowledged."""
        return self._sync.position

    def __aiter__(self) -> AsyncItems[RowChange]:
        """Yield the changes that were not acknowledged, up to the newest now."""
        return AsyncItems[RowChange](
            self._calls, lambda: (RowChange(self._calls, one) for one in iter(self._sync))
        )

    async def acknowledge(self, change: RowChange) -> None:
        """Be done with a change and all before it.

        Raises:
            ConflictError: another process follows under this name.
            FollowerBehindError: it read nothing for `follower_seconds_max`.
        """
        await self._calls.run(lambda: self._sync.acknowledge(change._sync))

    async def renew(self) -> None:
        """Say that it is alive, where nothing has changed for long. Raises as `acknowledge`."""
        await self._calls.run(self._sync.renew)


class FollowedTable(VersionedTable):
    """A table whose changes are followed."""

    _sync: SyncFollowedTable

    def changes(self, *, after: AsOf | Literal[0] = 0) -> AsyncItems[RowChange]:
        """Give what each commit did to the rows, in the order of commits, up to the newest: rows
        that were taken in, deletes, and clears. Compactions and splits change no rows.

        after: only behind this version, as `query` takes it; 0 for all that the log keeps.

        Raises:
            VersionExpiredError: the log is not kept so far back, and the hint says which is.
            InvalidError: the version lies ahead.
        """
        return AsyncItems[RowChange](
            self._calls,
            lambda: (RowChange(self._calls, one) for one in self._sync.changes(after=after)),
        )

    async def follow(self, name: str, *, after: AsOf | Literal[0] | None = None) -> Follower:
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
        return await self._calls.run(
            lambda: Follower(self._calls, self._sync.follow(name, after=after))
        )

    async def drop_follower(self, name: str) -> None:
        """Forget a follower: nothing is kept for it any more. Raises: InvalidError."""
        await self._calls.run(lambda: self._sync.drop_follower(name))
