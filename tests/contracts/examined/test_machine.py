"""What a machine is asked, in memory and of the one that tests run on."""

from pathlib import Path

import pytest

from lakebed.backends.memory.machine import MachineFigures, MemoryMachine
from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.this_machine import ThisMachine
from lakebed.errors import LakebedError, StorageFullError
from lakebed.ports.examined.machine import Machine


@pytest.fixture(params=["memory", "this"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """One on which dead processes left two things."""
    left = ["one", "two"]
    if request.param == "memory":
        return MemoryMachine(MachineFigures(leftovers=left))

    def swept() -> int:
        count = len(left)
        left.clear()
        return count

    return ThisMachine(
        [tmp_path, tmp_path / "gone"],
        own=tmp_path,
        clock=SystemClock(),
        memory_bytes=lambda: 1 << 30,
        ahead_seconds=lambda: 0.5,
        find_leftovers=lambda: list(left),
        sweep_leftovers=swept,
    )


def test_what_a_lake_needs_is_told(machine: Machine) -> None:
    assert machine.python() >= (3, 11)
    assert {"sqlite", "pyarrow"} <= set(machine.versions())
    (room,) = machine.rooms()
    assert 0 < room.free <= room.size
    assert machine.network_folders() == []
    assert 0 <= machine.write_a_file() < 30
    assert machine.foreign_files() == []
    assert machine.memory_bytes() >= 1 << 30
    files = machine.files_max()
    assert files is None or files > 0
    ahead = machine.clock_ahead_seconds()
    assert ahead is not None
    assert abs(ahead) < 1


def test_what_dead_processes_left_is_told_and_removed(machine: Machine) -> None:
    assert machine.leftovers() == ["one", "two"]
    assert machine.sweep_leftovers() == 2
    assert machine.leftovers() == []
    assert machine.sweep_leftovers() == 0


def test_a_file_that_is_written_to_try_is_removed(tmp_path: Path, machine: Machine) -> None:
    machine.write_a_file()
    assert list(tmp_path.iterdir()) == []


def refuses(method: str) -> None:
    if method == "write_a_file":
        raise StorageFullError("no space", hint="free some")


@pytest.mark.parametrize("kind", ["memory", "this"])
def test_a_folder_that_takes_no_file_is_told(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lakebed.backends.system.this_machine.os.fsync", full)
    made: Machine = MemoryMachine(asked=refuses)
    if kind == "this":
        made = ThisMachine(
            [tmp_path],
            own=None,
            clock=SystemClock(),
            memory_bytes=lambda: 1,
            ahead_seconds=lambda: None,
            find_leftovers=list,
            sweep_leftovers=lambda: 0,
        )
    with pytest.raises(LakebedError):
        made.write_a_file()
