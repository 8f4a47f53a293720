"""Twins of the parts of feeds, each with exactly one rule of `docs/protocol.md` broken."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakebed.errors import UnknownOutcomeError
from lakebed.feed_errors import PositionMovedError
from lakebed.feeds import commit_round, pipeline, quarantine
from lakebed.feeds.commit_round import CommitRound, RoundCommitted
from lakebed.feeds.committed import CommittedFeed, FeedConnection, SplitAt
from lakebed.feeds.quarantine import OwnedSplit, Quarantine
from lakebed.feeds.round_changes import SplitRecords
from lakebed.ingest.stage_rows import StagedRows
from lakebed.landing import quarantine_source
from lakebed.landing.quarantine_source import PlannedReplay
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import CommitId, TransactionNumber, digest_of
from lakebed.statestore.log_entries import feed_changes, transactions
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import PositionChange, Transaction
from lakebed.statestore.open_table import OpenTable
from tests.simulation import violation as v
from tests.simulation.feeds import fed_actors
from tests.simulation.feeds.fed_world import FedWorld
from tests.simulation.feeds.model_source import ModelSource

Patch = Callable[[pytest.MonkeyPatch], None]


def position_apart_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: rows are committed, then their position by a transaction of its own."""
    commit = commit_round.commit_until_known
    monkeypatch.setattr(transactions, "check_ledger", lambda *_, **__: None)

    def twice(table: OpenTable, whole: Transaction) -> TransactionNumber:
        rows = tuple(change for change in whole.changes if isinstance(change, AddFiles))
        rest = tuple(change for change in whole.changes if not isinstance(change, AddFiles))
        if rows:
            commit(table, msgspec.structs.replace(whole, changes=rows, positions=()))
        id_ = CommitId(table.fresh_id())
        other = msgspec.structs.replace(whole, id=id_, digest=digest_of(id_.encode()), changes=rest)
        return commit(table, other)

    monkeypatch.setattr(commit_round, "commit_until_known", twice)


def positions_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """R2: a position is set without a look at the one that it starts from."""
    monkeypatch.setattr(PositionChange, "check", lambda *_: None)


def owners_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: an owner that was replaced goes on."""
    check = PositionChange.check

    def unowned(self: PositionChange, state: Any) -> None:  # noqa: ANN401 - a state
        _, owner = state.position(self.name) or (None, 0)
        check(msgspec.structs.replace(self, owner=max(owner, self.owner)), state)

    monkeypatch.setattr(PositionChange, "check", unowned)


def no_answer_is_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    """R4: a commit without an answer is taken for one that landed; and what is behind a position
    that the table does not have is taken for a place to begin."""
    commit = commit_round.commit_until_known

    def hopeful(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        try:
            return commit(table, transaction)
        except UnknownOutcomeError:
            return TransactionNumber(0)

    monkeypatch.setattr(commit_round, "commit_until_known", hopeful)
    monkeypatch.setattr(PositionChange, "check", lambda *_: None)


def refused_rows_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """R6: a round that was refused is offered again, behind the position that was found."""
    run = CommitRound.run

    def stubborn(
        self: CommitRound[Any],
        table: OpenTable,
        connection: FeedConnection,
        parts: Sequence[SplitRecords[Any]],
        *given: Any,  # noqa: ANN401 - as it takes
    ) -> RoundCommitted:
        try:
            return run(self, table, connection, parts, *given)
        except PositionMovedError:
            known = commit_round.read_committed(table, connection, [p.split for p in parts])
            moved = [
                msgspec.structs.replace(part, at=known.splits.get(part.split, part.at))
                for part in parts
            ]
            return run(self, table, connection, moved, *given)

    monkeypatch.setattr(CommitRound, "run", stubborn)


def filtered_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R12: the ledger leaves out what the filter left out."""
    tallies = commit_round.tallies_of

    def fewer(made: Any, staged: StagedRows) -> dict[str, Tally]:  # noqa: ANN401 - a private type
        found = tallies(made, staged)
        return {
            split: msgspec.structs.replace(t, filtered=0, read=t.read - t.filtered)
            for split, t in found.items()
        }

    monkeypatch.setattr(commit_round, "tallies_of", fewer)


def left_out_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R14: records that a policy leaves out are dropped, and no entry says so."""
    tallies = commit_round.tallies_of

    def fewer(made: Any, staged: StagedRows) -> dict[str, Tally]:  # noqa: ANN401 - a private type
        return {
            split: msgspec.structs.replace(
                t, sampled_out=0, discarded=0, read=t.read - t.sampled_out - t.discarded
            )
            for split, t in tallies(made, staged).items()
        }

    monkeypatch.setattr(commit_round, "tallies_of", fewer)


def dropped_then_nothing_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """R14: what is discarded is dropped as soon as it is read, and no commit counts it."""
    read = pipeline.Pipeline._read

    def dropping(self: pipeline.Pipeline[Any]) -> bool:
        has_read = read(self)
        for one in self._open.values():
            if self.flow.congestion.relief.discards and len(one.held) > 1:
                one.held.pop(0)  # the newest that are held stay, so the position moves beyond it
        return has_read

    monkeypatch.setattr(pipeline.Pipeline, "_read", dropping)


def quarantine_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """R13: a worker that takes over believes its own decoder."""
    monkeypatch.setattr(Quarantine, "_rows", lambda *_: ())


def quarantine_is_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """R13: records are added to the quarantine before the table's position is marked."""

    def unmarked(
        _self: object, _table: object, _start: object, _connection: object, splits: list[OwnedSplit]
    ) -> dict[str, SplitAt]:
        return {one.split: one.at for one in splits}

    monkeypatch.setattr(Quarantine, "mark", unmarked)


