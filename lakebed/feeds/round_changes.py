"""Makes what a round says of the records that it takes: their ledger, gaps, and event time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.feed_errors import RecordRefusedError
from lakebed.feeds.committed import FeedConnection, SplitAt, count_of
from lakebed.feeds.event_windows import too_many_windows
from lakebed.feeds.made_rows import MadeRows
from lakebed.ingest.stage_rows import StagedRows
from lakebed.model.feeds.replays import replay_of
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import WINDOWS_MAX, SplitTime, WindowCount, WindowRules
from lakebed.model.names import Micros, TransactionNumber
from lakebed.observe import events, usage
from lakebed.ports.record_source import Records
from lakebed.statestore.log_entries.feed_changes import RecordGap
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of
from lakebed.statestore.table_state.window_records import windows_of

BatchT = TypeVar("BatchT")

PATHS_SHOWN = 20
"""Most paths of left-out values that are shown, the most frequent ones."""
BAD_MIN, BAD_FRACTION = 10, 0.01
"""Operators are alarmed if an hour has at least so many bad records, and they are more than this
fraction of the records read in it. One bad record of three is no reason."""


class SplitRecords(msgspec.Struct, Generic[BatchT], frozen=True):
    """The records that a round takes of a source split.

    owner: number of its owner.
    at: how far it was taken when the records were read.
    records: that come next, in order; none: only the position is written down.
    is_caught_up: whether the source has no more of it now.
    gap_end: behind records that the source has no longer, where these would come next; None: it has
        them.
    """

    split: str
    owner: int
    at: SplitAt
    records: tuple[Records[BatchT], ...] = ()
    is_caught_up: bool = False
    gap_end: int | None = None

    @property
    def end(self) -> int:
        """Return the position behind the records."""
        if self.gap_end is not None:
            return self.gap_end
        return self.records[-1].end if self.records else count_of(self.at.position)


class MadeSplit(msgspec.Struct, Generic[BatchT], frozen=True):
    """The rows of a source split's records.

    at: where it is, marks counted.
    reach: behind the records that its quarantine may hold.
    """

    part: SplitRecords[BatchT]
    at: SplitAt
    rows: tuple[MadeRows[BatchT], ...] = ()
    reach: int = 0

    @property
    def refusal(self) -> RecordRefusedError | None:
        """Why the connection stops before one of the records."""
        return self.rows[-1].refusal if self.rows else None

    @property
    def last(self) -> bytes:
        """Return a digest of the last record that is taken, where that matters; empty behind a gap,
        where it is not known."""
        if self.part.gap_end is not None:
            return b""
        return self.rows[-1].last if self.rows else self.at.position.last

    @property
    def end(self) -> int:
        """Return the position behind the records that are taken."""
        return self.part.end if self.refusal is None else self.rows[-1].refused_at


def tallies_of(made: Sequence[MadeSplit[BatchT]], staged: StagedRows) -> dict[str, Tally]:
    """Return what became of the records of each source split."""
    kept_of, found = iter(staged.kept_of), dict[str, Tally]()
    for one in made:
        tally = Tally()
        for rows in one.rows:
            kept = next(kept_of) if rows.rows is not None else 0
            tally = tally.plus(
                Tally(
                    read=rows.read,
                    stored=kept,
                    filtered=rows.filtered + rows.rows_count - kept,
                    quarantined=rows.quarantined,
                    deduplicated=rows.deduplicated,
                    sampled_out=rows.sampled_out,
                    discarded=rows.discarded,
                    bytes=rows.size,
                )
            )
        found[one.part.split] = tally
    return found


def report_progress(table: str, connection: FeedConnection, tally: Tally, seconds: float) -> None:
    """Say what became of a round's records. seconds: from its begin to its commit."""
    usage.count("rows_in", tally.stored)
    events.emit(
        events.FEED_PROGRESSED,
        table=table,
        connection=connection.id,
        read_count=tally.read,
        stored_count=tally.stored,
        filtered_count=tally.filtered,
        quarantined_count=tally.quarantined,
        deduplicated_count=tally.deduplicated,
        sampled_out_count=tally.sampled_out,
        discarded_count=tally.discarded,
        bytes_count=tally.bytes,
        commit_seconds=round(seconds, 3),
    )


