"""Modules and folders that pages name are there: moves take the pages with them."""

import re
from collections.abc import Iterator

import pytest

from tests.tidy.source import ROOT, Source, project_files

MODULE = re.compile(r"`([\w./-]+\.py)`")
FOLDER = re.compile(r"`((?:benchmarks|lakebed|lambdas|localcloud|stacks|tests)/[\w/]+)`")
HISTORY = ("docs/decisions",)
"""Pages that tell what was."""

PATHS = frozenset(source.path for source in project_files())
NAMES = frozenset(path.rpartition("/")[2] for path in PATHS)


def missing(page: Source) -> Iterator[str]:
    """Yield what a page names that is not there. A module may be named by the end of its path."""
    for name in MODULE.findall(page.text):
        ends = (
            name in NAMES if "/" not in name else any(f"/{p}".endswith(f"/{name}") for p in PATHS)
        )
        if not ends:
            yield f"{page.path}: {name}"
    for name in FOLDER.findall(page.text):
        if not (ROOT / name).exists():
            yield f"{page.path}: {name}"


def test_pages_name_modules_that_are_there() -> None:
    pages = [s for s in project_files() if s.is_markdown and not s.inside(*HISTORY)]
    assert len(pages) > 50
    assert [name for page in pages for name in missing(page)] == []


@pytest.mark.parametrize("text", ["`gone.py`", "`lakebed/gone.py`", "see `lakebed/gone`"])
def test_a_module_that_is_gone_is_found(text: str) -> None:
    assert list(missing(Source("docs/design/model.md", text)))


@pytest.mark.parametrize("text", ["`head.py`", "`statestore/head.py`", "`lakebed/statestore`"])
def test_a_module_that_is_there_is_not_reported(text: str) -> None:
    assert not list(missing(Source("docs/design/model.md", text)))
