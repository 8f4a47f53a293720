"""What goes on in a world: each actor is one piece of work that one machine does, as real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakebed.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    JobIdReusedError,
    LakebedError,
    TableExistsError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.model.keys import encode_key
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros
from lakebed.model.paths import file_path, snapshot_of
from lakebed.statestore.log_entries.table_changes import ChangeSettings, Clear, PutPin
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.write_snapshot import truncate_log
from lakebed.tables.change_table import change_fields
from tests.simulation.auditor import CLOCK_SLACK, Auditor
from tests.simulation.deleting import delete_range, delete_rows
from tests.simulation.faults.weather import Mishap
from tests.simulation.machine import Machine
from tests.simulation.queued import commit_queued, hear, queue_claims, queue_rows
from tests.simulation.rows import ArrowRequest, Row, TupleRequest, rows_asked
from tests.simulation.selections import fits, some_condition
from tests.simulation.truth import Asked
from tests.simulation.violation import READERS, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World

Actor = Callable[["World", Machine], None]


def ingest(world: World, machine: Machine) -> None:
    """Take new rows, mostly under an id that the user chose, sometimes under one used before."""
    table = world.some_table(machine)
    id_ = None
    if world.rng.random() < 0.08 and world.truth.asked:
        id_ = world.rng.choice(list(world.truth.asked.values())).request.id
    asked = world.ask(table.id, id_)
    if world.rng.random() < 0.15:
        asked.job = None
    send(world, machine, table, asked)


def send_again(world: World, machine: Machine) -> None:
    """Send a request again: nobody knows whether it was done, or a queue delivers it twice."""
    table = world.some_table(machine)
    recent = [a for a in world.truth.asked.values() if a.table == table.id and a.job]
    if recent:
        asked = world.rng.choice(recent[-6:])
        if world.is_remembered(asked):
            send(world, machine, table, asked)


def send(world: World, machine: Machine, table: OpenTable, asked: Asked) -> None:
    """Send a request once, and write down what its user is told."""
    source = (ArrowRequest if world.parquet else TupleRequest)(world.schema, asked.request)
    asked.open += 1
    try:
        done = machine.ingest.run(table, source, asked.job)
    except UnknownOutcomeError as error:
        if asked.job is None:
            asked.job = JobId(str(error.facts["job"]))
        raise
    except JobIdReusedError:
        world.truth.refuse_as_reused(asked)
    except LakebedError as error:
        world.truth.refuse(asked)
        if isinstance(error, InvalidError) and not isinstance(error, TableMissingError):
            raise Violation("an ingest is refused for its own fault only", str(error)) from error
        raise
    else:
        world.truth.acknowledge(asked, done.number)


def create_jobs(world: World, machine: Machine) -> None:
    machine.create_jobs.run(world.some_table(machine), everything=world.rng.random() < 0.2)


def work(world: World, machine: Machine) -> None:
    """Take messages and run their jobs."""
    machine.worker.run(jobs_max=world.rng.randrange(1, 4))


def run_any_job(world: World, machine: Machine) -> None:
    """Run a job that perhaps another machine runs just now."""
    table = world.some_table(machine)
    with table.head.reading() as state:
        jobs = [job.id for job in state.jobs()]
    if jobs:
        machine.run_job.run(table, world.rng.choice(jobs))


def give_up(world: World, machine: Machine) -> None:
    table = world.some_table(machine)
    with table.head.reading() as state:
        jobs = [job.id for job in state.jobs()]
    if jobs:
        machine.give_up.run(table, world.rng.choice(jobs), reason="an operator")


def dead_letters(world: World, machine: Machine) -> None:
    machine.give_up_dead_jobs.run()


def split(world: World, machine: Machine) -> None:
    machine.split.run(world.some_table(machine))


def collect(world: World, machine: Machine) -> None:
    machine.collect.run(world.some_table(machine))


def sweep(world: World, machine: Machine) -> None:
    machine.sweep.run(world.some_table(machine))


def snapshot(world: World, machine: Machine) -> None:
    """Write a snapshot, then empty the log where that is allowed."""
    write_snapshot(machine, world.some_table(machine))


def write_snapshot(machine: Machine, table: OpenTable) -> None:
    """Do as the housekeeping of a lake does."""
    snapshots = machine.snapshots(table.id)
    with table.head.reading() as state:
        if state.head().dropped:
            return
        snapshots.write(state)
    truncate_log(table, snapshots, machine.logs.open(table.id))


def snapshot_twice(world: World, machine: Machine) -> None:
    """Two snapshots with an entry between: then the log loses what came before the first."""
    for _ in range(2):
        change_settings(world, machine)
        snapshot(world, machine)


def damage_snapshot(world: World, machine: Machine) -> None:
    """Flip a bit in a snapshot, once in a table's life: two are kept, so that one may be lost."""
    objects = machine.shared.objects
    found = [path for path in objects.paths() if snapshot_of(path)]
    if found and not world.weather.happened[Mishap.SNAPSHOT_DAMAGED]:
        objects.damage(world.rng.choice(found))
        world.weather.happened[Mishap.SNAPSHOT_DAMAGED] += 1