def quarantine_is_added_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """R13: who takes over does not move the quarantine's own position."""
    commit = quarantine.commit_until_known

    def unmoved(table: OpenTable, transaction: Transaction) -> TransactionNumber:
        if table.name == "quarantine":
            transaction = msgspec.structs.replace(transaction, positions=())
        return commit(table, transaction)

    monkeypatch.setattr(quarantine, "commit_until_known", unmoved)


def gaps_are_passed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """R15: a source that has records no longer is read from the first that it has."""
    monkeypatch.setattr(commit_round, "recorded_gaps", lambda *_: ())


def old_definitions_land(monkeypatch: pytest.MonkeyPatch) -> None:
    """R17: a worker never looks, and nothing else does."""
    monkeypatch.setattr(feed_changes, "check_version", lambda *_: None)
    read = commit_round.read_committed

    def blind(table: OpenTable, connection: FeedConnection, splits: Iterable[str]) -> CommittedFeed:
        newest = msgspec.structs.replace(connection, version=1_000_000)
        found = read(table, newest, splits)
        return msgspec.structs.replace(found, is_defined=False)

    monkeypatch.setattr(feed_changes.Define, "check", lambda *_: None)
    monkeypatch.setattr(commit_round, "read_committed", blind)
    monkeypatch.setattr(pipeline, "read_committed", blind)


def replay_takes_all_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """R2: a replay takes what earlier ones have taken."""
    plan = quarantine_source.next_replays

    def forgetful(
        positions: Mapping[str, Position], finished: Sequence[PlannedReplay]
    ) -> list[PlannedReplay]:
        return [msgspec.structs.replace(one, earlier_end=0) for one in plan(positions, finished)]

    monkeypatch.setattr(quarantine_source, "next_replays", forgetful)


def replay_is_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """R4: a replay that another process has begun is passed over by the next one."""
    newest = quarantine_source.unfinished_replays
    plan = quarantine_source.next_replays
    monkeypatch.setattr(quarantine_source, "unfinished_replays", lambda _: [])
    monkeypatch.setattr(
        quarantine_source, "next_replays", lambda found, _: plan(found, newest(found))
    )


class KnowsNames(ModelSource):
    """R16: a source split is known by its name alone."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, lambda topic, _made: topic)


class ReplaysOften(FedWorld):
    """A world whose operators replay the quarantine all the time."""

    def __init__(self, seed: int, scratch: Path) -> None:
        super().__init__(seed, scratch)
        self.weights[self.actors.index(fed_actors.replay)] = 80


class GoesByNames(FedWorld):
    """A world whose source splits have no incarnation."""

    source_type = KnowsNames


class FedTwin(msgspec.Struct, frozen=True):
    """One broken rule, and the checkers of which one must notice it."""

    checkers: frozenset[str]
    patches: tuple[Patch, ...] = ()
    world: type[FedWorld] = FedWorld


def _twin(*checkers: str, patch: Patch | None = None, world: type[FedWorld] = FedWorld) -> FedTwin:
    return FedTwin(frozenset(checkers), () if patch is None else (patch,), world)


FED_TWINS: dict[str, FedTwin] = {
    "position apart from its rows": _twin(v.FED_ROWS, v.FED_LEDGER, patch=position_apart_from_rows),
    "position without the one before": _twin(v.FED_TILES, patch=positions_are_set),
    "older owner": _twin(v.FED_OWNERS, patch=owners_are_equal),
    "no answer is yes": _twin(v.FED_TILES, patch=no_answer_is_yes),
    "refused rows sent again": _twin(v.FED_ROWS, v.FED_LEDGER, patch=refused_rows_are_sent_again),
    "filtered are not counted": _twin(v.FED_LEDGER, patch=filtered_are_not_counted),
    "dropped, then nothing is committed": _twin(
        v.FED_LEDGER, patch=dropped_then_nothing_is_committed
    ),
    "left out are not counted": _twin(v.FED_LEDGER, v.FED_ROWS, patch=left_out_are_not_counted),
    "quarantine is not read": _twin(v.FED_ROWS, v.FED_LEDGER, patch=quarantine_is_not_read),
    "quarantine is not marked": _twin(v.FED_ROWS, v.FED_LEDGER, patch=quarantine_is_not_marked),
    "quarantine is added to unseen": _twin(
        v.FED_ROWS, v.FED_LEDGER, patch=quarantine_is_added_unseen
    ),
    "replay takes all again": _twin(v.FED_ROWS, v.FED_LEDGER, patch=replay_takes_all_again),
    "replay is not finished": _twin(
        v.FED_ROWS, v.FED_LEDGER, patch=replay_is_not_finished, world=ReplaysOften
    ),
    "silent gap": _twin(v.FED_LEDGER, patch=gaps_are_passed_in_silence),
    "source split by name": _twin(v.FED_ROWS, v.FED_LEDGER, v.ENDS, world=GoesByNames),
    "old definition": _twin(v.FED_VERSIONS, patch=old_definitions_land),
}
