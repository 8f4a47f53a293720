import os
import subprocess
import sys
import threading
from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.local import LocalObjectStore, open_lake_directory
from lakebed.backends.local.process_folder import (
    ProcessFolder,
    dead_in,
    notes_of_living,
    remove_dead,
)
from lakebed.backends.local.processes import LockedProcessReports
from lakebed.backends.system import SystemClock
from lakebed.errors import StorageFullError
from lakebed.model.names import Micros
from lakebed.ports.processes import ProcessReport

DIES = """
import os, signal, sys
from pathlib import Path
from lakebed.backends.local import LocalObjectStore, open_lake_directory
from lakebed.backends.local.process_folder import ProcessFolder
folder = ProcessFolder(Path(sys.argv[1]))
(folder.path / "run-1.arrow").write_bytes(b"rows")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_living_processs_folder_is_nobody_elses_to_remove(tmp_path: Path) -> None:
    folder = ProcessFolder(tmp_path)
    assert dead_in(tmp_path) == []
    assert remove_dead(tmp_path) == 0
    assert folder.path.is_dir()
    folder.close()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_two_folders_of_one_process_are_two(tmp_path: Path) -> None:
    one, other = ProcessFolder(tmp_path), ProcessFolder(tmp_path)
    assert one.path != other.path
    one.close()
    assert other.path.is_dir()
    other.close()


class WritesTwoBytes(FileIO):
    """A file whose disk takes two bytes at once."""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - as it is of files
        return super().write(memoryview(data)[:2])


def test_a_note_is_written_in_as_many_parts_as_the_disk_wants(tmp_path: Path) -> None:
    with closing(ProcessFolder(tmp_path)) as folder:
        locked = folder._lock
        with WritesTwoBytes(folder.path.with_suffix(".lock"), "r+b") as folder._lock:
            for note in (b"a first note", b"a note"):
                folder.write_note(note)
                assert [body for _, body, _ in notes_of_living(tmp_path)] == [note]
        folder._lock = locked


def test_a_full_disk_costs_the_note_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    now = Micros(1)
    report = ProcessReport(process="p", program="x", release="1.0", reads={}, started=now, at=now)
    folder, other = ProcessFolder(tmp_path), ProcessFolder(tmp_path)
    reports = LockedProcessReports(tmp_path, folder)
    lock = os.dup(folder._lock.fileno())  # which is held by it, too
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, folder._lock.fileno())
    try:
        with pytest.raises(StorageFullError):
            reports.report(report)
        names = {one.process: one.release for one in reports.living(now)}
        assert names == {"p": "1.0", other.path.name: ""}
        folder.close()
        assert {path.stem for path in tmp_path.iterdir()} == {other.path.name}
    finally:
        os.close(full)
        os.close(lock)
        other.close()


def test_what_a_killed_process_spilled_is_found_and_removed(tmp_path: Path) -> None:
    living = ProcessFolder(tmp_path)
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    assert [path.suffix for path in dead_in(tmp_path)] == ["", ".lock"]
    assert remove_dead(tmp_path) > 0
    assert {path.stem for path in tmp_path.iterdir()} == {living.path.name}
    living.close()


def test_spilled_rows_without_a_lock_are_somebodys_who_is_dead(tmp_path: Path) -> None:
    (tmp_path / "lakebed-sort-abc").mkdir()
    (tmp_path / "lakebed-sort-abc" / "run-1.arrow").write_bytes(b"rows")
    (tmp_path / "stray").write_bytes(b"")
    assert remove_dead(tmp_path) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_lake_opens_while_others_sweep_what_dead_writers_left(tmp_path: Path) -> None:
    open_lake_directory(tmp_path)
    store = LocalObjectStore(tmp_path, SystemClock())
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            store.abort_unfinished(older_than_seconds=0.0)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(100):
            open_lake_directory(tmp_path)
            store.create("x").abort()
    finally:
        stop.set()
        sweeper.join()
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_a_lake_opens_after_a_process_of_the_same_id_was_killed_in_its_probe(
    tmp_path: Path,
) -> None:
    open_lake_directory(tmp_path)
    left = tmp_path / "unfinished" / f"probe-{os.getpid()}"
    for name in (left, left.with_name(left.name + "-linked")):
        name.write_bytes(b"")
    open_lake_directory(tmp_path)
    assert list((tmp_path / "unfinished").iterdir()) == []
