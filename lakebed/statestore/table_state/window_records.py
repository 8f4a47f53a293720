"""Holds what a state knows of event time: how far each source split of a connection has come, its
watermark (R18), and the rows in each window (R19).

Nothing here knows a clock: event times and the log time of an entry decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lakebed.model.feeds.windows import DAY_SECONDS, SplitTime, WindowCount, WindowRules
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.table_state.feed_records import Connection
from lakebed.statestore.table_state.state import Moment, TableState

OPEN_MAX = 1_000_000
"""Windows of a connection that are not sealed."""
SEALED_MAX = 100_000
"""Sealed windows of a connection that are remembered one by one: the newest."""
FOLDED_TO = SEALED_MAX * 9 // 10
"""Sealed windows that stay when there are more, so that not each commit counts them."""
KEPT = 400 * DAY_SECONDS * MICROS_PER_SECOND
"""Microseconds behind the watermark for which a sealed window is remembered by itself."""
FOLDED = Micros(-(1 << 63))
"""End of the row that stands for all windows that are not remembered one by one."""

_PUT_WINDOW = (
    "INSERT INTO windows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6)"
    " ON CONFLICT(connection, end, seconds) DO UPDATE SET rows = rows + excluded.rows,"
    " late = late + excluded.late,"
    " revision = CASE WHEN excluded.rows > 0 THEN revision + excluded.revision ELSE revision END,"
    " number = CASE WHEN excluded.rows > 0 THEN excluded.number ELSE number END"
)
"""Statement that puts a window: rows that come late make the next revision of a sealed one."""


_FORGET = (
    "DELETE FROM progress WHERE connection = ?",
    "DELETE FROM watermarks WHERE connection = ?",
    "DELETE FROM windows WHERE connection = ?",
)


class Watermark(msgspec.Struct, frozen=True):
    """The progress of a connection in event time.

    time: all records before it have been taken, as far as can be known. None: not known yet.
    sealed: windows that end there, or before, are sealed, those too in which no row is.
    reached: the greatest event time of all records.
    """

    time: Micros | None = None
    sealed: Micros | None = None
    reached: Micros | None = None

    def is_sealed(self, end: int) -> bool:
        """Return whether a window with this end is sealed."""
        return self.sealed is not None and end <= self.sealed


class SplitProgress(msgspec.Struct, frozen=True):
    """The progress of a source split in event time.

    event_time: the greatest of its records; None: none was taken, it holds the watermark back.
    since, said: log times between which its owner said that it is caught up, the first and the
        last time; None: there was more.
    """

    source_split: str
    event_time: Micros | None
    since: Micros | None
    said: Micros | None


class Window(msgspec.Struct, frozen=True):
    """Rows of a connection in a window of event time.

    start: None in the row that stands for all older ones.
    rows: that were stored.
    late: that came when it was sealed; those that were accepted are among the rows.
    sealed: number of the entry that sealed it; None: it is open.
    revision: 1 as it was sealed; each commit with late rows that were accepted adds one.
    number: of the entry that made the revision: as of it the window is complete.
    """

    start: Micros | None
    seconds: int
    rows: int
    late: int
    sealed: TransactionNumber | None
    revision: int
    number: TransactionNumber | None


def watermark_of(state: TableState, connection: Connection) -> Watermark:
    """Return how far a connection has come in event time."""
    state.prove_once("watermarks")
    query = "SELECT time, sealed, reached FROM watermarks WHERE connection = ?"
    row = state.connection.execute(query, (connection.key,)).fetchone()
    return Watermark(*row) if row else Watermark()


def split_progress(state: TableState, connection: Connection) -> list[SplitProgress]:
    """Return the source splits that the watermark waits for, by name."""
    query = "SELECT name, event_time, since, said FROM progress WHERE connection = ? ORDER BY name"
    return [SplitProgress(*row) for row in state.connection.execute(query, (connection.key,))]


def windows_of(
    state: TableState,
    connection: Connection,
    *,
    sealed: bool | None = None,
    after: int | None = None,
) -> Iterator[Window]:
    """Yield windows of a connection by their end, first the row that stands for the oldest.

    sealed: only those that are, or are not.
    after: only those that end later.
    """
    query = (
        "SELECT end, seconds, rows, late, sealed, revision, number FROM windows"
        " WHERE connection = ?1 AND end >= ?2 AND (?3 IS NULL OR (sealed IS NOT NULL) = ?3)"
        " ORDER BY end, seconds"
    )
    values = (connection.key, FOLDED if after is None else after + 1, sealed)
    for end, seconds, *rest in state.connection.execute(query, values):
        start = None if end == FOLDED else Micros(end - seconds * MICROS_PER_SECOND)
        yield Window(start, seconds, *rest)


def open_windows(state: TableState, connection: Connection) -> int:
    """Return how many windows of a connection hold rows and are not sealed."""
    sealed = watermark_of(state, connection).sealed
    query = "SELECT count(*) FROM windows WHERE connection = ? AND end > ?"
    values = (connection.key, FOLDED if sealed is None else sealed)
    return int(state.connection.execute(query, values).fetchone()[0])


def has_room_for_windows(
    state: TableState, connection: Connection, ends: Iterable[int], seconds: int
) -> bool:
    """Return whether these windows may be open, too. Those of all connections are known at once;
    which are new is looked up when they may be too many. ends: of windows, each of so many
    seconds."""
    execute, asked = state.connection.execute, list(ends)
    (of_all,) = execute("SELECT rows FROM row_sums WHERE name = 'windows'").fetchone()
    if of_all + len(asked) <= OPEN_MAX:
        return True
    watermark = watermark_of(state, connection)
    query = "SELECT 1 FROM windows WHERE connection = ? AND end = ? AND seconds = ?"
    new = sum(
        not watermark.is_sealed(end)
        and execute(query, (connection.key, end, seconds)).fetchone() is None
        for end in asked
    )
    return not new or open_windows(state, connection) + new <= OPEN_MAX


def wrong_windows(state: TableState) -> Iterator[str]:
    """Yield what contradicts itself of event time, or belongs to no connection, in a few words
    each."""
    rows = state.connection.execute(
        "SELECT 'watermark of connection ' || connection FROM watermarks"
        " WHERE sealed > time OR connection NOT IN (SELECT key FROM connections)"
        " UNION ALL SELECT 'event time of ' || name FROM progress"
        " WHERE said < since OR (said IS NULL) <> (since IS NULL)"
        " OR connection NOT IN (SELECT key FROM connections)"
        " UNION ALL SELECT 'window that ends at ' || w.end FROM windows w"
        " LEFT JOIN watermarks USING (connection)"
        " WHERE (w.end <= coalesce(watermarks.sealed, ?1)) <> (w.sealed IS NOT NULL)"
        " OR min(w.rows, w.late) < 0 OR (w.revision > 0 AND w.sealed IS NULL)"
        " OR w.number < w.sealed OR connection NOT IN (SELECT key FROM connections)",
        (FOLDED,),
    )
    yield from (what for (what,) in rows)


def expect_splits(state: TableState, connection: Connection, names: Iterable[str]) -> None:
    """Let source splits hold the watermark where it is until they commit or are idle. Ones that are
    known stay as they are."""
    for name in names:
        state.write(
            "INSERT INTO progress VALUES (?, ?, NULL, NULL, NULL) ON CONFLICT DO NOTHING",
            (connection.key, name),
        )


def forget_split(state: TableState, connection: Connection, name: str) -> None:
    """Let a source split hold the watermark back no more."""
    state.write("DELETE FROM progress WHERE connection = ? AND name = ?", (connection.key, name))


def forget_windows(state: TableState, connection: Connection) -> None:
    """Forget all that is known of a connection's event time."""
    for statement in _FORGET:
        state.write(statement, (connection.key,))


