"""Looks at each entry of a table that a feed fills: positions, owners, versions and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from lakebed.model.feeds.positions import decode_position
from lakebed.model.feeds.replays import replay_of
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import Micros, TransactionNumber
from lakebed.statestore.log_entries.feed_changes import Count, RecordGap
from lakebed.statestore.log_entries.transactions import PositionChange, Transaction
from lakebed.statestore.table_state.state import Moment
from tests.simulation.auditor import Auditor
from tests.simulation.violation import FED_LEDGER, FED_OWNERS, FED_TILES, FED_VERSIONS, Violation


class Taken(msgspec.Struct, frozen=True):
    """A range of a source split that an entry took, or passed over. left_out: how many of its
    records a policy left out. at: log time of the entry."""

    number: TransactionNumber
    split: str
    begin: int
    end: int
    is_gap: bool
    left_out: int = 0
    read: int = 0
    at: Micros = Micros(0)


class FedAuditor(Auditor):
    """An auditor that looks at positions, too. records_in: how many records the source has, by
    source split, between two positions; None: this table counts none."""

    records_in: Callable[[str, int, int], int] | None = None

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - what auditors are given
        super().__init__(*given)
        self.taken: list[Taken] = []
        self.from_quarantine: list[Taken] = []
        self.versions: Counter[str] = Counter()

    def _note(self, transaction: Transaction, moment: Moment) -> None:
        super()._note(transaction, moment)
        gaps = {c.source_split for c in transaction.changes if isinstance(c, RecordGap)}
        tallies = {c.source_split: c.tally for c in transaction.changes if isinstance(c, Count)}
        for change in transaction.changes:
            if isinstance(change, Count):
                if change.version < self.versions[change.connection]:
                    story = f"entry {moment.number} has rows of version {change.version}"
                    raise Violation(FED_VERSIONS, story)
                self.versions[change.connection] = change.version
        for move in transaction.positions:
            self._note_move(move, moment, gaps, tallies)

    def _note_move(
        self, move: PositionChange, moment: Moment, gaps: set[str], tallies: dict[str, Tally]
    ) -> None:
        found, owner = self.state.position(move.name) or (None, 0)
        if found != move.expected:
            raise Violation(FED_TILES, f"entry {moment.number} does not begin at {move.name}")
        if move.owner < owner:
            raise Violation(FED_OWNERS, f"entry {moment.number} is of owner {move.owner}")
        _, _, split = move.name.partition("/")
        replay = replay_of(split)
        end = decode_position(move.value).next
        if self.records_in is None:
            return
        begin = 0 if found is None else decode_position(found).next
        assert isinstance(begin, int)
        assert isinstance(end, int)
        if begin == end or (found is None and split not in tallies):  # where a feed begins
            return
        if replay is not None:
            self.from_quarantine.append(
                Taken(moment.number, replay.split, begin, end, is_gap=False)
            )
            return
        tally = tallies.get(split, Tally())
        left_out = tally.sampled_out + tally.discarded
        self.taken.append(
            Taken(moment.number, split, begin, end, split in gaps, left_out, tally.read, moment.at)
        )
        if split not in gaps and tally.read != self.records_in(split, begin, end):
            story = f"entry {moment.number} counts {tally.read} records of {begin}-{end}"
            raise Violation(FED_LEDGER, story)
