"""One table that is damaged, and what functions do about the others."""

import json

import pytest

from lakebed.backends.memory.transaction_logs import MemoryTransactionLog
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.errors import CorruptError
from lakebed.model.jobs import COMPACTION_CREATION, SPLITTING
from lakebed.model.names import TransactionNumber
from lambdas.shape import scheduled_handler
from lambdas.sweep.nameless import sweep_nameless
from tests.dsl.memory_instance import HIDDEN_SECONDS, SCHEMA, MemoryInstance, Run, once
from tests.integration.test_upkeep import BURIED_AFTER

MINUTES = 300


def damage_the_log(instance: MemoryInstance, name: str) -> None:
    flip(instance.logs.open(instance.lake.catalog.entry(name).id))


def flip(log: MemoryTransactionLog) -> None:
    body = log._bodies[TransactionNumber(1)]
    log._bodies[TransactionNumber(1)] = body[:-1] + bytes([body[-1] ^ 1])


def test_a_damaged_log_holds_up_no_other_table_and_is_tried_ever_more_rarely(
    instance: MemoryInstance,
) -> None:
    instance.given_table("bad", leaf_rows_max=100)
    damage_the_log(instance, "bad")
    ticks, handle = instance.ticks(SPLITTING), instance.handler_of(SPLITTING)
    sent = 0
    for minute in range(MINUTES):
        name = f"good{minute}"
        if minute % 100 == 0:
            instance.given_table(name, leaf_rows_max=100)
            instance.given_rows(name, 1_000, job="one")
        sent += ticks.run(at=str(minute))
        instance.when_worked(SPLITTING, handle)
        instance.clock.advance(60)
        if minute % 100 == 0:
            assert instance.leaves(name) > 2
    of_good = 2 * MINUTES // 100  # a split makes its own tick
    assert sent - of_good < 20, "one a message's life, not one a minute"


def test_a_table_that_was_mended_is_worked_on_again(instance: MemoryInstance) -> None:
    instance.given_table("bad", leaf_rows_max=100)
    instance.given_rows("bad", 1_000, job="one")
    log = instance.logs.open(instance.lake.catalog.entry("bad").id)
    body = log._bodies[TransactionNumber(1)]
    damage_the_log(instance, "bad")
    ticks, handle = instance.ticks(SPLITTING), instance.handler_of(SPLITTING)
    ticks.run(at="1")
    assert len(instance.when_worked(SPLITTING, handle)) == 1
    log._bodies[TransactionNumber(1)] = body
    assert ticks.run(at="2") == 0, "it waits"
    instance.clock.advance(HIDDEN_SECONDS)
    assert instance.when_worked(SPLITTING, handle) == []
    assert instance.leaves("bad") > 2
    (mark,) = instance.marks.list().values()
    assert mark.failed == {}


def test_a_strategy_that_is_missing_holds_up_its_own_table_which_is_measured_all_the_same(
    instance: MemoryInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    instance.given_table("bad", compaction_strategy="nowhere")
    instance.given_table("good", compaction_strategy="basic", job_files_max=2)
    for name in ("bad", "good"):
        for job in ("one", "two"):
            instance.given_rows(name, 10, job=job)
    ticks, handle = instance.ticks(COMPACTION_CREATION), instance.handler_of(COMPACTION_CREATION)
    sent = 0
    for minute in range(60):
        sent += ticks.run(at=str(minute))
        instance.when_worked(COMPACTION_CREATION, handle)
        instance.clock.advance(60)
    assert sent < 10, "one a message's life, not one a minute"
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [line for line in said if line.get("event") == "work_failed"]
    assert {line["code"] for line in failed} == {"strategy"}
    assert all("strategy=nowhere" in line["reason"] for line in failed)
    measured = [line for line in said if line.get("event") == "table_measured"]
    assert {(line["table"], line["files_count"]) for line in measured} == {("bad", 2), ("good", 2)}
    created = [line for line in said if line.get("event") == "compaction_jobs_created"]
    assert [line["table"] for line in created] == ["good"]


def test_a_table_in_quarantine_gets_no_tick(instance: MemoryInstance) -> None:
    instance.given_table("bad")
    entry = instance.lake.catalog.entry("bad")
    instance.registry.quarantine(entry.name, entry.id)
    assert instance.ticks(SPLITTING).run(at="1") == 0


def test_a_damaged_log_without_a_name_keeps_no_other_from_its_burial(
    instance: MemoryInstance,
) -> None:
    tables = [instance.lake.catalog.create(name, SCHEMA) for name in ("a", "b", "c")]
    for table in tables:
        instance.registry.release(table.name, table.id)
    first = min(tables, key=lambda table: table.id)
    flip(instance.logs.open(first.id))
    handler = scheduled_handler(once(catalog_over(instance.stores)), sweep_nameless)
    for seconds in BURIED_AFTER:
        instance.clock.advance(seconds)
        with pytest.raises(CorruptError) as raised:
            handler({"time": "now"}, Run())
        assert raised.value.facts["id"] == first.id
    for table in tables:
        if table.id != first.id:
            with instance.function_stores("other" + table.id).heads(table.id).reading() as state:
                assert state.head().dropped