def clear(world: World, machine: Machine) -> None:
    table = world.some_table(machine)
    with table.head.reading() as state:
        start = start_of(state)
    points = None if world.rng.random() < 0.5 else ()
    table.head.commit(table.own(start, Clear(points)))


def change_settings(world: World, machine: Machine) -> None:
    table = world.some_table(machine)
    with table.head.reading() as state:
        start = start_of(state)
    changes = {"leaf_rows_max": world.rng.choice((8, 20, 60)), "leaf_jobs_max": 3}
    table.head.commit(table.own(start, ChangeSettings(changes)))


def alter(world: World, machine: Machine) -> None:
    """Add, rename or drop a field; who sends rows goes on with the schema of the beginning."""
    table = world.some_table(machine)
    schema, name = table.schema, f"f{world.rng.randrange(1_000)}"
    added = [f.name for f in schema.values if f.number > len(world.schema.fields)]
    changes: dict[str, Any] = {"add": {}, "rename": {}, "drop": [], "widen": {}}
    match world.rng.choice(("add", "rename", "drop")):
        case "rename":
            changes["rename"] = {world.rng.choice(schema.fields).name: name}
        case "drop" if added:
            changes["drop"] = [world.rng.choice(added)]
        case _:
            changes["add"] = {name: "int64?"}
    with world.expected_errors(InvalidError, ConflictError):  # names taken, or processing's
        change_fields(table, **changes)


def create_table(world: World, machine: Machine) -> None:
    if machine.clock.lies:  # the first entry has nothing to compare a clock with
        return
    with world.expected_errors(TableExistsError):
        points, settings = world.some_points(), world.some_settings()
        machine.catalog.create(
            "other",
            world.schema,
            split_points=points,
            settings=settings,
            processing=world.processing,
        )


def drop_table(world: World, machine: Machine) -> None:
    machine.catalog.drop("other")


def sweep_nameless(world: World, machine: Machine) -> None:
    machine.catalog.sweep_nameless()


def read(world: World, machine: Machine) -> None:
    """Read slowly; others work between batches."""
    table = world.some_table(machine)
    read_all(world, machine, table, until=None)


def read_pinned(world: World, machine: Machine) -> None:
    """Pin a version, then read it for longer than garbage is kept."""
    table = world.some_table(machine)
    with table.head.reading() as state:
        start = start_of(state)
    until = Micros(table.head.log_time() + 30 * 3_600 * MICROS_PER_SECOND)
    table.head.commit(table.own(start, PutPin(table.fresh_id(), until)))
    read_all(world, machine, table, until=until)


