"""The tasks of docs/everyday.md run as printed, and none is longer than elsewhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

PAGE = (ROOT / "docs/everyday.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```python( given)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^- (?:DuckDB|deltalake|pyiceberg): `([^`]+)`$", re.MULTILINE)
OF_DUCKDB = re.compile(r"^- DuckDB: `([^`]+)`$", re.MULTILINE)
DUCKDB = """
import duckdb
import pyarrow as pa

rows = pa.table({"vehicle": ["a1", "b7"], "fare": [2.0, 4.5], "note": ["", "ab"], "at": [1, 2]})
con = duckdb.connect()
con.sql("create table trips as from rows")
"""
"""What its lines begin with: the connection, and the table that the tasks are about."""
GIVEN = next(block for given, block in FENCE.findall(PAGE) if given)
TASKS = [
    (f"{title}-{place}", *pair)
    for title, body in re.findall(
        r"^## (\d+)\. .*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    for place, pair in enumerate(
        re.findall(r"^```python\n(.*?)^```\n(.*?)(?=^```|\Z)", body, re.MULTILINE | re.DOTALL)
    )
]


def runs(text: str, folder: Path) -> None:
    """Run a program in a folder; it ends well, and says nothing."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_the_page_has_ten_tasks() -> None:
    assert [name for name, _, _ in TASKS if name.endswith("-0")] == [f"{n}-0" for n in range(1, 11)]


def test_the_tasks_run_as_printed_one_after_the_other(tmp_path: Path) -> None:
    runs(GIVEN + "".join(block for _, block, _ in TASKS), tmp_path)


@pytest.mark.parametrize("line", OF_DUCKDB.findall(PAGE))
def test_what_is_printed_of_duckdb_runs(line: str, tmp_path: Path) -> None:
    runs(f"{DUCKDB}{' '.join(line.split())}\n", tmp_path)


@pytest.mark.parametrize(("block", "rest"), [task[1:] for task in TASKS], ids=[t[0] for t in TASKS])
def test_no_task_is_longer_than_elsewhere(block: str, rest: str) -> None:
    others = [len(ast.parse(" ".join(code.split())).body) for code in ELSEWHERE.findall(rest)]
    assert len(ast.parse(block).body) <= min(others)
