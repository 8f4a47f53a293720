"""One connection at work in one process: records of its source splits on their way into its table.

What is held here is only what was read ahead. It may be dropped at any moment: the table's log says
how far each source split was taken. A round that is refused is forgotten whole (protocol R6). The
source hears of one when it is in the log (R5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import (
    FencedError,
    GenerationError,
    LakebedError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.feed_errors import (
    ItemsTakenError,
    OwnerFencedError,
    PositionGoneError,
    PositionMovedError,
    WindowSealedError,
)
from lakebed.feeds.commit_round import CommitRound, RoundCommitted
from lakebed.feeds.committed import FeedConnection, SplitAt, count_of, read_committed
from lakebed.feeds.open_splits import OpenSplit, in_turn, parts_of
from lakebed.feeds.owned_splits import OwnedSplits, OwnsAll, fenced_splits
from lakebed.feeds.pacing.flow import Flow
from lakebed.feeds.pacing.flush import Flush
from lakebed.feeds.pacing.pipeline_rules import PipelineRules
from lakebed.feeds.pacing.refused_rows import RefusedRows
from lakebed.feeds.pacing.spilling import SpillingSource
from lakebed.feeds.rotation import Rotation, Waiting, minute_of
from lakebed.feeds.round_changes import SplitRecords
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.windows import SPLITS_MAX
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.record_source import RecordSource, SourceSplit
from lakebed.statestore.open_table import OpenTable

BatchT = TypeVar("BatchT")

TRIES_MAX = 5
"""Most rounds in a row that are refused because another worker commits, too."""
READ_BYTES = 4 << 20
"""Bytes of one read: so source splits take turns."""
DISCOVER_SECONDS = 30.0
REST_SECONDS = 0.05
OWN_SECONDS = 2.0
"""Seconds between two questions which source splits this process is to own."""

AGAIN = (PositionMovedError, ItemsTakenError, WindowSealedError, GenerationError, FencedError)
"""Errors that refuse one round, and not the next."""


class Turn(msgspec.Struct, frozen=True):
    """The outcome of one turn of a pipeline.

    has_read: whether records were read.
    committed: the round that was committed; None: none was.
    """

    has_read: bool
    committed: RoundCommitted | None


class Pipeline(Generic[BatchT]):
    """Takes records of a source into a table, turn by turn.

    splits: says which source splits this process owns.
    held: what all pipelines of the process hold; None: this one is alone.
    """

    def __init__(
        self,
        *,
        table: OpenTable,
        connection: FeedConnection,
        source: RecordSource[BatchT],
        rounds: CommitRound[BatchT],
        clock: Clock,
        rules: PipelineRules | None = None,
        splits: OwnedSplits | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self.table = table
        self.connection = connection
        self._source = source
        self._spilling = source if isinstance(source, SpillingSource) else None
        self._rounds = rounds
        self._clock = clock
        rules = rules or PipelineRules()
        self._rotation = Rotation(rules.limits, rules.idle_seconds)
        self._refused_rows = RefusedRows(self._rotation, rounds.first, table.name, connection)
        self._records_gaps = rules.records_gaps
        self.flow = Flow(
            rules.congestion,
            per_second=rules.records_per_second,
            stops_when_lagging=rules.stops_when_lagging,
            now=clock.monotonic(),
            table=table.name,
            connection=connection.id,
        )
        self._splits = splits or OwnsAll()
        self._held = held or HeldBytes()
        self._open: dict[str, OpenSplit[BatchT]] = {}
        self._refused = 0
        self._found: dict[str, SourceSplit] = {}
        self._discovered: float | None = None
        self._owned: float | None = None
        self._had: dict[str, int] = {}
        self._since = self._newest = 0.0
        self._minute = 0
        self._flush = Flush[BatchT]()
        self._caught_up = self._before_gap = False

    @property
    def is_idle(self) -> bool:
        """Return whether the last turn left nothing to read, to commit or to tell."""
        is_caught_up = self._caught_up and not self._before_gap
        return is_caught_up and not any(one.held for one in self._open.values())

    def turn(self, *, is_draining: bool = False) -> Turn:
        """Read a part of what there is, and commit if it is time.

        is_draining: commit what is held and read nothing.

        Raises:
            PositionGoneError: the source has no longer what comes next; what it still had is
                committed first.
            OwnerFencedError: another worker has taken a source split over.
            DefinitionMovedError: the table knows a newer definition.
            FeedLaggingError: it has been behind its source for too long.
            InvalidError: the source, or what it gives, can never work as it is.
            DeniedError: our credentials are refused.
            TableBusyError: compaction must catch up first.
            UnavailableError, ConflictError, UnknownOutcomeError: take a turn again.
        """
        has_read = False
        if not is_draining:
            self.flow.look_at_lag(self._clock.monotonic(), self._open.values())
            self._discover()
            self._own()
            has_read = self._read()
            now, behind = self._clock.monotonic(), self.figures()[1]
            spilling = self._spilling
            is_full = spilling is not None and spilling.is_full
            self.flow.look(now, behind=behind, is_caught_up=self._caught_up, is_full=is_full)
            if spilling is not None:
                spilling.forget_closed()
                if self.flow.congestion.spills:
                    spilling.read_ahead()
        waiting = self._waiting()
        is_wanted = is_draining or self._flush.is_wanted or self._held.is_to_commit(self)
        now, wall = self._clock.monotonic(), self._clock.now()
        is_due = waiting.records and is_wanted
        if not waiting.records and self._rotation.has_silence_to_report(waiting, now):
            return Turn(has_read, self._commit())
        if is_due or self._rotation.reason(waiting, now=now, wall=wall):
            return Turn(has_read, self._commit())
        return Turn(has_read, None)

    def read_ahead(self) -> bool:
        """Let records of the source wait on the disk between two turns that fail, where the policy
        says so. Returns whether there were some."""
        return self._spilling is not None and self._spilling.read_ahead()

    def rest(self) -> bool:
        """Wait a little if the policy's rate lets nothing be read now. Returns whether it did."""
        is_held_back = not self.flow.pace.may_read(self._clock.monotonic())
        if is_held_back:
            self._clock.sleep(REST_SECONDS)
        return is_held_back

    def flush(self, number: int = 0) -> None:
        """Commit with the next turns what is held now. number: of the wish."""
        self._flush.ask(number, self._open.values())

    @property
    def flushed(self) -> int:
        """Return the number of the last wish to flush of which all is committed."""
        return self._flush.done

    def figures(self) -> tuple[int, int, int]:
        """Return how many source splits are read, how many positions there are beyond what was read
        of them, and how many bytes are held."""
        behind = sum(one.reader.behind() or 0 for one in self._open.values())
        return len(self._open), behind, self._waiting().size

    @property
    def spooled(self) -> tuple[int, int]:
        """Bytes of records that wait on the disk, and how full that makes the spool, in percent."""
        return (0, 0) if self._spilling is None else (self._spilling.size, self._spilling.percent)

    def look_again(self) -> None:
        """Ask the source for new source splits with the next turn."""
        self._discovered = None

    def forget(self) -> None:
        """Drop what was read and not committed: it is read again, behind what is committed."""
        for one in self._open.values():
            one.reader.close()
        self._open.clear()
        self._held.hold(self, 0)
        self._owned, self._caught_up = None, False

    def close(self) -> None:
        """Drop what is held, and the source's connections. What is owned is kept."""
        self.forget()
        self._source.close()

    def release(self, position: str = "") -> None:
        """Give up what is owned. position: one that was fenced: what is fenced is given up alone.

        Raises:
            UnavailableError, UnknownOutcomeError: some of it is owned as before; call it again.
        """
        names = sorted(self._had)
        if position:
            names = fenced_splits(self.connection.id, self._had, self._newest_owners, position)
        for name in names:
            self._splits.release(name)
            del self._had[name]

    def _discover(self) -> None:
        """Ask the source which source splits there are."""
        now = self._clock.monotonic()
        if self._discovered is None or now - self._discovered >= DISCOVER_SECONDS:
            self._found = {split.name: split for split in self._source.splits()}
            self._discovered, self._owned = now, None

    def _own(self) -> None:
        """Begin with what this process is to own now, and let go of what it is no longer."""
        now = self._clock.monotonic()
        if self._owned is not None and now - self._owned < OWN_SECONDS:
            return
        try:
            given = self._splits.owned(list(self._found), self._newest_owners)
        except (UnavailableError, UnknownOutcomeError) as error:
            if not self._open:
                raise
            events.emit(events.FEED_STORE_AWAY, code=error.code(), reason=str(error))
            self._owned = now  # what it had, it goes on with: others are kept apart by the log
            return
        self._had |= given
        owners = {name: owner for name, owner in given.items() if name in self._found}
        for name, one in list(self._open.items()):
            if owners.get(name) == one.owner:
                one.split, one.is_leaving = self._found[name], False
            elif one.held and name not in owners:
                one.is_leaving = True  # what is held is committed first
            else:
                self._open.pop(name).reader.close()
        for name in sorted(self._had.keys() - owners.keys() - self._open.keys()):
            self._splits.release(name)
            del self._had[name]
        fresh = [self._found[name] for name in owners if name not in self._open]
        if fresh:
            self._begin(fresh, owners)
        self._owned = now

    def _newest_owners(self, names: list[str]) -> Mapping[str, int]:
        return read_committed(self.table, self.connection, names).owners

    def _begin(self, splits: list[SourceSplit], owners: Mapping[str, int]) -> None:
        """Open source splits where the table says that they have been taken to."""
        known = read_committed(self.table, self.connection, [split.name for split in splits])
        starts = {
            split.name: known.splits[split.name]
            if split.name in known.splits
            else SplitAt(None, Position(0, self._source.start(split)))
            for split in splits
        }
        unpinned = [
            SplitRecords[BatchT](name, owners[name], at)
            for name, at in starts.items()
            if at.value is None and at.position.next
        ]
        if unpinned:  # where a feed begins is asked of the source once
            starts |= self._rounds.run(self.table, self.connection, unpinned).at
        for split in splits:
            at = starts[split.name]
            reader = self._source.open(split, count_of(at.position), resume=at.position.resume)
            self._open[split.name] = OpenSplit(split, owners[split.name], at, reader)

    def _read(self) -> bool:
        """Read a little of each source split, as long as there is room."""
        room = min(self._rotation.size - self._waiting().size, self._held.room)
        has_read, self._caught_up, self._before_gap = False, True, False
        for one in in_turn(self._open.values(), self._refused_rows.split):
            if room <= 0 or not self.flow.pace.may_read(self._clock.monotonic()):
                self._caught_up = False
                break
            try:
                records = one.reader.read(bytes_max=max(1, min(room, READ_BYTES)))
            except PositionGoneError as error:
                if one.held:  # they are committed first
                    self._before_gap = True
                    continue
                self._pass_gap(one, error)
                return has_read
            one.is_caught_up = records is None
            if records is None:
                continue
            now = self._clock.monotonic()
            if not has_read and not any(split.held for split in self._open.values()):
                self._since, self._minute = now, minute_of(self._clock.now())
            self._newest = now
            one.held.append(records)
            self.flow.read(records.count)
            room -= records.size
            has_read, self._caught_up = True, False
        self._held.hold(self, self._waiting().size)
        return has_read

    def _pass_gap(self, one: OpenSplit[BatchT], error: PositionGoneError) -> None:
        """Go on behind records that the source no longer has, and record that (protocol R15)."""
        if not self._records_gaps or error.end <= count_of(one.at.position):
            raise error
        name = one.split.name
        gap = SplitRecords[BatchT](name, one.owner, one.at, gap_end=error.end)
        self._open.pop(name).reader.close()
        self._owned, self._caught_up = None, False
        if self._commit_parts([gap]) is not None:
            self._flush.committed(name, error.end)
            events.emit(
                events.FEED_GAP_RECORDED,
                table=self.table.name,
                connection=self.connection.id,
                source_split=name,
                first=error.first,
                end=error.end,
            )

    def _waiting(self) -> Waiting:
        return Waiting(
            size=sum(one.size for one in self._open.values()),
            records=sum(one.count for one in self._open.values()),
            since=self._since,
            newest=self._newest,
            minute=self._minute,
            is_caught_up=self._caught_up,
        )

    def _commit(self) -> RoundCommitted | None:
        """Commit what is held. None: the round was refused, and is read again."""
        reports = self._rotation.reports_silence
        taken = [one for one in self._open.values() if one.held or (reports and one.is_caught_up)]
        self._rotation.reported(self._clock.monotonic())
        done = None
        for first in range(0, len(taken), SPLITS_MAX):
            some = self._commit_splits(taken[first : first + SPLITS_MAX])
            if some is None:
                break
            done = some if done is None else done.plus(some)
        return done

    def _commit_splits(self, taken: list[OpenSplit[BatchT]]) -> RoundCommitted | None:
        """Commit what is held of some source splits. None: the round was refused."""
        has_cut = self._refused_rows.cuts
        done = self._commit_parts(self._refused_rows.taken(parts_of(taken)))
        if done is None:
            return None
        for one in (one for one in taken if one.split.name in done.at):
            one.at = done.at[one.split.name]
            one.held.clear()
            self._flush.committed(one.split.name, count_of(one.at.position))
            one.reader.acknowledge(count_of(one.at.position))
        self._held.hold(self, self._waiting().size)
        if has_cut:
            self.forget()
        return done

    def _commit_parts(self, parts: list[SplitRecords[BatchT]]) -> RoundCommitted | None:
        """Commit a round. None: it was refused, and everything is read again."""
        try:
            relief = self.flow.relief(self._clock.monotonic())
            blame = self._refused_rows.blame(parts)
            done = self._rounds.run(self.table, self.connection, parts, relief, blame)
        except LakebedError as error:  # it may have marked positions before it failed
            self.forget()
            if self._refused_rows.refused(parts, error):
                return None
            is_refused = isinstance(error, AGAIN) and not isinstance(error, OwnerFencedError)
            self._refused = self._refused + 1 if is_refused else 0
            if not is_refused or self._refused >= TRIES_MAX:
                raise
            return None
        self._refused = 0
        self._rotation.committed()
        self._refused_rows.committed(parts, done.tally.stored)
        self.flow.committed(self._clock.monotonic())
        return done
