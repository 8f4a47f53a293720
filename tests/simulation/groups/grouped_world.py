"""A world whose table has groups that age: rows of a key leave together, when the newest of them is
too old, whatever was merged with what, and when (docs/design/processing.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from lakebed import AgeOff, Processing
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.model.schema import Schema, schema_of
from lakebed.statestore.open_table import OpenTable
from tests.simulation import actors
from tests.simulation.auditor import Auditor
from tests.simulation.ending import keep_house, tables
from tests.simulation.machine import Machine
from tests.simulation.rows import Row, rows_of
from tests.simulation.violation import ROWS, Violation
from tests.simulation.world import World

SCHEMA = schema_of(row_keys={"key": "int64"}, values={"id": "int64", "born": "int64"})
SPAN_SECONDS = 5 * 86_400
SPAN = SPAN_SECONDS * MICROS_PER_SECOND
GROUPS = Processing(
    age_off=AgeOff("born", seconds=SPAN_SECONDS, unit="us"),
    aggregate={"id": "sum", "born": "max"},
)
"""Sums of ids that no two rows share tell of each row that left too early, or came back."""
HOURS_PASSED = (6, 12, 20, 20)
"""Less than a day: nobody has to confirm a leap."""
DAYS_AT_THE_END = 25


def shown(rows: Iterable[Row], at: int) -> Counter[Row]:
    """Return what a query shows of all rows that were ever given: of a key one row, of all groups
    that are young enough at a time. A group ends where a whole step has no row."""
    found: Counter[Row] = Counter()
    for key, of_key in groupby(sorted(rows, key=lambda row: (row[0], row[2])), lambda row: row[0]):
        gathered: list[list[Row]] = []
        for row in of_key:
            if not gathered or row[2] // SPAN > gathered[-1][-1][2] // SPAN + 1:
                gathered.append([])
            gathered[-1].append(row)
        young = [row for some in gathered if some[-1][2] >= at - SPAN for row in some]
        if young:
            found[key, sum(row[1] for row in young), max(row[2] for row in young)] += 1
    return found


def let_time_pass(world: World, machine: Machine) -> None:
    world.clock.advance(world.rng.choice(HOURS_PASSED) * 3_600)


def read_groups(world: World, machine: Machine) -> None:
    """Read all rows, and hold them against what was given."""
    table = machine.catalog.find("main")
    check_shown(machine, table, world.auditors[table.id])


def check_shown(machine: Machine, table: OpenTable, auditor: Auditor) -> None:
    """Raise a Violation unless a query shows what it should at its time."""
    plan = machine.query.plan(table, lambda _: None)
    assert plan.processing is not None, "the table has some"
    wanted = shown(auditor.given_at(plan.number).elements(), plan.processing.at)
    seen = Counter(row for batch in machine.query.read(table, plan) for row in rows_of(batch))
    if seen != wanted:
        lost, more = dict(wanted - seen), dict(seen - wanted)
        raise Violation(ROWS, f"at {plan.number} {lost} should be there, and {more} is")


ACTORS = {
    actors.ingest: 30,
    let_time_pass: 30,
    actors.create_jobs: 15,
    actors.work: 20,
    actors.run_any_job: 5,
    actors.give_up: 2,
    actors.split: 2,
    actors.collect: 5,
    actors.sweep: 3,
    actors.snapshot: 2,
    actors.clear: 1,
    read_groups: 20,
}


class GroupedWorld(World):
    """Nobody stalls for longer than a group lives: its rows would be left out as too old."""

    may_use_parquet = False
    tasks, tasks_long = 80, 160
    while_others_stall = tuple(ACTORS)

    def __init__(self, seed: int, scratch: Path) -> None:
        super().__init__(seed, scratch, theme="jobs")
        self.actors, self.weights = list(ACTORS), list(ACTORS.values())
        self._latest = self.actors[0]
        self.weather.stall_chance = 0.0

    def some_rows(self, theme: str | None) -> tuple[Schema, Processing | None]:
        """Return rows that are summed, and tell when they were made."""
        return SCHEMA, GROUPS

    def some_table(self, machine: Machine) -> OpenTable:
        """Return the only table."""
        return machine.catalog.find("main")

    def end(self) -> None:
        """Merge and look while all groups leave, one after another. What was not committed is not
        sent again: it would be too old."""
        self.weather.clear_up()
        self.scheduler.finish()
        machine = self.calm_machine(informed=True)
        self.machines.append(machine)
        for _ in range(DAYS_AT_THE_END):
            self.clock.advance(20 * 3_600)
            for table in tables(machine):
                keep_house(self, machine, table)
                check_shown(machine, table, self.auditors[table.id])

    def check_rows(self, machine: Machine, table: OpenTable, auditor: Auditor) -> None:
        """Look at the rows as a fresh reader."""
        check_shown(machine, table, auditor)
