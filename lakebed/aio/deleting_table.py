"""The async twin of `lakebed.face.deleting_table`.

Made by `make docs` from `lakebed/face/deleting_table.py`; change it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from lakebed.aio.followed_table import FollowedTable
from lakebed.deletes.requests import Deleted
from lakebed.face.deleting_table import DeletingTable as SyncDeletingTable
from lakebed.model.predicates.language import Predicate


class DeletingTable(FollowedTable):
    """A table whose rows may be deleted."""

    _sync: SyncDeletingTable

    async def delete(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        where: Predicate | pc.Expression | str | None = None,
        all: bool = False,
        job: str | None = None,
    ) -> Deleted:
        """Delete the rows that `query` gives with the same arguments. Returns how many went.

        Few ranges of whole keys, also those that `where` says, go at once, by one entry of the log.
        All else goes leaf by leaf:
        files that hold such rows are written again without them. Rows that are committed while this
        works may stay, and so do those of an ingest that commits later. In files, deleted rows stay
        until compactions have merged them away and the old files were collected.

        keys: exact row keys, or their first values.
        ranges: by key field, as `query` takes them.
        where: only rows that it keeps.
        all: every row; nothing else can be given then.
        job: a name for this request; the same request under the same name is done once, for
            `job_id_seconds_min`.

        Raises:
            InvalidError: no condition and not `all`, or one that cannot be; nothing was deleted.
            FormatGateError: older releases may still work on the lake; nothing was deleted.
            TableBusyError: compactions hold files for too long; call again: what is gone stays so.
            ConflictError, UnavailableError: call again. UnknownOutcomeError: call again.
        """
        return await self._calls.run(
            lambda: self._sync.delete(keys=keys, ranges=ranges, where=where, all=all, job=job)
        )
