"""A round of a feed: records of several source splits become rows of one table, in one transaction
with the positions behind them.

Nothing is remembered between two rounds, so a process may be killed anywhere, and several may work
at once: a round begins at the positions that the table's log holds, and is refused if another one
was faster (protocol R1, R2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Generic, TypeVar

import msgspec

from lakebed.feed_errors import TooManyBadError
from lakebed.feeds.committed import (
    CommittedFeed,
    FeedConnection,
    SplitAt,
    commit_until_known,
    count_of,
    hour_of,
    read_committed,
)
from lakebed.feeds.made_rows import KnownBefore, MadeRows, MakeRows
from lakebed.feeds.pacing.congestion import NO_RELIEF, Relief
from lakebed.feeds.pacing.known_items import ForgottenItems, KnownItems
from lakebed.feeds.pacing.left_out import allowed_of, discards_of
from lakebed.feeds.pacing.refused_rows import NO_BLAME, Blame
from lakebed.feeds.pacing.stage_round import stage_round
from lakebed.feeds.quarantine import OwnedSplit, Quarantine
from lakebed.feeds.reading.joined_records import joined, small_together
from lakebed.feeds.round_changes import (
    MadeSplit,
    SplitRecords,
    check_window_count,
    event_time_of,
    gone_but_quarantined,
    recorded_gaps,
    report_bad,
    report_dropped,
    report_progress,
    report_sealed,
    tallies_of,
)
from lakebed.ingest.stage_rows import StagedRows, StageRows, Writer
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import CommitId, JobId, TransactionNumber, digest_of
from lakebed.observe.usage import counted_as
from lakebed.ports.clock import Clock
from lakebed.statestore.log_entries.feed_changes import Count, Define, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import HOUR

BatchT = TypeVar("BatchT")

TURN_MICROS = 600_000_000
"""Microseconds of log time before the end of an hour: the next entry may be of another hour."""
LOOKED_AT = 1_000
"""Records of an hour: of fewer it is not looked how many are bad."""


class RoundCommitted(msgspec.Struct, frozen=True):
    """A round that is in the log.

    number: of the log entry.
    at: where each of its source splits is now.
    tally: of all its records.
    """

    number: TransactionNumber
    at: dict[str, SplitAt]
    tally: Tally

    def plus(self, later: RoundCommitted) -> RoundCommitted:
        """Return this round and one after it, of other source splits, as one."""
        return RoundCommitted(later.number, self.at | later.at, self.tally.plus(later.tally))


class _Round(msgspec.Struct, frozen=True):
    """The inputs that all parts of a round need.

    known: read before its first effect.
    relief: what is left out.
    items: that it takes.
    blame: of its records.
    """

    table: OpenTable
    connection: FeedConnection
    known: CommittedFeed
    items: KnownItems
    relief: Relief
    blame: Blame


class CommitRound(Generic[BatchT]):
    """Stages and commits rounds of one connection.

    quarantine: None where records always become rows.
    errors_fraction_max: of the records of an hour of log time, from `LOOKED_AT` on: a greater share
        of bad ones stops the connection.
    old_items: says when the table forgets items; None: there are none.
    """

    def __init__(
        self,
        *,
        stage: StageRows[BatchT],
        make_rows: MakeRows[BatchT],
        clock: Clock,
        quarantine: Quarantine[BatchT] | None = None,
        errors_fraction_max: float = 1.0,
        old_items: ForgottenItems | None = None,
    ) -> None:
        self._stage = stage
        self._make_rows = make_rows
        self._clock = clock
        self._quarantine = quarantine
        self._errors_fraction_max = errors_fraction_max
        self._old_items = old_items

    def first(self, batch: BatchT, count: int) -> tuple[BatchT, int, int]:
        """Return the first records of a batch, as `MakeRows` does."""
        return self._make_rows.first(batch, count)

    @counted_as("feeds")
    def run(
        self,
        table: OpenTable,
        connection: FeedConnection,
        parts: Sequence[SplitRecords[BatchT]],
        relief: Relief = NO_RELIEF,
        blame: Blame = NO_BLAME,
    ) -> RoundCommitted:
        """Commit records with the positions behind them, all or none.

        relief: what of them is left out, as they are too many.
        blame: which record's row the table refused, as was found out.

        Raises:
            PositionMovedError, ItemsTakenError, GenerationError, FencedError: forget these records,
                read the committed positions and the records behind them again.
            OwnerFencedError: another worker has taken a source split over.
            DefinitionMovedError: the table knows a newer definition.
            RecordRefusedError: the policy stops the connection at one of the records; those before
                it are committed.
            TooManyBadError: the policy stops it, as too many of this hour's records are bad; all of
                these are committed.
            TooManyWindowsError, RowsRefusedError: bring fewer records.
            InvalidError: the table refuses whatever rows there are.
            TableBusyError: compaction must catch up first.
            UnavailableError, ConflictError, UnknownOutcomeError: begin again: what was committed is
                found.
        """
        begun = self._clock.monotonic()
        known = read_committed(table, connection, [part.split for part in parts])
        items = [item for part in parts for records in part.records for item in records.items]
        if self._old_items is not None:
            self._old_items.forget(table, connection)
        known_items = KnownItems(table, connection, items)
        round_ = _Round(table, connection, known, known_items, relief, blame)
        made = self._made(round_, parts)
        refusals = [one.refusal for one in made if one.refusal is not None]
        if refusals and not any(map(_has_moved, made)):  # tried again, it makes no entry
            raise refusals[0]
        done = self._committed(round_, parts, made)
        report_progress(table.name, connection, done.tally, self._clock.monotonic() - begun)
        report_dropped(table.name, connection, made)
        if self._make_rows.windows is not None:
            report_sealed(table, connection, done.number, known.sealed)
        hour = hour_of(table, connection) if done.tally.quarantined else Tally()
        report_bad(table.name, connection, hour)
        if refusals:  # what came before is committed
            raise refusals[0]
        self._refuse_too_many_bad(hour)
        return done

    def _refuse_too_many_bad(self, hour: Tally) -> None:
        """Stop in an hour with too many bad records. It is not looked before a round: log time
        rises with entries alone, so the hour of a table that only this connection fills would never
        end. hour: behind a round with bad records; else empty."""
        if hour.read >= LOOKED_AT and hour.quarantined > self._errors_fraction_max * hour.read:
            raise TooManyBadError(
                "too many of this hour's records are bad",
                read=hour.read,
                bad=hour.quarantined,
                fraction_max=self._errors_fraction_max,
            )

    def _committed(
        self,
        round_: _Round,
        parts: Sequence[SplitRecords[BatchT]],
        made: Sequence[MadeSplit[BatchT]],
    ) -> RoundCommitted:
        """Stage all rows, and commit them with all that is to be said of the records."""
        table, connection, start = round_.table, round_.connection, round_.known.start
        id_ = table.fresh_id()
        writer = Writer(start.base, JobId(id_), table.fresh_run())
        rows = [one for split in made for one in split.rows]
        row = None if round_.blame.is_proven else self._make_rows.row
        staged = stage_round(
            self._stage, table, self._make_rows.schema, rows, writer=writer, row=row
        )
        tallies = tallies_of(made, staged)
        errors = {one.part.split: one.rows[-1].errors_in_row for one in made if one.rows}
        moves = {
            one.part.split: one.at.moved(
                connection.id, one.part.split, _behind(one), one.part.owner
            )
            for one in made
        }
        changes = (
            *_changes(round_, staged, tallies, errors),
            *recorded_gaps(connection, parts),
            *event_time_of(connection, made, self._make_rows.windows),
        )
        number = commit_until_known(
            table,
            Transaction(
                CommitId(id_),
                digest_of(id_.encode()),
                start.base,
                start.generation,
                changes,
                tuple(move.change for move in moves.values()),
            ),
        )
        tally = reduce(Tally.plus, tallies.values(), Tally())
        return RoundCommitted(number, {split: move.to for split, move in moves.items()}, tally)

    def _made(
        self, round_: _Round, parts: Sequence[SplitRecords[BatchT]]
    ) -> list[MadeSplit[BatchT]]:
        """Return the rows of all records; what can be none is in the quarantine by then."""
        made = [MadeSplit(part, part.at) for part in parts]
        held: dict[str, tuple[BatchT, ...]] = {}
        in_quarantine: dict[str, SplitAt] = {}
        pending = [part for part in parts if part.at.position.is_pending]
        if pending and self._quarantine is not None:
            found = self._quarantine.take_over(
                round_.table,
                round_.known.start,
                round_.connection,
                _owned(pending),
                _ends(pending),
            )
            held = {split: one.rows for split, one in found.items()}
            in_quarantine = {split: one.in_quarantine for split, one in found.items()}
            made = [
                MadeSplit(one.part, found[one.part.split].at) if one.part in pending else one
                for one in made
            ]
        made = [
            self._rows_of(round_, one, held.get(one.part.split, ()), in_quarantine) for one in made
        ]
        check_window_count(made)
        bad = [one for one in made if any(rows.quarantine is not None for rows in one.rows)]
        if bad:
            made = self._quarantined(round_, made, bad, in_quarantine)
        return made

    def _rows_of(
        self,
        round_: _Round,
        one: MadeSplit[BatchT],
        held: Sequence[BatchT],
        in_quarantine: Mapping[str, SplitAt],
    ) -> MadeSplit[BatchT]:
        split, rows = one.part.split, list[MadeRows[BatchT]]()
        errors_in_row = round_.known.errors_in_row.get(split, 0)
        together = small_together(one.part.records)
        discards = _discards(round_, split, [sum(r.count for r in some) for some in together])
        last = one.at.position.last
        for some, discard_last in zip(together, discards, strict=True):
            records = joined(some, self._make_rows.concat)
            before = KnownBefore(
                in_quarantine=held,
                in_table=round_.items.in_table(records),
                are_new=round_.items.are_new,
                errors_in_row=errors_in_row,
                log_time=round_.known.log_time,
                sealed=round_.known.sealed,
                keep=round_.relief.keep,
                discard_last=discard_last,
                last=last,
                refused=round_.blame.records.get(split, ""),
            )
            rows.append(self._make_rows(split, records, before))
            errors_in_row, last = rows[-1].errors_in_row, rows[-1].last
            if rows[-1].refusal is not None:
                break
        if one.part.gap_end is not None and held and self._quarantine is not None:
            rows.append(gone_but_quarantined(self._quarantine.count(held), errors_in_row))
        reach = count_of(in_quarantine[split].position) if split in in_quarantine else 0
        return MadeSplit(one.part, one.at, tuple(rows), reach)

    def _quarantined(
        self,
        round_: _Round,
        made: list[MadeSplit[BatchT]],
        bad: Sequence[MadeSplit[BatchT]],
        in_quarantine: Mapping[str, SplitAt],
    ) -> list[MadeSplit[BatchT]]:
        assert self._quarantine is not None, "who makes bad rows was given a quarantine"
        parts = [one.part for one in bad]
        fresh = [part for part in parts if part.split not in in_quarantine]
        at = dict(in_quarantine)
        marked: dict[str, SplitAt] = {}
        if fresh:
            at |= self._quarantine.look(round_.connection, [part.split for part in fresh])
            marked = self._quarantine.mark(
                round_.table, round_.known.start, round_.connection, _owned(fresh)
            )
        rows = [r.quarantine for one in bad for r in one.rows if r.quarantine is not None]
        ends = {one.part.split: one.end for one in bad}
        self._quarantine.add(round_.connection, _owned(parts), at, rows, ends)
        return [msgspec.structs.replace(one, at=marked.get(one.part.split, one.at)) for one in made]


def _discards(round_: _Round, split: str, counts: Sequence[int]) -> list[int]:
    """Return how many of the last records of each batch are left out. counts: of its records."""
    fraction = round_.relief.discards
    if not fraction or not counts:
        return [0] * len(counts)
    tally = hour_of(round_.table, round_.connection, split)
    may_turn = HOUR - round_.known.log_time % HOUR < TURN_MICROS
    allowed = allowed_of(fraction, tally, sum(counts), may_turn=may_turn)
    return discards_of(counts, allowed)


def _owned(parts: Sequence[SplitRecords[BatchT]]) -> list[OwnedSplit]:
    return [OwnedSplit(part.split, part.owner, part.at) for part in parts]


def _ends(parts: Sequence[SplitRecords[BatchT]]) -> dict[str, int]:
    return {part.split: part.end for part in parts}


def _has_moved(one: MadeSplit[BatchT]) -> bool:
    """Return whether there is something to commit of a source split."""
    return one.at is not one.part.at or one.end != count_of(one.at.position)


def _behind(one: MadeSplit[BatchT]) -> Position:
    """Return the position behind a source split's records."""
    position, part = one.at.position, one.part
    is_whole = part.records and one.refusal is None
    resume = part.records[-1].resume if is_whole else position.resume
    return Position(
        position.revision + 1,
        one.end,
        position.incarnation,
        resume,
        is_pending=one.reach > one.end,
        last=one.last,
    )


def _changes(
    round_: _Round,
    staged: StagedRows,
    tallies: Mapping[str, Tally],
    errors_in_row: Mapping[str, int],
) -> tuple[Change, ...]:
    connection, changes = round_.connection, list[Change]()
    if not round_.known.is_defined:
        changes.append(Define(connection.id, connection.version))
    if staged.references:
        changes.append(AddFiles(staged.references))
    changes += [
        Count(connection.id, connection.version, split, tally, errors_in_row[split])
        for split, tally in tallies.items()
        if tally.read
    ]
    if round_.items.fresh:
        changes.append(TakeItems(connection.id, tuple(round_.items.fresh)))
    return tuple(changes)
