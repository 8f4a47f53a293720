"""Hostile texts: no file is opened, nothing but SELECT runs, nothing crashes.

They are tried in a process of their own. Python's audit hook sees what Python opens; canaries show
what the engine would write or remove; and a named pipe shows what it would read: opening it blocks
for good, so the test would not end.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import LakebedError
from tests.unit.sql.hostile_texts import hostile_text

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


def check(folder: Path, seed: int, count: int) -> None:
    with lakebed.connect(folder / "lake") as lake:
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"s": "string?"})
        lake.create_table("trips", schema).ingest([{"id": n, "s": str(n)} for n in range(100)])
        lake.create_table("cities", schema)
    canary = folder / "canary"
    canary.mkdir()
    os.mkfifo(canary / "x.csv")
    (canary / "kept").write_text("kept")
    before = {path.name: path.stat().st_mtime_ns for path in canary.iterdir()}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    answered, refused = map(int, ended.stdout.split())
    assert answered + refused == count
    assert answered > count // 20, "the grammar makes good SQL, too"
    assert refused > count // 3
    assert {path.name: path.stat().st_mtime_ns for path in canary.iterdir()} == before
    assert sorted(path.name for path in folder.iterdir()) == ["canary", "lake"]


@pytest.mark.timeout(300)
def test_hostile_texts_do_nothing_but_answer(tmp_path: Path) -> None:
    check(tmp_path, 1, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_texts_do_nothing_but_answer(tmp_path: Path) -> None:
    check(tmp_path, 2, ALL)
