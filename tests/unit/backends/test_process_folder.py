import os
import subprocess
import sys
import threading
from pathlib import Path

from lakebed.backends.local import LocalObjectStore, open_lake_directory
from lakebed.backends.local.process_folder import ProcessFolder, dead_in, remove_dead
from lakebed.backends.system import SystemClock

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
