"""The last act of a world: a log loses its last entries, and perhaps goes on without them.

Everything before is over and was looked at. Who knows what was lost neither commits behind the gap
nor shows what the log does not hold (H33, H34); who does not know goes on behind the last entry.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from lakebed.errors import LakebedError, LogRolledBackError
from lakebed.model.names import CommitId, Micros, TransactionNumber, digest_of, entry_checksum
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.log_entries.transactions import Transaction, finish_entry
from lakebed.statestore.table_state.state import Moment, TableState
from tests.simulation.auditor import Auditor
from tests.simulation.faults.weather import Mishap
from tests.simulation.new_state import new_state, state_in
from tests.simulation.observed import ObservedLog
from tests.simulation.violation import BEHIND_GAP, SHOWN, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World

LOST_MAX = 4


class _Deaf(Auditor):
    """Hears nothing: the world's own log is left as it is."""

    def __init__(self) -> None:
        """Know nothing."""

    def landed(self, number: TransactionNumber, body: bytes) -> None:
        """Look at nothing."""


def check_rolled_back(world: World) -> None:
    """Restore a copy of the main table's log to an earlier time, and let its users go on."""
    auditor = world.auditors[world.main.id]
    log = world.shared.logs.open(world.main.id)
    kept = auditor.number - log._oldest
    if kept < 1 or auditor.state.head().dropped:
        return
    lost = world.rng.randint(1, min(LOST_MAX, kept))
    ends = TransactionNumber(auditor.number - lost)
    copy = world.shared.parts.log(world.clock, _Deaf())
    copy._bodies = {number: body for number, body in log._bodies.items() if number <= ends}
    copy._oldest = log._oldest
    world.weather.happened[Mishap.LOG_ROLLED_BACK] += 1
    more = world.rng.choice((0, 0, lost, world.rng.randint(1, LOST_MAX + 1)))
    if more:
        world.weather.happened[Mishap.LOG_WENT_ON] += 1
        bystander = _head(world, copy, _state_at(auditor, ends))
        for _ in range(more):  # time that has passed may be told in an entry of its own
            bystander.commit(_pin(world, bystander))
        _check_whole(copy)
        bystander.state.connection.close()
    knowing = _head(world, copy, state_in(auditor.state.connection.serialize()))
    steps = [_check_commit, _check_read]
    for step in world.rng.sample(steps, len(steps)):
        step(world, copy, knowing)
    knowing.state.connection.close()


def _check_whole(log: ObservedLog) -> None:
    numbers = sorted(log._bodies)
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise Violation(BEHIND_GAP, f"the log has a gap: {numbers}")


def _check_commit(world: World, log: ObservedLog, knowing: TableHead) -> None:
    before = dict(log._bodies)
    try:
        number = knowing.commit(_pin(world, knowing))
    except LogRolledBackError:
        number = None
    except LakebedError as error:
        raise Violation(BEHIND_GAP, f"the commit is told: {error}") from error
    if number is not None or log._bodies != before:
        story = f"entry {number} is acknowledged, the log ended at {max(before)}"
        raise Violation(BEHIND_GAP, story)


def _check_read(_: World, log: ObservedLog, knowing: TableHead) -> None:
    try:
        with knowing.reading() as state:
            number = state.head().number
    except LogRolledBackError:
        return
    story = f"state {number} is shown, and the log of {max(log._bodies)} entries is another"
    raise Violation(SHOWN, story)


def _head(world: World, log: ObservedLog, state: TableState) -> TableHead:
    return world.shared.parts.head(
        log,
        state,
        clock=world.clock,
        rng=random.Random(world.rng.getrandbits(64)),
        retry=Retry(seconds_max=0.0),
    )


def _pin(world: World, head: TableHead) -> Transaction:
    known = head.state.head()
    id_ = f"pin-{world.rng.getrandbits(64):016x}"
    until = Micros(known.at + 1)
    return Transaction(
        CommitId(id_),
        digest_of(id_.encode()),
        known.number,
        known.generation,
        (PutPin(id_, until),),
    )


def _state_at(auditor: Auditor, number: TransactionNumber) -> TableState:
    """Return the state at an entry, made from all entries before it."""
    state = new_state()
    with state.writing():
        for at in range(1, number + 1):
            body = auditor.bodies[at - 1]
            entry = decode_entry(body, at)
            moment = Moment(TransactionNumber(at), entry.at)
            for transaction in entry.transactions:
                transaction.apply(state, moment)
            finish_entry(state, moment, entry_checksum(body))
    return state
