"""Splitting as it is deployed: ticks for tables that changed, each sent once (H31)."""

import pytest

from lakebed.model.jobs import SPLITTING
from lambdas.shape import Handler
from tests.dsl.memory_instance import MemoryInstance, Run


@pytest.fixture
def trigger(instance: MemoryInstance) -> Handler:
    return instance.trigger_of(SPLITTING)


@pytest.fixture
def handle(instance: MemoryInstance) -> Handler:
    return instance.handler_of(SPLITTING)


def minute(number: int) -> dict[str, str]:
    return {"time": f"2026-11-21T20:{number:02d}:00Z"}


def waiting(instance: MemoryInstance) -> int:
    return instance.queues.open(SPLITTING).depth()[0]


def test_who_changes_nothing_gets_no_work(
    instance: MemoryInstance, trigger: Handler, handle: Handler
) -> None:
    instance.given_table("idle")
    trigger(minute(1), Run())
    instance.when_worked(SPLITTING, handle)
    trigger(minute(2), Run())
    assert waiting(instance) == 0
    instance.given_rows("idle", 10, job="one")
    trigger(minute(3), Run())
    assert waiting(instance) == 1


def test_a_mark_that_was_lost_costs_a_day_at_most(
    instance: MemoryInstance, trigger: Handler, handle: Handler
) -> None:
    instance.given_table("idle")
    trigger(minute(1), Run())
    instance.when_worked(SPLITTING, handle)
    instance.clock.advance(86_401)
    trigger(minute(2), Run())
    assert waiting(instance) == 1


def test_offline_tables_rest(instance: MemoryInstance, trigger: Handler, handle: Handler) -> None:
    instance.given_table("trips", leaf_rows_max=100)
    instance.given_table("rides", leaf_rows_max=100)
    for name in ("trips", "rides"):
        instance.given_rows(name, 1_000, job="one")
    rides = instance.lake.catalog.find("rides")
    instance.registry.set_online(rides.name, rides.id, online=False)
    trigger(minute(1), Run())
    assert waiting(instance) == 1
    trips = instance.lake.catalog.find("trips")
    instance.registry.set_online(trips.name, trips.id, online=False)
    assert instance.when_worked(SPLITTING, handle) == []
    assert instance.leaves("trips") == instance.leaves("rides") == 1


def test_a_table_that_was_dropped_meanwhile_is_no_failure(
    instance: MemoryInstance, trigger: Handler, handle: Handler
) -> None:
    instance.given_table("trips")
    trigger(minute(1), Run())
    instance.lake.catalog.drop("trips")
    assert instance.when_worked(SPLITTING, handle) == []


def test_a_damaged_table_does_not_hold_up_others(
    instance: MemoryInstance, trigger: Handler, handle: Handler
) -> None:
    for name in ("bad", "good"):
        instance.given_table(name, leaf_rows_max=100)
        instance.given_rows(name, 1_000, job="one")
    bad = instance.lake.catalog.find("bad")
    for path in list(instance.objects.list(f"tables/{bad.id}/files/")):
        instance.objects.delete([path])
        writer = instance.objects.create(path)
        writer.write(b"damaged " * 4_000)
        writer.finish()
    trigger(minute(1), Run())
    assert instance.when_worked(SPLITTING, handle) == [f'{{"table":"{bad.id}"}}']
    assert instance.leaves("good") > 1
    assert instance.marks.list()[bad.id].handled == {}
