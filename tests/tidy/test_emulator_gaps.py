"""What the emulator does not do is held by tests that exist."""

import ast
import re
from pathlib import Path

from tests.tidy.source import ROOT

PAGE = ROOT / "docs/design/localcloud.md"
_HEADING = "## What the emulator does not do\n"
_ROW = re.compile(r"^\| (?!On AWS)([^|-][^|]*) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
GAPS_MIN = 15


def gaps(page: str) -> dict[str, list[tuple[str, str]]]:
    """Return file and name of the tests that stand in for each gap."""
    section = page.partition(_HEADING)[2].partition("\n## ")[0]
    return {row[1]: _TEST.findall(row[2]) for row in _ROW.finditer(section)}


def missing(page: str, root: Path = ROOT) -> list[str]:
    """Return gaps without a test, and tests that are not there."""
    found = []
    for gap, tests in gaps(page).items():
        if not tests:
            found.append(f"{gap}: no test")
        for path, name in tests:
            file = root / path
            tree = ast.parse(file.read_text("utf-8")) if file.exists() else ast.Module([], [])
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            if name not in names:
                found.append(f"{gap}: {path} has no {name}")
    return found


def test_each_gap_is_held_by_tests_that_exist() -> None:
    page = PAGE.read_text("utf-8")
    assert len(gaps(page)) >= GAPS_MIN
    assert missing(page) == []


def test_a_gap_whose_test_is_gone_is_found() -> None:
    page = (
        f"{_HEADING}\n| On AWS | Here | Until then |\n|---|---|---|\n| one | none | a promise |\n"
        "| two | none | `tests/tidy/test_map.py::test_that_never_was` |\n\n## Limits\n"
    )
    assert missing(page) == [
        "one: no test",
        "two: tests/tidy/test_map.py has no test_that_never_was",
    ]
