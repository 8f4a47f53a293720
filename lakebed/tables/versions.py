"""Gives versions of a table names: tags."""

from __future__ import annotations

import msgspec

from lakebed.model.names import Micros, TransactionNumber
from lakebed.statestore.keep_versions import commit_kept
from lakebed.statestore.log_entries.version_changes import DropTag, PutTag
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import tag_of, tags_of


class TaggedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a table that has a name.

    number: of the log entry that made it.
    tagged_at: log time of the entry that made the tag, microseconds since 1970.
    """

    name: str
    number: TransactionNumber
    tagged_at: Micros


def put_tag(table: OpenTable, name: str, number: TransactionNumber | None) -> TaggedVersion:
    """Give a version a name, so that it stays. number: None for the newest.

    Raises:
        TagExistsError: the name is taken. InvalidError: it is none, or the version lies ahead.
        VersionExpiredError: the version is not kept any more. FormatGateError: older releases may
            still work on the lake. Nothing was changed.
    """
    committed = commit_kept(table, PutTag(name, number))
    with table.head.reading() as state:
        found = tag_of(state, name)
        at = state.head().at if found is None else found.at  # it may have been dropped meanwhile
    return TaggedVersion(name=name, number=number or committed, tagged_at=at)


def drop_tag(table: OpenTable, name: str) -> None:
    """Let a version go. Raises: InvalidError: there is no such tag."""
    commit_kept(table, DropTag(name))


def tags(table: OpenTable) -> list[TaggedVersion]:
    """Return all tags, by name."""
    with table.head.reading() as state:
        state.require_table()
        found = tags_of(state)
    return [TaggedVersion(name=t.name, number=t.number, tagged_at=t.at) for t in found]
