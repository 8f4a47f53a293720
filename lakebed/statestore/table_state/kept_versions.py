"""Versions that stay readable: the horizon, tags, pins, followers, and which garbage they need.

A file belongs to version n of a table if it was added by entry n or before and lost its last
reference behind it. The name of a file holds its base, which is less than the number of the entry
that added it. So version n needs a file that is garbage only if `base < n < number of the garbage`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lakebed.model.names import FileName, Micros, TransactionNumber, base_of
from lakebed.statestore.table_state.state import Garbage, TableState

TABLES = ("horizon", "tags", "followers", "pins")
"""Tables that decide which garbage is kept: proven before any is deleted."""


class Tag(msgspec.Struct, frozen=True):
    """A version that has a name and stays until the tag is dropped.

    at: log time of the entry that made the tag.
    """

    name: str
    number: TransactionNumber
    at: Micros


class FollowerRecord(msgspec.Struct, frozen=True):
    """A follower of a table's changes: what happened behind `number` stays until `until`.

    is_behind: it fell behind: nothing is kept for it any more.
    """

    name: str
    number: TransactionNumber
    until: Micros
    is_behind: bool


def horizon_of(state: TableState) -> TransactionNumber | None:
    """Return the number from which on all versions are whole; older ones are only where a tag is.
    None: the table is from an older release, and nothing is known yet."""
    state.prove_once("horizon")
    row = state.connection.execute("SELECT number FROM horizon").fetchone()
    return TransactionNumber(row[0]) if row else None


def tags_of(state: TableState) -> list[Tag]:
    """Return all tags, by name."""
    state.prove_once("tags")
    rows = state.connection.execute("SELECT name, number, at FROM tags ORDER BY name")
    return [Tag(*row) for row in rows]


def tag_of(state: TableState, name: str) -> Tag | None:
    """Return a tag."""
    state.prove_once("tags")
    query = "SELECT name, number, at FROM tags WHERE name = ?"
    row = state.connection.execute(query, (name,)).fetchone()
    return Tag(*row) if row else None


def followers_of(state: TableState) -> list[FollowerRecord]:
    """Return all followers, by name, also those that fell behind."""
    state.prove_once("followers")
    rows = state.connection.execute(
        "SELECT name, number, until, is_behind FROM followers ORDER BY name"
    )
    return [
        FollowerRecord(name, number, until, bool(behind)) for name, number, until, behind in rows
    ]


def follower_of(state: TableState, name: str) -> FollowerRecord | None:
    """Return a follower."""
    return next((one for one in followers_of(state) if one.name == name), None)


def is_kept(state: TableState, number: TransactionNumber) -> bool:
    """Return whether a version is whole, and stays so from now on if a pin is put on it."""
    horizon = horizon_of(state)
    if horizon is not None and number >= horizon:
        return True
    return any(tag.number == number for tag in tags_of(state))


class KeptVersions:
    """Versions whose files stay. numbers: of each. followed: all that was garbage behind this
    number stays, too; None: there is no follower."""

    def __init__(self, numbers: Iterable[int], followed: int | None = None) -> None:
        self._numbers = sorted(set(numbers))
        self._followed = followed

    def __bool__(self) -> bool:
        return bool(self._numbers) or self._followed is not None

    def need(self, file: FileName, number: int) -> bool:
        """Return whether one of them needs a file that lost its last reference at an entry."""
        if self._followed is not None and number > self._followed:
            return True
        at = bisect_right(self._numbers, base_of(file))
        return at < len(self._numbers) and self._numbers[at] < number


def versions_with_state(state: TableState) -> set[TransactionNumber]:
    """Return the versions whose state stays, too: who has pinned one reads its state afterwards."""
    pinned = {pin.number for pin in state.pins()}
    return pinned | {tag.number for tag in tags_of(state)}


def kept_versions(state: TableState, *, now: Micros | None = None) -> KeptVersions:
    """Return the versions that a state keeps. now: pins and followers whose time is over are left
    out; None: the log alone ends them."""
    pins = [pin for pin in state.pins() if now is None or pin.until >= now]
    following = [
        one.number
        for one in followers_of(state)
        if not one.is_behind and (now is None or one.until >= now)
    ]
    numbers = [*(pin.number for pin in pins), *(tag.number for tag in tags_of(state))]
    return KeptVersions(numbers, min(following, default=None))


def unneeded(
    state: TableState, kept: KeptVersions, *, before: Micros, behind: Garbage | None = None
) -> Iterator[Garbage]:
    """Yield garbage that no kept version needs, oldest first.

    before: only what lost its last reference by then.
    behind: only what comes later in this order.
    """
    number, file = (0, b"") if behind is None else (behind.number, behind.file)
    rows = state.connection.execute(
        "SELECT file, number, at, size FROM garbage WHERE at <= ? AND (number, file) > (?, ?)"
        " ORDER BY number, file",
        (before, number, file),
    )
    for row in rows:
        if not kept.need(row[0], row[1]):
            yield Garbage(*row)


def newest_garbage(state: TableState, *, before: Micros) -> TransactionNumber:
    """Return the number of the newest garbage that lost its last reference by then; 0: none."""
    query = "SELECT max(number) FROM garbage WHERE at <= ?"
    return TransactionNumber(state.connection.execute(query, (before,)).fetchone()[0] or 0)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The holder that keeps a version, or all behind it.

    kind: `pin`, `tag` or `follower`.
    until: log time; None: without an end.
    bytes: of garbage past its delay that stays for this holder alone.
    """

    kind: str
    name: str
    number: int
    until: int | None
    bytes: int = 0


def holders(state: TableState, *, before: Micros, now: Micros) -> tuple[Holder, ...]:
    """Return who keeps versions, and what each costs.

    before: garbage from before is past its delay.
    now: pins and followers whose time is over are left out.
    """
    found = [
        *(Holder(kind="tag", name=t.name, number=t.number, until=None) for t in tags_of(state)),
        *(
            Holder(kind="pin", name=pin.id, number=pin.number, until=pin.until)
            for pin in state.pins()
            if pin.until >= now
        ),
        *(
            Holder(kind="follower", name=one.name, number=one.number, until=one.until)
            for one in followers_of(state)
            if one.until >= now and not one.is_behind
        ),
    ]
    costs = _costs(state, found, before)
    return tuple(msgspec.structs.replace(h, bytes=costs.get(n, 0)) for n, h in enumerate(found))


def _costs(state: TableState, found: list[Holder], before: Micros) -> Mapping[int, int]:
    """Return the bytes that one holder alone keeps, by its index."""
    costs: dict[int, int] = {}
    versions = sorted((h.number, n) for n, h in enumerate(found) if h.kind != "follower")
    numbers = [number for number, _ in versions]
    following = sorted((h.number, n) for n, h in enumerate(found) if h.kind == "follower")
    garbage = state.connection.execute(
        "SELECT file, number, size FROM garbage WHERE at <= ?", (before,)
    )
    for file, number, size in garbage if found else ():
        first = bisect_right(numbers, base_of(file))
        needing = [n for at, n in versions[first : first + 2] if at < number]
        needing += [n for at, n in following[:2] if at < number]
        if len(needing) == 1:
            costs[needing[0]] = costs.get(needing[0], 0) + size
    return costs
