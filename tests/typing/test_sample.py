"""Users' programs are checked by the types that the package ships, by mypy and by pyright."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

SAMPLE = Path(__file__).with_name("sample.py")
MISTAKES = {
    'settings={"leaf_rows_max": 50_000}': "settings=7",
    "table.count(where=keep)": "table.count(wehre=keep)",
    "file.bytes": "file.byte",
    "explanation.requests": "str(explanation.requests)",
    "await table.count()": "table.count()",
    "threads=2": 'threads="2"',
    "(await table.schema).row_keys": "table.schema.row_keys",
    "async for batch in table.query": "async for batch in await table.query",
    "await change.read().read_all()": "change.read().read_all()",
    "len(change.job)": "len(change.rows)",
    'lake.status("trips")[0].leaves': 'lake.status("trips").leaves',
}
"""What is right in the sample, and a mistake in its place."""


def by_mypy(path: Path) -> list[str]:
    """Return the lines of all mistakes that mypy finds, as a user would run it."""
    settings = path.parent / "mypy.ini"
    settings.write_text(
        "[mypy]\nstrict = True\n[mypy-pyarrow.*]\nignore_missing_imports = True\n"
        # of an installed package mypy reads the types, and tells no mistakes
        "[mypy-lakebed.*]\nfollow_imports = silent\n",
        "utf-8",
    )
    cache = ROOT / ".mypy_cache" / "sample"
    command = ["-m", "mypy", "--config-file", str(settings), "--cache-dir", str(cache), str(path)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]


def by_pyright(path: Path) -> list[str]:
    """Return the lines of all mistakes that pyright finds, as a user would run it."""
    project = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        "include": [path.name],
        "reportMissingTypeStubs": False,  # pyarrow ships none: what is of it is unknown
        "reportUnknownParameterType": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        "reportUnknownArgumentType": False,
    }
    settings = path.parent / "pyrightconfig.json"
    settings.write_text(json.dumps(project), "utf-8")
    command = ["-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(settings)]
    done = subprocess.run(
        [sys.executable, *command], cwd=path.parent, capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [str(one["range"]["start"]["line"] + 1) for one in found if one["severity"] == "error"]


@pytest.mark.slow  # mypy reads all of Lakebed
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_the_sample_is_accepted_and_each_mistake_refused(
    check: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    right = SAMPLE.read_text("utf-8")
    path = tmp_path / "program.py"
    path.write_text(right, "utf-8")
    assert check(path) == []
    wrong, lines = right, set[str]()
    for before, after in MISTAKES.items():
        assert right.count(before) == 1, before
        lines.add(str(right[: right.index(before)].count("\n") + 1))
        wrong = wrong.replace(before, after)
    assert wrong.count("\n") == right.count("\n")
    path.write_text(wrong, "utf-8")
    assert lines <= set(check(path))
