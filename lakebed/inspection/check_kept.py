"""Checks whether versions that are kept can still be read: of a tag or a pin by a snapshot of just
its number where the log no longer leads to it, of a follower by the log behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lakebed.inspection.findings import Finding, finding
from lakebed.inspection.unreadable import UNREADABLE, problem_of
from lakebed.model.names import TableName, TransactionNumber
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.kept_versions import followers_of, horizon_of, tags_of
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.version_pin import BACKUP_PINS


class Keeper(NamedTuple):
    """The keeper of a version, in words.

    follows: it needs the entries behind, too; no snapshot of just this version is kept for it.
    """

    number: TransactionNumber
    name: str
    follows: bool = False


def keepers(state: TableState) -> list[Keeper]:
    """Return all who keep versions of a table, but for followers that fell behind and backups. Of a
    table of older releases, which emptied logs without a look at pins, there are none."""
    if horizon_of(state) is None:
        return []
    found = [Keeper(tag.number, f"tag {tag.name}") for tag in tags_of(state)]
    pins = (pin for pin in state.pins() if not pin.id.startswith(BACKUP_PINS))
    found += [Keeper(pin.number, f"pin {pin.id}") for pin in pins]
    following = (one for one in followers_of(state) if not one.is_behind)
    found += [Keeper(one.number, f"follower {one.name}", follows=True) for one in following]
    return found


class CheckKept:
    """Looks at what keeps versions of one table.

    oldest: the first entry that the log has.
    good: numbers of snapshots that are proven.
    deep: a snapshot that no part of the log needs is read to its end; else it is only there.
    """

    def __init__(
        self,
        table: TableName,
        snapshots: Snapshots,
        *,
        oldest: int,
        good: Sequence[TransactionNumber],
        deep: bool,
    ) -> None:
        self._table = table
        self._snapshots = snapshots
        self._paths = dict(snapshots.newest_first())
        bases = (number for number in good if number >= oldest - 1)
        self._begin = 0 if oldest <= 1 else min(bases, default=None)
        self._deep = deep
        self._problems: dict[TransactionNumber, str] = {}

    def run(self, state: TableState) -> Iterator[Finding]:
        """Yield a finding for each tag, pin and follower whose version cannot be read."""
        for keeper in keepers(state):
            if problem := self._problem(keeper):
                yield finding(
                    "version-lost",
                    table=self._table,
                    number=keeper.number,
                    keeper=keeper.name,
                    problem=problem,
                )

    def _problem(self, keeper: Keeper) -> str:
        number = keeper.number
        if self._begin is not None and self._begin <= number:
            return ""  # the log leads to it
        if keeper.follows:
            return "the log begins later"
        if number not in self._problems:
            self._problems[number] = self._problem_of_snapshot(number)
        return self._problems[number]

    def _problem_of_snapshot(self, number: TransactionNumber) -> str:
        """Return what is wrong with the snapshot of just this number."""
        path = self._paths.get(number)
        if path is None:
            return "its snapshot is gone"
        try:
            is_good = not self._deep or self._snapshots.prove(path)
        except UNREADABLE as error:
            return f"its snapshot cannot be read: {problem_of(error)}"
        return "" if is_good else f"its snapshot is damaged: {path}"