def advance(
    state: TableState,
    connection: Connection,
    said: tuple[tuple[SplitTime, ...], tuple[WindowCount, ...]],
    rules: WindowRules,
    moment: Moment,
) -> None:
    """Take in what a commit says of event time: count its rows, move the watermark, seal windows.
    said: of source splits, and of windows."""
    splits, windows = said
    before = watermark_of(state, connection)
    for window in windows:
        _count(state, connection.key, window, rules=rules, before=before, number=moment.number)
    for split in splits:
        _progress(state, connection.key, split, rules, moment.at)
    times = [split.event_time for split in splits if split.event_time is not None]
    reached = max((*times, *_some(before.reached)), default=None)
    for split in splits:
        if split.ended:
            forget_split(state, connection, split.source_split)
    now = _risen(state, connection.key, before, reached, rules=rules, at=moment.at)
    state.write(
        "INSERT OR REPLACE INTO watermarks VALUES (?, ?, ?, ?)",
        (connection.key, now.time, now.sealed, now.reached),
    )
    if now.sealed is not None and now.sealed != before.sealed:
        state.write(
            "UPDATE windows SET sealed = ?1, revision = 1, number = ?1"
            " WHERE connection = ?2 AND end > ?3 AND end <= ?4",
            (moment.number, connection.key, *_some(before.sealed, FOLDED), now.sealed),
        )
    _fold(state, connection.key, now)


