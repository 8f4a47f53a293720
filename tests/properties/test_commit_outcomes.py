"""Three heads and nested writers over a log whose appends are lost, late, unanswered, throttled, or
told "taken" by their own try: every answer is the truth (H1 to H7).

`LAKEBED_SEEDS=7,42` replays seeds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from lakebed.backends.faulty.faults import Fault, Faults
from lakebed.backends.faulty.transaction_logs import FaultyTransactionLog
from lakebed.backends.memory import MemoryTransactionLog, VirtualClock
from lakebed.errors import (
    ConflictError,
    InvalidError,
    LakebedError,
    LogConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.files import FileReference, KeyBounds, StoredFile
from lakebed.model.names import JobId, PartitionId, TransactionNumber, digest_of, file_name
from lakebed.statestore.answers import PendingCommit, Retry
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor, ReleaseClaim
from lakebed.statestore.log_entries.table_changes import PutPin, create_table
from lakebed.statestore.log_entries.transactions import Change, PositionChange, Transaction
from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import Moment, TableState
from tests.dsl.table_story import SCHEMA, next_position

SEEDS = [int(seed) for seed in os.environ.get("LAKEBED_SEEDS", "").split(",") if seed]
COMMITS = 25
Answer = TransactionNumber | LakebedError


class World:
    """One log, its ill luck, and everybody's answers."""

    def __init__(self, seed: int, head: type[TableHead]) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.log = MemoryTransactionLog(self.clock)
        self.faults = Faults(random.Random(seed + 1), let_another_run=self.one_more)
        self.head_class = head
        self.answers: dict[str, list[Answer]] = {}
        self.commits = 0
        self.depth = 0
        creation = Transaction(
            "create",  # type: ignore[arg-type]  # a name is enough
            digest_of(b"create"),
            TransactionNumber(0),
            0,  # type: ignore[arg-type]  # before the first generation
            (create_table(SCHEMA, {}, ()),),
        )
        self.calm_head().commit(creation)
        self.heads = [self.head() for _ in range(3)]

    def head(self) -> TableHead:
        log = FaultyTransactionLog(self.log, self.faults)
        retry = Retry(seconds_max=self.rng.choice([0, 0.01, 0.05]), throttled_seconds=0.01)
        state = TableState(open_memory())
        return self.head_class(log, state, clock=self.clock, rng=self.rng, retry=retry)

    def calm_head(self) -> TableHead:
        state = TableState(open_memory())
        return TableHead(self.log, state, clock=self.clock, rng=self.rng)

    def one_more(self) -> None:
        """Let a writer with a head of its own do one piece of work."""
        self.depth += 1
        self.work(self.head())
        self.depth -= 1

    def work(self, head: TableHead) -> None:
        """Commit a group, perhaps again through other heads, and note the answers."""
        with suppress(UnavailableError):
            head.follow()
        group = [self.transaction(head) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        if self.rng.random() < 0.1:
            group.append(group[0])
        for _ in range(self.rng.randrange(1, 4)):
            for transaction, answer in zip(group, head.commit_group(group), strict=True):
                self.answers.setdefault(transaction.id, []).append(answer)
            if self.rng.random() < 0.5:
                return
            head = self.rng.choice(self.heads) if self.depth == 0 else self.head()

    def transaction(self, head: TableHead) -> Transaction:
        self.commits += 1
        base = head.state.head().number
        id_ = f"commit-{self.commits}"
        return Transaction(
            id_,  # type: ignore[arg-type]  # a name is enough
            digest_of(id_.encode()),
            base,
            1,  # type: ignore[arg-type]  # the first generation
            (self.change(base),),
            self.positions(head),
        )

    def change(self, base: TransactionNumber) -> Change:
        kind = self.rng.random()
        if kind < 0.15:
            floor = max(0, base - self.rng.randrange(3))
            return RaiseFloor(TransactionNumber(floor))
        if kind < 0.2:
            return ReleaseClaim(JobId("nobody"))
        if kind < 0.5:
            return PutPin(f"pin-{self.commits}", self.clock.now())
        same = self.rng.random() < 0.3  # others may be adding it at this moment
        job = JobId("same" if same else f"job-{self.commits}")
        name = file_name(base=base, job=job, run=0, sequence=0)
        stored = StoredFile(name, 10, 5, 1, 1)
        reference = FileReference(stored, PartitionId(1), 1, KeyBounds(b"", None))
        return AddFiles((reference,))

    def positions(self, head: TableHead) -> tuple[PositionChange, ...]:
        if self.rng.random() < 0.8:
            return ()
        found = head.state.position("topic")
        return (next_position("topic", found[0] if found else None, self.commits),)

    def check(self) -> None:
        """Compare every answer with the log."""
        self.faults.settle()
        self.faults.rates, self.faults.let_another_run = {}, None
        landed: dict[str, int] = {}
        for number, body in self.log.read_after(TransactionNumber(0)):
            for transaction in decode_entry(body, number).transactions:
                assert transaction.id not in landed, f"{transaction.id} is in the log twice"
                landed[transaction.id] = number
        for id_, answers in self.answers.items():
            self._check_answers(id_, answers, landed.get(id_))
        replay = self.calm_head()
        replay.follow()
        for head in self.heads:
            head.follow()
            assert head.state.digest() == replay.state.digest()

    def _check_answers(self, id_: str, answers: Sequence[Answer], number: int | None) -> None:
        told = [answer for answer in answers if isinstance(answer, int)]
        assert set(told) <= {number}, f"{id_}: told {told}, is in entry {number}"
        may_have_landed = told or any(isinstance(a, UnknownOutcomeError) for a in answers)
        assert may_have_landed or number is None, f"{id_}: told {answers}, is in entry {number}"


def run(seed: int, head: type[TableHead] = TableHead) -> Faults:
    world = World(seed, head)
    for _ in range(COMMITS):
        world.work(world.rng.choice(world.heads))
    world.check()
    return world.faults


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(60, 300)]


