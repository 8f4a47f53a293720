"""Defines what is kept of a table's past: the horizon, tags, pins of older versions, followers.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

import msgspec

from lakebed.errors import (
    ConflictError,
    FollowerBehindError,
    InvalidError,
    TagExistsError,
    VersionExpiredError,
    did_you_mean,
)
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.versions import check_version_name
from lakebed.statestore.table_state.kept_versions import (
    FollowerRecord,
    follower_of,
    followers_of,
    horizon_of,
    is_kept,
    tag_of,
    tags_of,
)
from lakebed.statestore.table_state.state import Moment, TableState

VERSION_FORMAT = 6
"""Format of log entries that change versions."""

TAGS_MAX, FOLLOWERS_MAX = 10_000, 1_000


class RaiseHorizon(msgspec.Struct, frozen=True, array_like=True, tag="horizon"):
    """Lets versions below `horizon` lose their files and their part of the log, but for those that
    have a tag or a pin (H38). Pins whose time is over end here, by the log's time, and
    followers fall behind.

    The first one of a table begins with the version before it: older releases may have deleted what
    earlier ones need.
    """

    horizon: TransactionNumber

    def check(self, state: TableState) -> None:
        if self.horizon > state.head().number:
            raise InvalidError(
                "the horizon lies above the log",
                horizon=self.horizon,
                hint=f"give a number of the log, at most {state.head().number}",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "INSERT INTO horizon VALUES (1, ?) ON CONFLICT(only) DO UPDATE SET"
            " number = max(number, ?)",
            (moment.number - 1, self.horizon),
        )
        state.write("DELETE FROM pins WHERE until < ?", (moment.at,))
        state.write(
            "UPDATE followers SET is_behind = 1 WHERE until < ? AND NOT is_behind", (moment.at,)
        )


class PutTag(msgspec.Struct, frozen=True, array_like=True, tag="put_tag"):
    """A version gets a name and stays until the tag is dropped.

    number: None for the version that this entry makes.
    """

    name: str
    number: TransactionNumber | None = None

    def check(self, state: TableState) -> None:
        check_version_name(self.name)
        found = tag_of(state, self.name)
        if found is not None:
            hint = "choose another name, or drop that tag first"
            raise TagExistsError("the tag is there", tag=self.name, number=found.number, hint=hint)
        _check_room(len(tags_of(state)), TAGS_MAX, what="tags")
        _check_kept(state, self.number)

    def apply(self, state: TableState, moment: Moment) -> None:
        number = moment.number if self.number is None else self.number
        state.write("INSERT INTO tags VALUES (?, ?, ?)", (self.name, number, moment.at))


class DropTag(msgspec.Struct, frozen=True, array_like=True, tag="drop_tag"):
    """A version need not stay any longer."""

    name: str

    def check(self, state: TableState) -> None:
        if tag_of(state, self.name) is None:
            hint = did_you_mean(self.name, (tag.name for tag in tags_of(state)), what="tag")
            raise InvalidError("no such tag", tag=self.name, hint=hint)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("DELETE FROM tags WHERE name = ?", (self.name,))


class PinVersion(msgspec.Struct, frozen=True, array_like=True, tag="pin_version"):
    """A long reader of a version that may be older: its files stay until `until` (H24, H38).

    Again with the same id: another end for the same version.
    """

    id: str
    number: TransactionNumber
    until: Micros

    def check(self, state: TableState) -> None:
        found = next((pin for pin in state.pins() if pin.id == self.id), None)
        if found is None:
            _check_kept(state, self.number)
        elif found.number != self.number:
            hint = "pin another version under another id"
            raise InvalidError("a pin stays on its version", pin=self.id, hint=hint)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "INSERT INTO pins VALUES (?, ?, ?)"
            " ON CONFLICT(id) DO UPDATE SET until = excluded.until",
            (self.id, self.number, self.until),
        )


class BeginFollowing(msgspec.Struct, frozen=True, array_like=True, tag="follow"):
    """All that happens behind an entry stays, until the follower has read it or `until` is over.

    number: None for the entry that this is in. One that fell behind begins anew.
    """

    name: str
    number: TransactionNumber | None
    until: Micros

    def check(self, state: TableState) -> None:
        check_version_name(self.name)
        found = follower_of(state, self.name)
        if found is not None and not found.is_behind:
            hint = "go on with it, or drop it first"
            raise InvalidError(
                "the follower is there", follower=self.name, number=found.number, hint=hint
            )
        _check_room(len(followers_of(state)), FOLLOWERS_MAX, what="followers")
        if self.number is not None:
            if self.number:  # 0: all that ever happened
                _check_in_log(state, self.number)
            horizon = horizon_of(state)
            if horizon is None or self.number < horizon:
                raise expired(state, self.number)

    def apply(self, state: TableState, moment: Moment) -> None:
        number = moment.number if self.number is None else self.number
        state.write(
            "INSERT OR REPLACE INTO followers VALUES (?, ?, ?, 0)", (self.name, number, self.until)
        )


class MoveFollower(msgspec.Struct, frozen=True, array_like=True, tag="move_follower"):
    """A follower has done what it does with all entries up to `number`.

    expected: the number that it had before.
    """

    name: str
    expected: TransactionNumber
    number: TransactionNumber
    until: Micros

    def check(self, state: TableState) -> None:
        found = require_follower(state, self.name)
        if found.number != self.expected:
            hint = "another process follows under this name: give each a name of its own"
            raise ConflictError("the follower has moved", number=found.number, hint=hint)
        if self.number < self.expected:
            raise InvalidError(
                "a follower does not go back",
                number=found.number,
                hint=f"give {found.number}, or a number behind it",
            )
        _check_in_log(state, self.number)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write(
            "UPDATE followers SET number = ?, until = ? WHERE name = ?",
            (self.number, self.until, self.name),
        )


class DropFollower(msgspec.Struct, frozen=True, array_like=True, tag="drop_follower"):
    """A name is followed no more."""

    name: str

    def check(self, state: TableState) -> None:
        if follower_of(state, self.name) is None:
            raise _no_follower(state, self.name)

    def apply(self, state: TableState, moment: Moment) -> None:
        state.write("DELETE FROM followers WHERE name = ?", (self.name,))


VersionChange = (
    RaiseHorizon | PutTag | DropTag | PinVersion | BeginFollowing | MoveFollower | DropFollower
)


def expired(state: TableState, number: int) -> VersionExpiredError:
    """Return what to say of a version that may have lost its files."""
    oldest = horizon_of(state)
    if oldest is None:
        oldest = state.head().number
    tags = [tag.number for tag in tags_of(state)]
    hint = f"the oldest that can still be read is {oldest}"
    if tags:
        hint += f"; older ones have tags: {', '.join(str(n) for n in sorted(set(tags))[:10])}"
    return VersionExpiredError("the version is not kept any more", number=number, hint=hint)


def require_follower(state: TableState, name: str) -> FollowerRecord:
    """Return a follower that has not fallen behind.

    Raises:
        InvalidError: there is none of this name. FollowerBehindError: it fell behind.
    """
    found = follower_of(state, name)
    if found is None:
        raise _no_follower(state, name)
    if found.is_behind:
        hint = "read the table as it is, then follow from that version's number"
        raise FollowerBehindError(
            "the follower fell behind", follower=name, number=found.number, hint=hint
        )
    return found


def _no_follower(state: TableState, name: str) -> InvalidError:
    known = (one.name for one in followers_of(state))
    return InvalidError(
        "no such follower", follower=name, hint=did_you_mean(name, known, what="follower")
    )


def _check_kept(state: TableState, number: TransactionNumber | None) -> None:
    if number is not None:
        _check_in_log(state, number)
        if not is_kept(state, number):
            raise expired(state, number)


def _check_in_log(state: TableState, number: TransactionNumber) -> None:
    last = state.head().number
    if not 0 < number <= last:
        hint = f"its last is {last}"
        raise InvalidError("the log has no such entry", number=number, hint=hint)


def _check_room(there: int, at_most: int, *, what: str) -> None:
    if there >= at_most:
        raise InvalidError(f"too many {what}", at_most=at_most, hint="drop some first")
