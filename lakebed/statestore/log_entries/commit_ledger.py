"""Checks what the changes of a feed's commit must say together: no record is counted that nothing
accounts for (R12), no gap is passed in silence (R15), and each row lies in a window (R19)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from lakebed.errors import InvalidError
from lakebed.model.feeds.positions import position_name
from lakebed.model.names import ConnectionId
from lakebed.statestore.log_entries.feed_changes import (
    BeginAgain,
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    ForgetOldItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.window_changes import Advance

FeedChange = (
    Define
    | Count
    | TakeItems
    | ForgetItems
    | ForgetOldItems
    | RecordGap
    | ForgetConnection
    | Advance
    | ResetPosition
    | DropPosition
    | BeginAgain
)


def check_ledger(
    changes: Iterable[object], *, moved: Iterable[str], rows: int, merges_rows: bool
) -> None:
    """Refuse a commit whose ledger is not that of its rows, or that takes records from nowhere.

    changes: all of the commit.
    moved: names of the positions that it moves.
    rows: of the files that it adds.
    merges_rows: whether the table makes one row of several.

    Raises:
        InvalidError: records are counted that no position and no item accounts for, or other rows
            are counted than are added.
    """
    counts, times = list[Count](), list[Advance]()
    names, taken = set(moved), set[ConnectionId]()
    for change in changes:
        match change:
            case Count():
                counts.append(change)
            case TakeItems():
                taken.add(change.connection)
            case Advance():
                times.append(change)
            case RecordGap() if _name(change) not in names:
                raise InvalidError(
                    "a gap is recorded without the position behind it",
                    hint="commit the position behind the gap with it",
                )
            case _:
                pass
    for count in counts:
        if _name(count) not in names and count.connection not in taken:
            hint = "commit the position, or the items, with the rows that came of them"
            raise InvalidError(
                "records are counted that were taken from nowhere", source=_name(count), hint=hint
            )
    if len({_name(count) for count in counts}) < len(counts):
        raise InvalidError(
            "the records of a source split are counted twice in one commit",
            hint="add the counts of one source split up",
        )
    stored = sum(count.tally.stored for count in counts)
    if counts and (stored < rows or (stored > rows and not merges_rows)):
        hint = "count each record that was stored, and no other"
        raise InvalidError(
            "the ledger is not that of the rows", stored=stored, rows=rows, hint=hint
        )
    _check_times(times, counts, names, taken)


def _check_times(
    times: Sequence[Advance],
    counts: Sequence[Count],
    names: Collection[str],
    taken: Collection[ConnectionId],
) -> None:
    """Refuse event times of records that were not taken, and rows in no window or in several."""
    if len({change.connection for change in times}) < len(times):
        raise InvalidError(
            "a watermark is moved twice in one commit", hint="give each connection one advance"
        )
    for change in times:
        for split in change.splits:
            name = position_name(change.connection, split.source_split)
            is_taken = name in names or (change.connection in taken and not split.caught_up)
            if not is_taken and (split.caught_up or split.event_time is not None):
                hint = "commit the position with it"
                raise InvalidError("an event time of records not taken", source=name, hint=hint)
        tallies = [count.tally for count in counts if count.connection == change.connection]
        stored = sum(tally.stored for tally in tallies)
        rows = sum(window.rows for window in change.windows)
        late = sum(window.late for window in change.windows)
        filtered = sum(tally.filtered for tally in tallies)
        left_out = sum(tally.quarantined + tally.discarded for tally in tallies)
        if not stored <= rows <= stored + filtered or late > left_out:
            hint = "count each row that was stored in the window of its event time"
            raise InvalidError(
                "windows are not those of the rows", rows=rows, stored=stored, late=late, hint=hint
            )


def _name(change: Count | RecordGap) -> str:
    return position_name(change.connection, change.source_split)
