"""What goes on in a world of versions: tags, late pins, readers of the past, housekeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lakebed.errors import (
    FollowerBehindError,
    InvalidError,
    UnavailableError,
    VersionExpiredError,
)
from lakebed.model.names import CommitId, TransactionNumber, base_of
from lakebed.query.follow_changes import CommittedChange, Following
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.file_changes import AddFiles, ReplaceFiles
from lakebed.statestore.log_entries.range_deletes import DeleteRanges
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.kept_versions import follower_of, horizon_of, is_kept, tags_of
from lakebed.statestore.version_pin import VersionPin
from lakebed.tables.versions import drop_tag, put_tag
from tests.simulation import actors
from tests.simulation.auditor import Auditor
from tests.simulation.deleting import delete_range, delete_rows
from tests.simulation.machine import Machine
from tests.simulation.rows import Row, rows_asked, rows_of
from tests.simulation.violation import FOLLOWED, KEPT, READERS, Violation

if TYPE_CHECKING:
    from tests.simulation.actors import Actor
    from tests.simulation.versions.versioned_world import VersionedWorld
    from tests.simulation.world import World

PIN_SECONDS = 30 * 3_600


def some_number(world: World, table: OpenTable) -> TransactionNumber:
    """Return a version of a table, mostly a young one."""
    with table.head.reading() as state:
        last = state.head().number
    back = world.rng.randrange(10) if world.rng.random() < 0.7 else world.rng.randrange(last)
    return TransactionNumber(max(1, last - back))


def tag(world: VersionedWorld, machine: Machine) -> None:
    """Give a version a name, the newest or an older one."""
    table = world.some_table(machine)
    tag_number(world, table, None if world.rng.random() < 0.2 else some_number(world, table))


def tag_number(world: VersionedWorld, table: OpenTable, number: TransactionNumber | None) -> None:
    with world.expected_errors(VersionExpiredError, InvalidError):
        try:
            put_tag(table, world.fresh_name(), number)
        except VersionExpiredError as error:
            check_refusal(world, table, number, error)
            raise


def tag_what_goes(world: VersionedWorld, machine: Machine) -> None:
    """Give a name to a version that still may have one, and that needs a file which is garbage."""
    table = world.some_table(machine)
    with table.head.reading() as state:
        horizon = horizon_of(state) or 0
        found = [range(max(horizon, base_of(one.file) + 1), one.number) for one in state.garbage()]
    numbers = [numbers for numbers in found if numbers]
    if numbers:
        tag_number(world, table, TransactionNumber(world.rng.choice(world.rng.choice(numbers))))


def check_refusal(
    world: World,
    table: OpenTable,
    number: int | None,
    error: VersionExpiredError,
    *,
    is_follower: bool = False,
) -> None:
    """A version that is whole by the newest state was so before: the horizon only rises. A tag is
    of no use to a follower."""
    state = world.auditors[table.id].state
    horizon = horizon_of(state)
    is_whole = number is None or (horizon is not None and number >= horizon)
    if is_whole or (not is_follower and is_kept(state, TransactionNumber(number or 0))):
        raise Violation(READERS, f"version {number} is whole and refused: {error}") from error


def merge(world: World, machine: Machine) -> None:
    """Merge all that can be merged: what was read becomes garbage."""
    machine.create_jobs.run(world.some_table(machine), everything=True)
    machine.worker.run(jobs_max=5)


def untag(world: World, machine: Machine) -> None:
    table = world.some_table(machine)
    with table.head.reading() as state:
        found = tags_of(state)
    if found:
        with world.expected_errors(InvalidError):  # dropped meanwhile
            drop_tag(table, world.rng.choice(found).name)


def read_tag(world: World, machine: Machine) -> None:
    """Read a version that has a tag, slowly. Who gets it whole, or is told that the tag is gone."""
    table = world.some_table(machine)
    with table.head.reading() as state:
        found = tags_of(state)
    if found:
        tag = world.rng.choice(found)
        with world.expected_errors(InvalidError):
            read_version(world, machine, table, tag.number, tag=tag.name)


def read_past(world: World, machine: Machine) -> None:
    """Read an older version, without anything that keeps it."""
    table = world.some_table(machine)
    read_version(world, machine, table, some_number(world, table))


def read_pinned_late(world: VersionedWorld, machine: Machine) -> None:
    """Pin an older version, then read it; the pin gets a new end whenever that is due."""
    table = world.some_table(machine)
    number = some_number(world, table)
    name = world.fresh_name()
    pin = VersionPin(table, name, machine.clock, number=number, seconds=PIN_SECONDS)
    try:
        pin.put()
    except VersionExpiredError as error:
        check_refusal(world, table, number, error)
        raise
    read_version(world, machine, table, number, pin=name, renew=pin.renew)


def read_version(
    world: World,
    machine: Machine,
    table: OpenTable,
    number: TransactionNumber,
    *,
    tag: str | None = None,
    pin: str | None = None,
    renew: Callable[[], None] = lambda: None,
) -> None:
    """Read a version, and compare. tag, pin: the name of what keeps it. renew: is called while it
    is read."""
    auditor = world.auditors[table.id]
    condition = actors.some_condition(world)
    wanted = auditor.rows_at(number)
    wanted = Counter({r: n for r, n in wanted.items() if actors.fits(world, condition, r)})
    seen: Counter[Row] = Counter()
    slowly = world.rng.choice((0.0, 60.0, 20_000.0))
    try:
        plan = machine.query.plan(table, lambda _: condition, as_of=tag or int(number))
        for batch in machine.query.read(table, plan):
            seen.update(rows_asked(batch, world.schema))
            if world.weather.rates:
                world.scheduler.pause(slowly * world.rng.random())
            renew()
    except VersionExpiredError as error:
        kept = {one.name for one in tags_of(auditor.state)} | {p.id for p in auditor.state.pins()}
        if {tag, pin} & kept:
            raise Violation(
                KEPT, f"version {number} is kept by {tag or pin} and expired"
            ) from error
        if seen - wanted:
            raise Violation(READERS, f"version {number} gave rows that it has not") from error
        return
    except UnavailableError:
        return
    lost, more = wanted - seen, seen - wanted
    lost = Counter({row: n for row, n in lost.items() if world.is_due_to(machine, row)})
    if lost or more:
        raise Violation(READERS, f"version {number} lacks {dict(lost)}, has {dict(more)} too much")


def follow(world: VersionedWorld, machine: Machine) -> None:
    """Begin to follow, or go on: read some changes slowly, and acknowledge as many as one likes.
    Another process may follow under the same name."""
    table = world.some_table(machine)
    name = world.rng.choice(("mirror", "audit"))
    with world.expected_errors(FollowerBehindError, VersionExpiredError, InvalidError):
        try:
            if not machine.follow.is_there(table, name):
                begin_following(world, machine, table, name)
            following = Following(machine.follow, table, name)
        except FollowerBehindError:
            check_behind(world, table, name)
            machine.follow.drop(table, name)
            raise
        read_changes(world, machine, table, following)


def begin_following(world: World, machine: Machine, table: OpenTable, name: str) -> None:
    after = world.rng.choice((None, some_number(world, table)))
    try:
        machine.follow.begin(table, name, after)
    except VersionExpiredError as error:
        check_refusal(world, table, after, error, is_follower=True)
        raise


def read_changes(
    world: World, machine: Machine, table: OpenTable, following: Following[Any]
) -> None:
    """Compare changes with what the log says; none is left out."""
    auditor = world.auditors[table.id]
    begun = following.position
    try:
        for change in checked_changes(machine, table, auditor, following):
            if world.weather.rates:
                world.scheduler.pause(world.rng.choice((0.0, 60.0, 20_000.0)) * world.rng.random())
            if world.rng.random() < 0.5:
                following.acknowledge(change.upto)
    except VersionExpiredError as error:
        found = follower_of(auditor.state, following.name)
        if found is not None and not found.is_behind and found.number <= begun:
            raise Violation(FOLLOWED, f"a change behind {begun} expired: {error}") from error
        raise


def checked_changes(
    machine: Machine, table: OpenTable, auditor: Auditor, following: Following[Any]
) -> Iterator[CommittedChange]:
    """Yield changes, each compared with its entry, and with those before it."""
    last = following.position
    for change in following:
        left_out = [n for n in range(last + 1, change.number) if commits_at(auditor, n)]
        if left_out:
            raise Violation(FOLLOWED, f"{left_out} were left out before {change.number}")
        commits = commits_at(auditor, change.number)
        if change.job not in commits:
            raise Violation(FOLLOWED, f"entry {change.number} has no change {change.job}")
        read = (row for batch in machine.follow.rows(table, change) for row in rows_of(batch))
        seen, wanted = Counter(read), commits[change.job]
        if wanted is not None and seen != wanted:
            raise Violation(FOLLOWED, f"change {change.number} has {seen}, not {wanted}")
        last = change.number
        yield change


def commits_at(auditor: Auditor, number: int) -> dict[CommitId, Counter[Row] | None]:
    """Return the commits of an entry that changed rows, by id their rows; None: not known."""
    found: dict[CommitId, Counter[Row] | None] = {}
    for transaction in decode_entry(auditor.bodies[number - 1], number).transactions:
        commit = TransactionNumber(number), transaction.id
        for change in transaction.changes:
            if isinstance(change, Clear):
                found[transaction.id] = Counter()
            elif isinstance(change, DeleteRanges | ReplaceFiles) and commit in auditor.deleted:
                found[transaction.id] = auditor.deleted[commit]
            elif isinstance(change, AddFiles) and change.files:
                found[transaction.id] = auditor.rows_asked(transaction.digest)
    return found


def check_behind(world: World, table: OpenTable, name: str) -> None:
    """Who is told that it fell behind did so by the log."""
    found = follower_of(world.auditors[table.id].state, name)
    if found is not None and not found.is_behind:
        raise Violation(FOLLOWED, f"{name} is told that it fell behind, and did not")


VERSION_ACTORS: dict[Actor, int] = {
    actors.ingest: 25,
    actors.create_jobs: 12,
    actors.work: 15,
    actors.split: 3,
    actors.collect: 18,
    actors.sweep: 4,
    actors.snapshot: 3,
    actors.snapshot_twice: 6,
    actors.clear: 2,
    delete_range: 4,
    delete_rows: 3,
    tag: 14,  # type: ignore[dict-item]  # of this kind of world
    untag: 5,
    read_tag: 8,
    read_past: 6,
    read_pinned_late: 4,  # type: ignore[dict-item]  # of this kind of world
    follow: 10,  # type: ignore[dict-item]  # of this kind of world
}

WHILE_OTHERS_STALL: tuple[Actor, ...] = (
    tag,
    tag_what_goes,
    tag_what_goes,
    read_pinned_late,
    follow,
    actors.collect,
    actors.snapshot_twice,
)
"""What is dangerous for a collection or a truncation that hangs at a door."""
