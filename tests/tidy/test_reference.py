"""Pages that are made from the source are as the source is."""

import ast
import re
import runpy
from collections.abc import Callable
from functools import cache

import pytest

from lakebed.cli.error_explanations import ErrorExplanation, explanations
from lakebed.observe import events
from tests.tidy.source import ROOT

GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate.py"))
REFERENCE, PACKAGE = ROOT / "docs" / "reference", ROOT / "lakebed" / "pages"
NAMES, PACKAGED = (sorted(p.name for p in folder.iterdir()) for folder in (REFERENCE, PACKAGE))
"""The names of the pages that are there: those that are made take seconds, which tests may take and
collecting them may not."""
AMONG_OTHERS: dict[str, Callable[[], str]] = GENERATOR["MADE_AMONG_OTHERS"]


@cache
def made() -> dict[str, str]:
    """Return the pages of the reference."""
    return GENERATOR["pages"]()


@cache
def packaged() -> dict[str, str]:
    """Return the pages of the package."""
    return GENERATOR["packaged_pages"](made())


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_page_says_what_the_source_says(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == made().get(name), "run `make docs`, and commit what it wrote"


@pytest.mark.parametrize("name", AMONG_OTHERS)
def test_a_made_file_among_others_says_what_the_source_says(name: str) -> None:
    written = (ROOT / name).read_text(encoding="utf-8")
    assert written == AMONG_OTHERS[name](), "run `make docs`, and commit what it wrote"


@pytest.mark.parametrize("name", PACKAGED)
def test_a_page_of_the_package_is_a_copy(name: str) -> None:
    written = (PACKAGE / name).read_text(encoding="utf-8")
    assert written == packaged().get(name), "run `make docs`, and commit what it wrote"


def test_the_package_has_all_of_these_pages() -> None:
    assert set(PACKAGED) == set(packaged())
    assert not {one.code for one in explanations()} & {name[:-3] for name in PACKAGED}


def test_no_text_leads_to_a_page_that_is_not_installed() -> None:
    for path in sorted((ROOT / "lakebed").rglob("*.py")):
        if path.name == "metrics.py":  # alarms of an instance, which is deployed from the sources
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        remarks = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and "docs/" in str(node.value):
                told = id(node) in remarks
                assert told, f"{path}:{node.lineno}: say `lakebed explain PAGE`"


def test_every_page_that_a_text_names_can_be_explained() -> None:
    known = {one.code for one in explanations()} | {name[:-3] for name in packaged()} | {"CODE"}
    for path in sorted((ROOT / "lakebed").rglob("*.py")):
        for name in re.findall(r"`lakebed explain ([A-Za-z-]+)`", path.read_text("utf-8")):
            assert name in known | {"PAGE"}, path


def test_every_reference_page_is_made() -> None:
    assert set(NAMES) == set(made()), "docs/reference is written by docs/generate.py only"


@pytest.mark.parametrize("one", explanations(), ids=lambda one: one.code)
def test_an_error_says_its_cause_what_is_done_and_what_you_can_do(one: ErrorExplanation) -> None:
    assert one.cause.endswith(".")
    assert one.done.endswith("."), "its docstring needs a part `What is done: ...`"
    assert one.can_do.endswith("."), "its docstring needs a part `What you can do: ...`"


def test_every_event_has_a_meaning_and_is_told_somewhere() -> None:
    names = {value for name, value in vars(events).items() if name.isupper() and name != "MEANINGS"}
    assert names - {events._LOGGER} == set(events.MEANINGS)
    assert set(GENERATOR["facts_emitted"]()) == set(events.MEANINGS)
