"""What the emulators do not do is held by tests that exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

GAPS_MIN = {"localcloud.md": 17, "stacks.md": 7}
"""Gaps on each page of docs/design that lists some."""
_HEADING = "## What the emulator does not do\n"
_ROW = re.compile(r"^\|(?!---|\s*On AWS )(.*)\|$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_TEST = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")
HERE = "tests/tidy/test_emulator_gaps.py"


def gaps(page: str) -> dict[str, list[str]]:
    """Return what is named for each gap: tests, as pytest is given them."""
    section = page.partition(_HEADING)[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.split("|")] for row in _ROW.findall(section)]
    return {row[0]: _NAME.findall(row[-1]) for row in rows}


def missing(page: str, root: Path = ROOT) -> list[str]:
    """Return gaps without a test, what is named and is no test, and tests that are not there."""
    found = []
    for gap, names in gaps(page).items():
        if not names:
            found.append(f"{gap}: no test")
        for name in names:
            match = _TEST.fullmatch(name)
            if match is None:
                found.append(f"{gap}: {name} is not PATH::NAME")
            elif match[2] not in functions_of(root / match[1]):
                found.append(f"{gap}: {match[1]} has no {match[2]}")
    return found


def functions_of(file: Path) -> set[str]:
    """Return the names of a file's functions; none, where it is not there."""
    tree = ast.parse(file.read_text("utf-8")) if file.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", GAPS_MIN)
def test_each_gap_is_held_by_tests_that_exist(name: str) -> None:
    page = (ROOT / "docs/design" / name).read_text("utf-8")
    assert len(gaps(page)) >= GAPS_MIN[name]
    assert missing(page) == []


def test_each_list_of_gaps_is_looked_at() -> None:
    listing = [
        page.name for page in ROOT.glob("docs/**/*.md") if _HEADING in page.read_text("utf-8")
    ]
    assert sorted(listing) == sorted(GAPS_MIN)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (" one | none | a promise ", "one: no test"),
        (" one | none ", "one: no test"),
        ("one|none|", "one: no test"),
        (" - one | none | a promise ", "- one: no test"),
        (f" one | none | `{HERE}::{{it}}`, a `promise` ", "one: promise is not PATH::NAME"),
        (f" one | none | `{HERE}` ", f"one: {HERE} is not PATH::NAME"),
        (f" one | none | `{HERE}::test_never` ", f"one: {HERE} has no test_never"),
        (f" one | none | `{HERE}::ROOT` ", f"one: {HERE}::ROOT is not PATH::NAME"),
        (" one | none | `tests/gone.py::test_it` ", "one: tests/gone.py has no test_it"),
    ],
)
def test_a_gap_whose_test_is_not_there_is_found(cells: str, told: str) -> None:
    row = cells.format(it=test_each_gap_is_held_by_tests_that_exist.__name__)
    head = f"{_HEADING}\n| On AWS | Here | Until then |\n|---|---|---|\n"
    assert missing(f"{head}|{row}|\n\n## Limits\n| more | of | these |\n") == [told]
