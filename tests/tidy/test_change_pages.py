"""docs/change: recipes name files and tests that are there, and follow an example that exists."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.source import ROOT

FOLDER = ROOT / "docs" / "change"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
EXAMPLE = "Worked example: "
STEP = re.compile(r"^\| (\d+) \| `([^`]+)` \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)(?:::(\w+))?`")


class Recipe(NamedTuple):
    """The steps of one worked example. words: of which each file of code has one."""

    name: str
    words: list[str]
    steps: list[tuple[str, str, str, str]]


def recipes() -> list[Recipe]:
    """Return every recipe of every page."""
    found = []
    for page in PAGES:
        for number, part in enumerate(page.read_text("utf-8").split(EXAMPLE)[1:]):
            told = part.partition("\n\n")[0]
            words = re.findall(r"`([^`]+)`", told)
            found.append(Recipe(f"{page.stem}-{number}", words, STEP.findall(part)))
    return found


@cache
def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_front_page_leads_to_every_recipe() -> None:
    front = (FOLDER / "README.md").read_text("utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", front)) == {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_recipe_names_is_there(page: Path) -> None:
    for path, test in PATH.findall(page.read_text("utf-8")):
        assert (ROOT / path).is_file(), path
        assert not test or test in functions(ROOT / path), f"{path}::{test}"


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_a_recipe_has_steps_in_order_and_a_test_that_misses_some(recipe: Recipe) -> None:
    numbers = [int(number) for number, *_ in recipe.steps]
    assert numbers == list(range(1, len(numbers) + 1))
    assert any("::test_" in forgotten for *_, forgotten in recipe.steps)


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_a_recipe_follows_its_example(recipe: Recipe) -> None:
    assert recipe.words, f"say `{EXAMPLE}` and its name in code"
    for _, path, *_ in recipe.steps:
        if path.endswith(".py"):
            text = (ROOT / path).read_text("utf-8")
            assert any(word in text for word in recipe.words), f"{path}: none of {recipe.words}"
