"""The README's Python works as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_of_the_readme_runs_as_printed(tmp_path: Path, block: str) -> None:
    program = tmp_path / "example.py"
    program.write_text(block, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    times, *explained, rows = run.stdout.splitlines()
    assert times.endswith("'fare': [3.0, 4.5]}")
    assert explained[0].split() == ["rows", "2"]
    assert rows == "1"


def test_the_readme_has_an_example() -> None:
    assert BLOCKS
