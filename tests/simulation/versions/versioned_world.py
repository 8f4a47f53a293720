"""A world of versions: tags and late pins on versions that collections and truncations are about to
take."""

from __future__ import annotations

from pathlib import Path

from lakebed.errors import LakebedError
from lakebed.model.names import TransactionNumber, base_of, entry_checksum
from lakebed.query.follow_changes import Following
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.transactions import finish_entry
from lakebed.statestore.log_entries.version_changes import RaiseHorizon
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.past_states import past_state
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.kept_versions import followers_of, horizon_of, tags_of
from lakebed.statestore.table_state.state import Moment, TableState
from tests.simulation.auditor import Auditor
from tests.simulation.ending import tables
from tests.simulation.faults.weather import Mishap
from tests.simulation.machine import Machine, Parts
from tests.simulation.new_state import new_state
from tests.simulation.rows import rows_asked
from tests.simulation.versions.version_actors import (
    VERSION_ACTORS,
    WHILE_OTHERS_STALL,
    checked_changes,
)
from tests.simulation.violation import FOLLOWED, KEPT, LEAKS, REPLAY, Violation
from tests.simulation.world import World

VERSIONS_CHECKED = 2
"""Of those with tags, at the end of a world."""


class VersionedWorld(World):
    """All that one seed decides. is_harsh: tasks stall often, as it hurts twins."""

    may_use_parquet = False
    tasks, tasks_long = 25, 60
    while_others_stall = WHILE_OTHERS_STALL

    def __init__(
        self, seed: int, scratch: Path, parts: Parts | None = None, *, is_harsh: bool = False
    ) -> None:
        super().__init__(seed, scratch, parts)
        self.actors = list(VERSION_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in VERSION_ACTORS.values()]
        self._latest = self.actors[0]
        self._names = 0
        # a tag's snapshot is one proven object, as a file is: what damages it later loses it
        self.weather.happened[Mishap.SNAPSHOT_DAMAGED] = 1
        self.weather.stalls_before = (RaiseHorizon,)
        self.weather.stalls_before_chance = self.rng.choice((0.0, 0.2, 0.6))
        if is_harsh:
            self.weather.stall_chance = 0.04
            self.weather.stalls_before_chance = 0.6

    def fresh_name(self) -> str:
        """Return the name of a tag or a pin that nothing had before."""
        self._names += 1
        return f"n{self._names}"

    def some_table(self, machine: Machine) -> OpenTable:
        """Return the main table."""
        return machine.catalog.find("main")

    def check(self) -> None:
        """Look at all versions that must be there, with fresh eyes."""
        machine = self.calm_machine()
        self.machines.append(machine)
        for table in tables(machine):
            check_kept(self, machine, table, self.auditors[table.id])
            check_followed(machine, table, self.auditors[table.id])
            check_spared(self, self.auditors[table.id])
        super().check()


def check_kept(world: World, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
    """Versions with a tag have their rows and their state; those above the horizon their state."""
    tagged = sorted({tag.number for tag in tags_of(auditor.state)})
    for number in world.rng.sample(tagged, min(VERSIONS_CHECKED, len(tagged))):
        wanted = auditor.rows_at(number)
        try:
            plan = machine.query.plan(table, lambda _: None, as_of=int(number))
            seen = [
                row
                for batch in machine.query.read(table, plan)
                for row in rows_asked(batch, world.schema)
            ]
        except LakebedError as error:
            raise Violation(KEPT, f"version {number} has a tag: {error}") from error
        lost = {row for row in wanted if row not in seen and world.is_due_to(machine, row)}
        if lost or set(seen) - set(wanted):
            raise Violation(KEPT, f"version {number} has a tag and lost {lost}")
    first = horizon_of(auditor.state) or auditor.number
    above = range(max(1, first), auditor.number + 1)
    numbers = [*tagged[:1], world.rng.choice(above)]
    for number, digest in zip(numbers, digests_at(auditor, numbers), strict=True):
        if state_of(world, table, TransactionNumber(number)).digest() != digest:
            raise Violation(REPLAY, f"state {number} is another than it was")


def check_spared(world: World, auditor: Auditor) -> None:
    """All garbage that is left is part of a version that is kept, or behind a follower."""
    now = world.clock.now()
    versions = {pin.number for pin in auditor.state.pins() if pin.until >= now}
    versions |= {tag.number for tag in tags_of(auditor.state)}
    followed = [
        one.number for one in followers_of(auditor.state) if not one.is_behind and one.until >= now
    ]
    for garbage in auditor.state.garbage():
        needed = any(base_of(garbage.file) < n < garbage.number for n in versions)
        if not needed and not any(garbage.number > n for n in followed):
            raise Violation(LEAKS, f"{garbage} stays, and no version needs it")


def check_followed(machine: Machine, table: OpenTable, auditor: Auditor) -> None:
    """A follower that has not fallen behind reads all that it did not acknowledge."""
    for one in followers_of(auditor.state):
        if not one.is_behind:
            try:
                for _ in checked_changes(
                    machine, table, auditor, Following(machine.follow, table, one.name)
                ):
                    pass
            except LakebedError as error:
                raise Violation(FOLLOWED, f"{one.name} at {one.number}: {error}") from error


def state_of(world: World, table: OpenTable, number: TransactionNumber) -> TableState:
    """Return what snapshots and log lead to."""
    snapshots = Snapshots(table.id, world.shared.objects, scratch=world.shared.scratch)
    try:
        return past_state(world.shared.logs.open(table.id), snapshots, number)
    except LakebedError as error:
        raise Violation(KEPT, f"state {number} cannot be made: {error}") from error


def digests_at(auditor: Auditor, numbers: list[TransactionNumber]) -> list[bytes]:
    """Return the digests of some versions, from one replay of all entries."""
    state = new_state()
    found = {}
    with state.writing():
        for at, body in enumerate(auditor.bodies[: max(numbers)], 1):
            entry = decode_entry(body, at)
            moment = Moment(TransactionNumber(at), entry.at)
            for transaction in entry.transactions:
                transaction.apply(state, moment)
            finish_entry(state, moment, entry_checksum(body))
            if at in numbers:
                found[at] = state.digest()
    state.connection.close()
    return [found[number] for number in numbers]