def _count(
    state: TableState,
    key: int,
    window: WindowCount,
    *,
    rules: WindowRules,
    before: Watermark,
    number: TransactionNumber,
) -> None:
    end = window.start + rules.window
    if before.is_sealed(end):
        late = window.rows + window.late
        state.write(_PUT_WINDOW, (key, end, rules.window_seconds, window.rows, late, number, 1))
    else:
        state.write(_PUT_WINDOW, (key, end, rules.window_seconds, window.rows, 0, None, 0))


def _progress(
    state: TableState, key: int, split: SplitTime, rules: WindowRules, at: Micros
) -> None:
    """Remember how far a source split has come."""
    query = "SELECT event_time, since, said FROM progress WHERE connection = ? AND name = ?"
    row = state.connection.execute(query, (key, split.source_split)).fetchone()
    known, since, said = row or (None, None, None)
    times = (*_some(known), *_some(split.event_time))
    if not split.caught_up:
        since = said = None
    elif split.event_time is None and said is not None and at - said <= rules.idle:
        since, said = min(at, *_some(since)), at
    else:  # from now on: there were records, or what its owner said counts no more
        since = said = at
    state.write(
        "INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?, ?)",
        (key, split.source_split, max(times, default=None), since, said),
    )


def _risen(
    state: TableState,
    key: int,
    before: Watermark,
    reached: Micros | None,
    *,
    rules: WindowRules,
    at: Micros,
) -> Watermark:
    """Return the watermark that source splits which are not idle allow, never an earlier one: so a
    source split that comes late begins at it. Where all are idle, all that was reached is taken."""
    busy, timed, least = state.connection.execute(
        "SELECT count(*), count(event_time), min(event_time) FROM progress WHERE connection = ?1"
        " AND (since IS NULL OR said - since < ?2 OR ?3 - said > ?2)",
        (key, rules.idle, at),
    ).fetchone()
    allowed = least if busy else reached
    if busy > timed or allowed is None:
        return Watermark(before.time, before.sealed, reached)
    time = max(allowed - rules.disorder_seconds * MICROS_PER_SECOND, *_some(before.time, FOLDED))
    sealed = max(time - rules.seal_seconds * MICROS_PER_SECOND, *_some(before.sealed, FOLDED))
    return Watermark(Micros(time), Micros(sealed), reached)


def _some(time: Micros | None, default: Micros | None = None) -> tuple[Micros, ...]:
    """Return a time that is known, or the default, as a tuple of one or of none."""
    return tuple(known for known in (default if time is None else time,) if known is not None)


def _fold(state: TableState, key: int, now: Watermark) -> None:
    """Let one row stand for sealed windows that are old or too many."""
    if now.time is None or now.sealed is None:
        return
    below = min(now.sealed, Micros(now.time - KEPT))
    execute = state.connection.execute
    (of_all,) = execute("SELECT rows FROM row_sums WHERE name = 'windows'").fetchone()
    if of_all > SEALED_MAX:
        query = "SELECT count(*) FROM windows WHERE connection = ? AND end <= ? AND end > ?"
        (own,) = execute(query, (key, now.sealed, FOLDED)).fetchone()
        if own > SEALED_MAX:
            query = (
                "SELECT end FROM windows WHERE connection = ? AND end <= ? ORDER BY end DESC"
                " LIMIT 1 OFFSET ?"
            )
            below = max(below, execute(query, (key, now.sealed, FOLDED_TO)).fetchone()[0])
    old = "FROM windows WHERE connection = ?1 AND end > ?2 AND end <= ?3"
    count, rows, late, sealed, number = execute(
        f"SELECT count(*), sum(rows), sum(late), max(sealed), max(number) {old}",
        (key, FOLDED, below),
    ).fetchone()
    if count:
        state.write(f"DELETE {old}", (key, FOLDED, below))
        state.write(
            "INSERT INTO windows VALUES (?1, ?2, 0, ?3, ?4, ?5, 0, ?6)"
            " ON CONFLICT(connection, end, seconds) DO UPDATE SET rows = rows + excluded.rows,"
            " late = late + excluded.late, sealed = max(sealed, excluded.sealed),"
            " number = max(number, excluded.number)",
            (key, FOLDED, rows, late, sealed, number),
        )
