"""The services of scheduled work, built by the name of the work."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.bootstrap.functions.scheduled_work import JobStores, app_over
from lakebed.errors import InvalidError
from lakebed.model.jobs import COMPACTION_CREATION, TICK_KINDS
from tests.dsl.memory_instance import MemoryInstance

ROOT = Path(__file__).resolve().parents[4]

OWN = {
    "splitting": "lakebed.splitting.split_leaves",
    "compaction-creation": "lakebed.compaction.create_jobs",
    "garbage": "lakebed.garbage.collect",
    "sweep": "lakebed.garbage.sweep",
    "snapshots": "lakebed.statestore.write_snapshot",
}
"""The module that only one kind of work needs."""

BUILD = """
import random, sys
from pathlib import Path
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.job_queues import MemoryJobQueues
from lakebed.backends.memory.job_tracker import MemoryJobTracker
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.backends.memory.table_marks import MemoryTableMarks
from lakebed.backends.memory.table_registry import MemoryTableRegistry
from lakebed.backends.memory.transaction_logs import MemoryTransactionLogs
from lakebed.bootstrap.functions.scheduled_work import JobStores, app_over
from lakebed.bootstrap.functions.table_stores import table_stores
clock = VirtualClock()
stores = table_stores(
    clock=clock,
    rng=random.Random(1),
    objects=MemoryObjectStore(clock),
    logs=MemoryTransactionLogs(clock),
    registry=MemoryTableRegistry(),
    marks=MemoryTableMarks(),
    folder=Path({folder!r}),
)
jobs = JobStores(MemoryJobQueues(clock).open("compaction"), MemoryJobTracker())
app_over({work!r}, stores, open_job_stores=lambda: jobs)
print(*sys.modules)
"""


def not_opened() -> JobStores:
    raise AssertionError("only work that creates jobs may open these stores")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[MemoryInstance]:
    instance = MemoryInstance(tmp_path)
    yield instance
    instance.lake.close()


@pytest.mark.parametrize("work", sorted(set(TICK_KINDS) - {COMPACTION_CREATION}))
def test_work_that_creates_no_jobs_opens_no_stores_of_jobs(
    instance: MemoryInstance, work: str
) -> None:
    instance.given_table("trips")
    table = instance.lake.catalog.entry("trips").id
    assert app_over(work, instance.stores, open_job_stores=not_opened).run(table) == 0
    assert set(instance.marks.list()[table].handled) == {work}


def test_work_that_no_schedule_knows_is_refused(instance: MemoryInstance) -> None:
    with pytest.raises(InvalidError, match=r"work=sweeping.*known=compaction-creation,garbage"):
        app_over("sweeping", instance.stores, open_job_stores=not_opened)


@pytest.mark.parametrize("work", TICK_KINDS)
def test_a_kind_of_work_loads_its_own_service_and_no_rows(tmp_path: Path, work: str) -> None:
    program = BUILD.format(folder=str(tmp_path), work=work)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded & set(OWN.values()) == {OWN[work]}
    assert not loaded & {"pyarrow", "numpy", "boto3"}
