"""Files are applied by processes that are killed between any two effects, lose answers, and meet
others that apply at the same time."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from lakebed.backends.faulty import CALM, HARSH, Crash, CrashPlan, Faults
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.backends.system.installed_steps import StepsBesideUs
from lakebed.errors import (
    ConflictError,
    InvalidError,
    TableMissingError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.schema import schema_of
from lakebed.tables.apply_tables import TRIES_MAX
from lakebed.tables.change_table import change_fields, change_settings
from tests.dsl.memory_tables import Interrupted, MemoryTables, Process

BEFORE = {
    "rides.toml": """
name = "rides"
watch = "s3://landing/rides"
[row_keys]
id = "int64"
[values]
n = "int32?"
old = "string?"
""",
    "gone.toml": 'name = "gone"\n[row_keys]\nid = "int64"\n',
}
FILES = {
    "trips.toml": """
name = "trips"
was = "rides"
watch = "s3://landing/old"
[row_keys]
key = { type = "int64", was = "id" }
[values]
n = "int64?"
day = "date32?"
[settings]
job_files_max = 20
[processing.age_off]
field = "day"
seconds = 60
""",
    "new.toml": """
name = "new"
online = false
watch = "s3://landing/new"
split_points = ["g"]
[row_keys]
id = "string"
""",
    "own.toml": """
name = "own"
adopt = true
watch = "s3://landing/rides"
[row_keys]
id = "int64"
[values]
n = "int64?"
""",
}
EFFECTS = [
    *("rename", "log append", "name claim", "watch change", "online change"),  # trips; new
    *("declaration", "log append", "watch change", "log append", "watch change"),  # own; trips
    *("log append", "log truncate", "name release"),  # gone
]
"""What the files take."""


def lake() -> MemoryTables:
    """Two declared tables, and one that no file made."""
    stores = MemoryTables()
    process = stores.process()
    process.apply(BEFORE)
    process.catalog.create("own", schema_of(row_keys={"id": "int64"}))
    return stores


def texts_in_peace() -> dict[str, str]:
    process = lake().process()
    assert process.apply(FILES, "drop").steps
    return process.texts()


def check(stores: MemoryTables) -> None:
    """One more process finds nothing to do, and tables as files say."""
    process = stores.process()
    texts, numbers = process.texts(), process.numbers()
    assert process.apply(FILES, "drop").steps == ()
    assert texts == process.texts() == texts_in_peace()
    assert numbers == process.numbers()
    assert [entry.declared for entry in process.catalog.list()] == [True] * 3


def test_the_effects_are_these() -> None:
    process = lake().process()
    process.apply(FILES, "drop")
    assert process.crashes.effects == EFFECTS
    check(process.stores)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, len(EFFECTS) + 1))
def test_the_next_process_goes_on_wherever_one_was_killed(at: int, moment: Moment) -> None:
    stores = lake()
    with pytest.raises(Crash):
        stores.process(CrashPlan(at, moment)).apply(FILES, "drop")
    stores.process().apply(FILES, "drop")
    check(stores)


@pytest.mark.parametrize("at", range(1, len(EFFECTS) + 1))
def test_two_that_apply_at_once_come_to_the_same_end(at: int) -> None:
    stores = lake()
    other = stores.process()
    first = stores.process(Interrupted(at, lambda: other.apply(FILES, "drop")))
    first.apply(FILES, "drop")
    check(stores)


def add_a_field(process: Process) -> None:
    for name in ("rides", "trips"):
        try:
            table = process.catalog.find(name)
        except TableMissingError:
            continue
        change_fields(table, add={"more": "int64?"}, rename={}, drop=(), widen={})


def set_a_setting(process: Process) -> None:
    for entry in process.catalog.list():
        change_settings(process.catalog.opened(entry), {"leaf_rows_max": 7}, StepsBesideUs())


def put_all_offline(process: Process) -> None:
    for entry in process.catalog.list():
        process.catalog.set_online(entry.name, online=False)


@pytest.mark.parametrize("act", [set_a_setting, put_all_offline])
@pytest.mark.parametrize("at", range(1, len(EFFECTS) + 1))
def test_changes_of_others_are_seen_now_or_the_next_time(
    at: int, act: Callable[[Process], None]
) -> None:
    stores = lake()
    other = stores.process()
    stores.process(Interrupted(at, lambda: act(other))).apply(FILES, "drop")
    stores.process().apply(FILES, "drop")
    check(stores)


def test_a_change_planned_on_what_is_no_more_is_planned_anew() -> None:
    """The commit that changes fields is the seventh effect; a setting is changed just before it."""
    stores = lake()
    other = stores.process()

    def act() -> None:
        change_settings(other.catalog.find("trips"), {"leaf_rows_max": 7}, StepsBesideUs())

    plan = Interrupted(7, act)
    done = stores.process(plan).apply(FILES, "drop")
    (change,) = (step for step in done.steps if (step.action, step.table) == ("change", "trips"))
    assert "leaf_rows_max: 7 -> 20000000" in change.details
    assert plan.effects.count("log append") == EFFECTS.count("log append") + 1


def test_a_field_that_came_meanwhile_is_not_dropped_without_consent() -> None:
    stores = lake()
    other = stores.process()
    with pytest.raises(InvalidError, match="without consent"):
        stores.process(Interrupted(7, lambda: add_a_field(other))).apply(FILES, "drop")
    fields = [field.name for field in stores.process().catalog.find("trips").schema.values]
    assert fields == ["n", "old", "more"]


def test_plans_that_are_overtaken_again_and_again_end_in_a_conflict() -> None:
    stores = lake()
    other = stores.process()
    tries = []

    class AgainAndAgain(CrashPlan):
        def effect(self, name: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the plan's
            if name == "log append":
                tries.append(name)
                table = other.catalog.find("rides")
                change_settings(table, {"leaf_rows_max": 7 + len(tries)}, StepsBesideUs())
            return super().effect(name)

    with pytest.raises(ConflictError):
        stores.process(AgainAndAgain()).apply(
            {"rides.toml": BEFORE["rides.toml"] + "[settings]\nsize_ratio = 4\n"}
        )
    assert len(tries) == TRIES_MAX


@pytest.mark.parametrize("seed", range(60))
def test_lost_late_and_doubled_answers_change_nothing_of_the_end(seed: int) -> None:
    stores, faults = lake(), Faults(random.Random(seed), HARSH)
    process = stores.process(faults=faults)
    for _ in range(50):
        with suppress(ConflictError, UnavailableError, UnknownOutcomeError):
            process.apply(FILES, "drop")
            break
        stores.clock.advance(60)
    else:
        pytest.fail("it comes to no end")
    faults.rates = CALM
    faults.deliver_late(1.0)
    stores.process().apply(FILES, "drop")
    check(stores)