@pytest.mark.parametrize("seed", SEEDS or [*range(60), *SLOW])
def test_every_answer_is_the_truth(seed: int) -> None:
    run(seed)


def test_every_fault_of_a_log_happens() -> None:
    fired = sum((run(seed).fired for seed in range(20)), start=run(20).fired)
    wanted = [fault for fault in Fault if fault.name.startswith(("APPEND", "LOG", "ANOTHER"))]
    assert all(fired[fault] for fault in wanted), fired


class ForgetsOpenTries(TableHead):
    """Lets "nothing was written" escape after a try without an answer."""

    def _append(
        self, moment: Moment, accepted: tuple[Transaction, ...], riders: Sequence[PendingCommit]
    ) -> None:
        try:
            super()._append(moment, accepted, riders)
        except UnavailableError:
            for member in riders:
                member.unresolved = None
            raise


class TakesTakenForNotMine(TableHead):
    """Believes that a number that is taken was taken by another."""

    def _append(
        self, moment: Moment, accepted: tuple[Transaction, ...], riders: Sequence[PendingCommit]
    ) -> None:
        try:
            super()._append(moment, accepted, riders)
        except LogConflictError:
            for member in riders:
                member.unresolved = None
            raise


class BelievesTheFloor(TableHead):
    """Does not look for an id that the floor may have made the state forget."""

    def _looked_up(
        self, transaction: Transaction, tried: TransactionNumber
    ) -> TransactionNumber | LakebedError | None:
        return None


class AnswersNeighbours(TableHead):
    """Answers a refusal that rests on a neighbour before the entry is in the log."""

    def _append(
        self, moment: Moment, accepted: tuple[Transaction, ...], riders: Sequence[PendingCommit]
    ) -> None:
        for member in riders:
            member.answer = moment.number
        super()._append(moment, accepted, riders)


@pytest.mark.parametrize(
    "twin", [ForgetsOpenTries, TakesTakenForNotMine, BelievesTheFloor, AnswersNeighbours]
)
def test_a_head_that_does_not_tell_the_truth_is_caught(twin: type[TableHead]) -> None:
    def lies(seed: int) -> bool:
        try:
            run(seed, twin)
        except AssertionError:
            return True
        return False

    assert any(lies(seed) for seed in range(100))


def test_refusals_are_of_kinds_that_say_nothing_was_written() -> None:
    world = World(0, TableHead)
    for _ in range(COMMITS):
        world.work(world.rng.choice(world.heads))
    answers = [a for told in world.answers.values() for a in told if isinstance(a, LakebedError)]
    kinds = (ConflictError, UnavailableError, InvalidError, UnknownOutcomeError)
    assert {a for a in answers if isinstance(a, kinds)}
