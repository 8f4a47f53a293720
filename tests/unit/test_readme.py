"""The README's Python and its feed work as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figure_pages.page import latest
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


def test_the_feed_of_the_readme_runs_and_says_what_is_printed(tmp_path: Path) -> None:
    section = README.split("\n## A feed\n")[1].split("\n## ")[0]
    (typed,) = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    call = "from lakebed.cli.main import main; main()"
    lakebed = f'lakebed() {{ "{sys.executable}" -c "{call}" "$@"; }}'
    run = subprocess.run(
        ["bash", "-c", f"set -e\n{lakebed}\n{typed}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.partition("rides is to be running\n")[2]
    split = re.compile(r"\b[0-9a-f]{6}-[0-9a-f]{24}\b")  # of the file's number on its disk
    assert split.sub("SPLIT", said).splitlines() == split.sub("SPLIT", printed).splitlines()


def test_the_readme_has_an_example() -> None:
    assert BLOCKS


def figures(pattern: str) -> list[float]:
    return [figure.value for figure in latest() if re.fullmatch(pattern, figure.name)]


def told(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, " ".join(README.split()))
    assert found, pattern
    return found.groups()


def test_the_first_screen_has_the_figures_that_were_measured() -> None:
    merges = figures(r"merge\.\w+\.ratio_to_datafusion")
    least, most = told(r"merges ([\d.]+) to ([\d.]+) times as many rows a second")
    assert (least, most) == (f"{min(merges):.1f}", f"{max(merges):.1f}")
    (milliseconds,) = figures(r"lookup\.p50_over_latency_ms")
    assert told(r"takes (\d+) ms above the latency") == (f"{milliseconds:.0f}",)
    others = figures(r"lookup\.ratio_to_(datafusion|polars|pyarrow)")
    least, most = told(r"take (\d+) to (\d+) times as long")
    assert (least, most) == (f"{min(others):.0f}", f"{max(others):.0f}")


def test_the_first_screen_shows_what_it_is() -> None:
    screen = README.partition("## ")[0]
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", screen)
    assert {"whole.svg", "figures-merge.svg", "figures-lookup.svg"} == {
        path.rpartition("/")[2] for path in shown
    }
    assert "pip install" in screen