def read_all(world: World, machine: Machine, table: OpenTable, *, until: Micros | None) -> None:
    """Read a version, or a part of it, and compare. until: a pin holds the version so long."""
    schema = table.schema
    condition = some_condition(world)
    auditor = world.auditors[table.id]
    batches = machine.query.run(table, condition)
    number = table.head.state.head().number
    if table.head.state.head().dropped:
        return
    wanted = Counter(
        {row: n for row, n in auditor.rows_at(number).items() if fits(world, condition, row)}
    )
    paths = paths_of(auditor) if auditor.number == number else None
    seen: Counter[Row] = Counter()
    keys: list[bytes] = []
    slowly = world.rng.choice((0.0, 60.0, 20_000.0))
    try:
        for batch in batches:
            rows = rows_asked(batch, world.schema)
            seen.update(rows)
            width = len(schema.key_fields)
            keys += [encode_key(schema.key_fields, row[:width]) for row in rows]
            if world.weather.rates:
                world.scheduler.pause(slowly * world.rng.random())
    except VersionExpiredError as error:
        check_expired(world, auditor, paths, until, error)
        if seen - wanted:
            raise Violation(READERS, f"version {number} gave rows that it has not") from error
        return
    except UnavailableError:
        return
    except CorruptError as error:
        raise Violation(READERS, f"version {number}: {error}") from error
    lost, more = wanted - seen, seen - wanted
    lost = Counter({row: n for row, n in lost.items() if world.is_due_to(machine, row)})
    if lost or more:
        raise Violation(READERS, f"version {number} lacks {dict(lost)}, has {dict(more)} too much")
    if keys != sorted(keys):
        raise Violation(READERS, f"version {number} is not in the order of keys")


def check_expired(
    world: World,
    auditor: Auditor,
    paths: set[str] | None,
    until: Micros | None,
    error: LakebedError,
) -> None:
    """A reader is refused only when a file of its version is gone, and no pin holds it."""
    if auditor.state.head().dropped:
        return
    if paths is not None and all(world.shared.objects.facts(path) for path in paths):
        raise Violation(READERS, "told that the version expired while all is there") from error
    if until is not None and world.clock.now() + CLOCK_SLACK < until:
        raise Violation(READERS, "a pinned version expired") from error


def paths_of(auditor: Auditor) -> set[str]:
    """Return the objects of the newest version."""
    return {file_path(auditor.table, r.file.name) for r in auditor.state.all_references()}


def hear_answers(world: World, machine: Machine) -> None:
    hear(world)


ACTORS: dict[Actor, int] = {
    ingest: 20,
    send_again: 8,
    create_jobs: 8,
    work: 10,
    run_any_job: 3,
    give_up: 2,
    dead_letters: 1,
    split: 6,
    collect: 6,
    sweep: 6,
    snapshot: 3,
    snapshot_twice: 3,
    damage_snapshot: 1,
    clear: 1,
    change_settings: 1,
    alter: 2,
    create_table: 2,
    drop_table: 1,
    sweep_nameless: 1,
    read: 8,
    read_pinned: 2,
    queue_rows: 5,
    queue_claims: 3,
    commit_queued: 8,
    hear_answers: 2,
    delete_range: 4,
    delete_rows: 2,
}

THEMES: dict[str, tuple[Actor, ...]] = {
    "all": (),
    "sweep": (ingest, sweep),
    "log": (ingest, snapshot_twice),
    "jobs": (ingest, create_jobs, work, run_any_job, split, give_up, dead_letters),
    "again": (ingest, send_again, sweep),
    "tables": (create_table, drop_table, sweep_nameless),
    "queued": (
        ingest,
        queue_rows,
        queue_claims,
        commit_queued,
        create_jobs,
        give_up,
        hear_answers,
        snapshot_twice,
    ),
    "clocks": (ingest, send_again, sweep, collect, create_jobs, work),
    "idle": (queue_rows, queue_claims, commit_queued, commit_queued),
    "leaps": (ingest, clear, collect, send_again, sweep),
    "caches": (ingest, send_again, read, sweep, create_jobs, work),
    "readers": (ingest, read, read_pinned, create_jobs, work, collect),
    "deletes": (ingest, delete_range, create_jobs, work, split, read),
    "values": (ingest, delete_rows, create_jobs, work, read),
}
"""What a world does most."""

THEMES_OF_TWINS: dict[str, tuple[Actor, ...]] = THEMES | {
    "claims": (ingest, queue_claims, commit_queued, create_jobs, give_up),
}
"""And of worlds that are made for twins."""

WHILE_OTHERS_STALL: tuple[Actor, ...] = (
    sweep,
    sweep,
    collect,
    snapshot_twice,
    send_again,
    create_jobs,
    work,
    commit_queued,
)
"""What is dangerous for a task that hangs at a door."""
