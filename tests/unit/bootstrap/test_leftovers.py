"""What dead processes left is found and removed; what belongs to living ones stays."""

from pathlib import Path

import pytest

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.process_folder import SUFFIX, ProcessFolder
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.job_queues import MemoryJobQueues
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.backends.memory.transaction_logs import MemoryTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.leftovers import UNFINISHED_SECONDS_MAX, Leftovers
from lakebed.errors import ConflictError


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def logs(clock: VirtualClock) -> MemoryTransactionLogs:
    return MemoryTransactionLogs(clock)


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


def dead_process(spill: Path, name: str) -> None:
    """Leave what a process leaves that was killed: its lock is nobody's."""
    (spill / f"{name}{SUFFIX}").touch()
    (spill / name).mkdir()
    (spill / name / "rows").write_bytes(b"spilled")


def test_the_folder_of_a_dead_process_goes_and_that_of_a_living_one_stays(
    spill: Path, clock: VirtualClock, logs: MemoryTransactionLogs
) -> None:
    leftovers = Leftovers(logs, MemoryObjectStore(clock), MemoryJobQueues(clock), spill)
    own = ProcessFolder(spill)
    assert leftovers.find() == []
    dead_process(spill, "99999-0")
    assert {found.code for found in leftovers.find()} == {"spill-left"}
    assert leftovers.sweep() == 2  # the lock, and the folder beside it
    assert leftovers.find() == []
    assert leftovers.sweep() == 0
    assert own.path.is_dir()
    own.close()


def test_objects_of_this_machine_go_however_new_and_others_when_they_are_old(
    tmp_path: Path, spill: Path, clock: VirtualClock, logs: MemoryTransactionLogs
) -> None:
    here, elsewhere = LocalObjectStore(tmp_path, SystemClock()), MemoryObjectStore(clock)
    left = tmp_path / "unfinished" / "99999-0"
    left.write_bytes(b"half")
    queues = MemoryJobQueues(clock)
    assert [found.code for found in Leftovers(logs, here, queues, spill).find()] == [
        "unfinished-upload"
    ]
    assert Leftovers(logs, here, queues, spill).sweep() == 1
    assert not left.exists()
    elsewhere.create("tables/a/files/b").write(b"half")
    assert Leftovers(logs, elsewhere, queues, spill).sweep() == 0
    clock.advance(UNFINISHED_SECONDS_MAX)
    assert Leftovers(logs, elsewhere, queues, spill).sweep() == 1


def test_a_repair_asks_to_be_alone(
    spill: Path, clock: VirtualClock, logs: MemoryTransactionLogs
) -> None:
    leftovers = Leftovers(logs, MemoryObjectStore(clock), MemoryJobQueues(clock), spill)
    own = ProcessFolder(spill)
    leftovers.require_alone(own)
    other = ProcessFolder(spill)
    with pytest.raises(ConflictError, match="another process has the lake open"):
        leftovers.require_alone(own)
    other.close()
    leftovers.require_alone(own)
    own.close()