def report_dropped(
    table: str, connection: FeedConnection, made: Sequence[MadeSplit[BatchT]]
) -> None:
    """Say how many records are without a value that its column cannot hold, by its path."""
    dropped = Counter[str]()
    for rows in (rows for one in made for rows in one.rows):
        dropped.update(rows.dropped)
    if dropped:
        shown = ", ".join(f"{path}: {count}" for path, count in dropped.most_common(PATHS_SHOWN))
        events.emit(
            events.FEED_VALUES_LEFT_OUT,
            table=table,
            connection=connection.id,
            values_count=dropped.total(),
            paths=shown,
        )


def report_bad(table: str, connection: FeedConnection, hour: Tally) -> None:
    """Say that more of an hour's records are bad than operators may leave unseen.

    hour: of log time, behind a round with bad records; else empty.
    """
    if hour.quarantined >= BAD_MIN and hour.quarantined > BAD_FRACTION * hour.read:
        events.emit(
            events.FEED_QUARANTINE_GREW,
            table=table,
            connection=connection.id,
            read_count=hour.read,
            quarantined_count=hour.quarantined,
        )


def report_sealed(
    table: OpenTable,
    connection: FeedConnection,
    number: TransactionNumber,
    before: Micros | None,
) -> None:
    """Say which windows an entry has sealed (protocol R19).

    before: those that end there, or before, were sealed when it was made.
    """
    with table.head.reading() as state:
        known = connection_of(state, connection.id)
        found = [] if known is None else windows_of(state, known, sealed=True, after=before)
        sealed = [window for window in found if window.sealed == number]
    if sealed:
        events.emit(
            events.FEED_WINDOWS_SEALED,
            table=table.name,
            connection=connection.id,
            number=number,
            windows_count=len(sealed),
            rows_count=sum(window.rows for window in sealed),
        )


def gone_but_quarantined(count: int, errors_in_row: int) -> MadeRows[BatchT]:
    """Return what became of records that the source has no longer, and that the quarantine got from
    a worker that died before it could commit them: they are no part of the gap."""
    return MadeRows(
        rows=None,
        rows_count=0,
        read=count,
        size=0,
        quarantined=count,
        errors_in_row=errors_in_row,
    )


def recorded_gaps(
    connection: FeedConnection, parts: Sequence[SplitRecords[BatchT]]
) -> Iterator[RecordGap]:
    """Yield the gaps that are passed over."""
    for part in parts:
        if part.gap_end is not None:
            if part.records:  # they would be passed over, too
                raise AssertionError("what comes before a gap is committed first")
            yield RecordGap(
                connection.id,
                connection.version,
                part.split,
                str(count_of(part.at.position)).encode(),
                str(part.gap_end).encode(),
                "the source has these records no longer",
            )


def check_window_count(made: Sequence[MadeSplit[BatchT]]) -> None:
    """Refuse a round whose rows lie in too many windows. Raises: TooManyWindowsError."""
    windows = [each.windows for one in made for each in one.rows]
    if sum(map(len, windows)) <= WINDOWS_MAX:  # most rounds: none is looked at by itself
        return
    starts = {window.start for some in windows for window in some}
    if len(starts) > WINDOWS_MAX:
        raise too_many_windows(len(starts))


def event_time_of(
    connection: FeedConnection, made: Sequence[MadeSplit[BatchT]], rules: WindowRules | None
) -> Iterator[Advance]:
    """Yield how far source splits have come in event time, with the windows of their rows (protocol
    R18, R19)."""
    if rules is None:
        return
    splits, rows, late = list[SplitTime](), Counter[Micros](), Counter[Micros]()
    for one in made:
        is_replay = replay_of(one.part.split) is not None  # of old records: none waits for it
        times = [each.newest for each in one.rows if each.newest is not None and not is_replay]
        is_caught_up = is_replay or (one.part.is_caught_up and one.refusal is None)
        if times or is_caught_up:
            newest = max(times) if times else None
            splits.append(SplitTime(one.part.split, newest, caught_up=is_caught_up))
        for window in (window for each in one.rows for window in each.windows):
            rows[window.start] += window.rows
            late[window.start] += window.late
    if splits:
        starts = sorted(rows.keys() | late.keys())
        windows = tuple(WindowCount(start, rows[start], late[start]) for start in starts)
        yield Advance(connection.id, connection.version, rules, tuple(splits), windows)
