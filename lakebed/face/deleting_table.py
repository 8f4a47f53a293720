"""Deletes rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow.compute as pc

from lakebed.deletes.requests import Deleted
from lakebed.errors import InvalidError
from lakebed.face.followed_table import FollowedTable
from lakebed.model.names import job_id
from lakebed.model.predicates.language import Predicate
from lakebed.query.conditions import condition_of


class DeletingTable(FollowedTable):
    """A table whose rows may be deleted."""

    def delete(
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
        given = keys is not None or ranges is not None or where is not None
        if given == all:
            raise _refused(given=given)
        ask = partial(condition_of, keys=keys, ranges=ranges, where=where)
        return self._app.delete.run(self._opened, ask, None if job is None else job_id(job))


def _refused(*, given: bool) -> InvalidError:
    if given:
        hint = "leave `all` out, or the conditions"
        return InvalidError("all rows, or those of a condition", hint=hint)
    hint = "give keys, ranges or where; all=True deletes every row"
    return InvalidError("a delete without a condition", hint=hint)
