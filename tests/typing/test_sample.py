"""Users' programs are checked by the types that the package ships, by mypy and by pyright.

They are checked against what the wheel holds, with the sources out of reach: a tool believes the
types of an installed package only where it says that it has some, by `py.typed`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy.source import ROOT
from tests.typing.installed import PACKAGES, installed

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


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed."""
    return installed(tmp_path_factory.mktemp("wheel"))


def run(tool: str, *args: str, path: Path, packages: Path) -> "subprocess.CompletedProcess[str]":
    """Run a tool beside a program, as a user would who has installed packages."""
    return subprocess.run(
        [sys.executable, "-m", tool, *args],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )


def by_mypy(path: Path, packages: Path) -> list[str]:
    """Return the lines of all mistakes that mypy finds."""
    settings = path.parent / "mypy.ini"
    settings.write_text(
        "[mypy]\nstrict = True\n[mypy-pyarrow.*]\nignore_missing_imports = True\n",
        "utf-8",
    )
    cache = ROOT / ".mypy_cache" / "sample"
    args = ("--config-file", str(settings), "--cache-dir", str(cache), path.name)
    done = run("mypy", *args, path=path, packages=packages)
    assert done.returncode in (0, 1), done.stderr
    return [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]


def by_pyright(path: Path, packages: Path) -> list[str]:
    """Return the lines of all mistakes that pyright finds."""
    project = {
        "typeCheckingMode": "strict",
        "include": [path.name],
        "reportMissingTypeStubs": False,  # pyarrow ships none: what is of it is unknown
        "reportUnknownParameterType": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        "reportUnknownArgumentType": False,
    }
    settings = path.parent / "pyrightconfig.json"
    settings.write_text(json.dumps(project), "utf-8")
    args = ("--outputjson", "--pythonpath", sys.executable, "-p", str(settings))
    done = run("pyright", *args, path=path, packages=packages)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [str(one["range"]["start"]["line"] + 1) for one in found if one["severity"] == "error"]


def test_what_is_installed_says_that_it_has_types_and_is_all_there_is(packages: Path) -> None:
    assert (packages / "lakebed/py.typed").is_file()
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    found = (path.relative_to(packages) for path in packages.rglob("*") if path.is_file())
    held = {str(path) for path in found if path.parts[0] in PACKAGES}
    assert sorted(set(tracked) - held) == []
    assert "lakebed/py.typed" in tracked


@pytest.mark.slow  # mypy reads all of Lakebed
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_the_sample_is_accepted_and_each_mistake_refused(
    check: Callable[[Path, Path], list[str]], packages: Path, tmp_path: Path
) -> None:
    right = SAMPLE.read_text("utf-8")
    path = tmp_path / "program.py"
    path.write_text(right, "utf-8")
    assert check(path, packages) == []
    wrong, lines = right, set[str]()
    for before, after in MISTAKES.items():
        assert right.count(before) == 1, before
        lines.add(str(right[: right.index(before)].count("\n") + 1))
        wrong = wrong.replace(before, after)
    assert wrong.count("\n") == right.count("\n")
    path.write_text(wrong, "utf-8")
    assert lines <= set(check(path, packages))
