"""Pages that are made from the source are as the source is."""

import runpy

import pytest

from lakebed.errors import Explanation, explanations
from lakebed.observe import events
from tests.tidy.source import ROOT

GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: dict[str, str] = GENERATOR["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_says_what_the_source_says(name: str) -> None:
    path = ROOT / "docs" / "reference" / name
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == PAGES[name], "run `make docs`, and commit what it wrote"


def test_every_reference_page_is_made() -> None:
    found = {path.name for path in (ROOT / "docs" / "reference").iterdir()}
    assert found == set(PAGES), "docs/reference is written by docs/generate.py only"


@pytest.mark.parametrize("one", explanations(), ids=lambda one: one.code)
def test_an_error_says_its_cause_what_is_done_and_what_you_can_do(one: Explanation) -> None:
    assert one.cause.endswith(".")
    assert one.done.endswith("."), "its docstring needs a part `What is done: ...`"
    assert one.can_do.endswith("."), "its docstring needs a part `What you can do: ...`"


def test_every_event_has_a_meaning_and_is_told_somewhere() -> None:
    names = {value for name, value in vars(events).items() if name.isupper() and name != "MEANINGS"}
    assert names - {events._LOGGER} == set(events.MEANINGS)
    assert set(GENERATOR["facts_told"]()) == set(events.MEANINGS)
