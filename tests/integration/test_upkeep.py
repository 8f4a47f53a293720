"""What other schedules do on tables, each by its own function (H20, H32)."""

from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.model.jobs import COMPACTION_CREATION, COMPACTION_QUEUE, GARBAGE, SWEEP
from lakebed.tables.change_table import clear_table
from lambdas.shape import Handler, scheduled_handler
from lambdas.sweep.nameless import sweep_nameless
from tests.dsl.memory_instance import SCHEMA, MemoryInstance, Run, once

DAY = 86_400
BURIED_AFTER = (3 * DAY, 900, 3 * DAY, 900)
"""Seconds between runs of the sweep: days that pass on an idle log are believed at the second run,
and what was done before them waits its time once more (H35)."""


def tick(instance: MemoryInstance, work: str, handler: Handler, *, at: str = "now") -> int:
    """Let a schedule go off, and functions work. Returns how many tables were told."""
    told = instance.ticks(work).run(at=at)
    assert instance.when_worked(work, handler) == []
    return told


def jobs(instance: MemoryInstance) -> int:
    return instance.queues.open(COMPACTION_QUEUE).depth()[0]


def test_compaction_jobs_are_created_once_and_sent_again(instance: MemoryInstance) -> None:
    instance.given_table("trips", job_files_max=4, redispatch_seconds=900)
    for n in range(4):
        instance.given_rows("trips", 10, job=f"job{n}")
    handler = instance.handler_of(COMPACTION_CREATION)
    assert tick(instance, COMPACTION_CREATION, handler, at="1") == 1
    assert jobs(instance) == 1
    assert tick(instance, COMPACTION_CREATION, handler, at="2") == 1  # its own claims
    assert tick(instance, COMPACTION_CREATION, handler, at="3") == 0
    instance.clock.advance(901)
    assert tick(instance, COMPACTION_CREATION, handler, at="4") == 1
    assert jobs(instance) == 2


def test_garbage_goes_when_it_is_due_and_not_before(instance: MemoryInstance) -> None:
    instance.given_table("trips", garbage_seconds_min=3_600)
    instance.given_rows("trips", 10, job="one")
    table = instance.lake.catalog.find("trips")
    handler = instance.handler_of(GARBAGE)
    clear_table(table, None)
    files = f"tables/{table.id}/files/"
    assert tick(instance, GARBAGE, handler, at="1") == 1
    assert tick(instance, GARBAGE, handler, at="2") == 0
    assert len(list(instance.objects.list(files))) == 1
    instance.clock.advance(3_601)
    assert tick(instance, GARBAGE, handler, at="3") == 1
    assert list(instance.objects.list(files)) == []


def test_what_dead_workers_left_is_swept(instance: MemoryInstance) -> None:
    instance.given_table("trips", pending_seconds_max=0)
    instance.given_rows("trips", 10, job="one")
    table = instance.lake.catalog.find("trips")
    (known,) = instance.objects.list(f"tables/{table.id}/files/")
    left = known.rpartition("/")[0] + "/" + "00" * 16 + ".parquet"
    writer = instance.objects.create(left)
    writer.write(b"rows")
    writer.finish()
    instance.clock.advance(2 * DAY)
    instance.given_rows("trips", 10, job="two")
    instance.clock.advance(2 * DAY)
    handler = instance.handler_of(SWEEP)
    assert tick(instance, SWEEP, handler) == 1
    found = set(instance.objects.list(f"tables/{table.id}/files/"))
    assert left not in found
    assert known in found


def test_tables_that_never_got_a_name_are_buried(instance: MemoryInstance) -> None:
    table = instance.lake.catalog.create("lost", SCHEMA)
    instance.registry.release(table.name, table.id)
    instance.given_table("kept")
    handler = scheduled_handler(once(catalog_over(instance.stores)), sweep_nameless)
    for seconds in BURIED_AFTER:
        instance.clock.advance(seconds)
        handler({"time": "now"}, Run())
    with instance.function_stores("other").heads(table.id).reading() as state:
        assert state.head().dropped
    assert instance.lake.catalog.find("kept").name == "kept"
