"""Finds by their ids which commits are in the log: so sending twice is the same as sending once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from lakebed.errors import JobIdReusedError
from lakebed.model.names import CommitId, RequestDigest, TransactionNumber

IDS_AT_ONCE_MAX = 1000


class Landed(msgspec.Struct, frozen=True):
    """The state's record of some commits: by id, the entry and the digest of the request."""

    commits: dict[CommitId, tuple[TransactionNumber, RequestDigest]]

    def number_of(self, id_: CommitId, digest: RequestDigest) -> TransactionNumber | None:
        """Return the entry in which a commit landed (H5).

        Raises:
            JobIdReusedError: the id is known for another request.
        """
        number, known = self.commits.get(id_, (None, digest))
        if known != digest:
            hint = "choose a new id for a new request, for instance with the day in it"
            raise JobIdReusedError("this id was used for another request", id=id_, hint=hint)
        return number


def landed_of(connection: sqlite3.Connection, ids: Sequence[CommitId]) -> Landed:
    """Look commits up, a thousand with one statement: a group's pace is that of its statements."""
    found: dict[CommitId, tuple[TransactionNumber, RequestDigest]] = {}
    for start in range(0, len(ids), IDS_AT_ONCE_MAX):
        some = ids[start : start + IDS_AT_ONCE_MAX]
        marks = ", ".join("?" * len(some))
        rows = connection.execute(
            "SELECT id, number, digest FROM commits"  # noqa: S608 - question marks only
            f" WHERE id IN ({marks})",
            some,
        )
        found.update((id_, (number, digest)) for id_, number, digest in rows)
    return Landed(found)
