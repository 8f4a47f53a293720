"""Hostile texts: no file is opened, nothing but SELECT runs, nothing crashes.

They are tried in a process of their own, whose working folder and home are a canary. Python's audit
hook sees what Python opens. All files that texts name lie in the canary. On Linux the kernel tells
of everything that any code opens, lists, makes or changes in there; elsewhere these files are named
pipes: who opens one waits for good, so the test would not end.
"""

import ctypes
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import LakebedError
from tests.tidy.source import ROOT
from tests.unit.sql.hostile_texts import PIPES, hostile_text

QUICK, ALL = 300, 10_000
PROGRAM = """
import random, sys
from pathlib import Path
from tests.unit.sql.test_hostile_sql import try_texts
try_texts(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


def try_texts(folder: Path, seed: int, count: int) -> None:
    """Try so many texts on a lake, and print how they ended."""
    rng, ends = random.Random(seed), {"answered": 0, "refused": 0}
    lake_folder = str(folder / "lake")
    opened: list[str] = []
    with lakebed.connect(lake_folder) as lake:
        lake.sql("select count(*) from trips").read_all()  # what is imported late is there now

        def watch(event: str, args: tuple[object, ...]) -> None:
            if event in {"open", "os.remove", "os.rename", "os.mkdir", "subprocess.Popen"}:
                path = str(args[0])
                if not path.startswith(lake_folder):
                    opened.append(f"{event} {path}")

        sys.addaudithook(watch)
        for _ in range(count):
            text = hostile_text(rng).replace("CANARY", str(folder / "canary"))
            try:
                for _, _batch in zip(range(3), lake.sql(text), strict=False):
                    pass
                ends["answered"] += 1
            except LakebedError as error:
                ends["refused" if error.hint else "without a hint"] += 1
        assert lake.table("trips").count() == 100, "rows are as they were"
        assert lake.tables() == ["cities", "trips"]
    foreign = [what for what in opened if "/proc/" not in what and not _is_pythons(what)]
    assert not foreign, foreign
    sys.stdout.write(f"{ends['answered']} {ends['refused']}")


def _is_pythons(what: str) -> bool:
    """Whether Python reads its own sources, as it does to show an error."""
    return what.startswith("open ") and (what.endswith(".py") or ".pyc" in what or ".so" in what)


class Watched:
    """What the kernel tells of a folder and those below it: `inotify` of Linux, none elsewhere."""

    ALL_EVENTS = 0xFFF

    def __init__(self, folder: Path) -> None:
        self._queue = -1
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            self._queue = libc.inotify_init1(os.O_NONBLOCK)
            assert self._queue >= 0, os.strerror(ctypes.get_errno())
            for one in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
                added = libc.inotify_add_watch(self._queue, os.fsencode(one), self.ALL_EVENTS)
                assert added >= 0, os.strerror(ctypes.get_errno())

    def events(self) -> bytes:
        """Return what was told since the last call, as the kernel writes it; b"": nothing."""
        try:
            return b"" if self._queue < 0 else os.read(self._queue, 1 << 16)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        if self._queue >= 0:
            os.close(self._queue)


def made_canary(folder: Path) -> Path:
    canary = folder / "canary"
    for pipe in PIPES:
        (canary / pipe).parent.mkdir(parents=True, exist_ok=True)
        if sys.platform == "linux":
            (canary / pipe).write_text("a\n1\n")  # opening it is told
        else:
            os.mkfifo(canary / pipe)
    (canary / "kept").write_text("kept")
    return canary


def check(folder: Path, seed: int, count: int) -> None:
    with lakebed.connect(folder / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"s": "string?"})
        lake.create_table("trips", schema).ingest([{"id": n, "s": str(n)} for n in range(100)])
        lake.create_table("cities", schema)
    canary = made_canary(folder)
    before = {path: path.stat().st_mtime_ns for path in canary.rglob("*")}
    watched = Watched(canary)
    trying = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(folder), str(seed), str(count)],
        cwd=canary,
        env={**os.environ, "HOME": str(canary), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while trying.poll() is None:
        if seen := watched.events():
            trying.kill()
            trying.wait()
            raise AssertionError(seen)
        time.sleep(0.1)
    stdout, stderr = trying.communicate()
    assert (trying.returncode, stderr) == (0, ""), stdout
    assert watched.events() == b""
    assert {path: path.stat().st_mtime_ns for path in canary.rglob("*")} == before
    assert watched.events() or sys.platform != "linux", "that was seen"
    watched.close()
    answered, refused = map(int, stdout.split())
    assert answered + refused == count
    assert answered > count // 20, "the grammar makes good SQL, too"
    assert refused > count // 3
    assert sorted(path.name for path in folder.iterdir()) == ["canary", "lake"]


@pytest.mark.timeout(300)
def test_hostile_texts_do_nothing_but_answer(tmp_path: Path) -> None:
    check(tmp_path, 1, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_texts_do_nothing_but_answer(tmp_path: Path) -> None:
    check(tmp_path, 2, ALL)
