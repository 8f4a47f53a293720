"""Names that were replaced do not come back: `docs/style.md` lists them."""

import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.tidy.source import ROOT, Source, project_files

PRODUCT = ("app", "containers", "lakebed", "lambdas", "localcloud", "spark_jobs", "stacks")
_ROW = re.compile(r"^\| (`[^|]*) \| (`[^|]*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def replaced() -> set[str]:
    """Return the names of the page's first column."""
    page = (ROOT / "docs/style.md").read_text("utf-8")
    return {name for row in _ROW.finditer(page) for name in _NAME.findall(row[1])}


def identifiers(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and name of each identifier."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def found(source: Source, names: set[str]) -> list[str]:
    """Return where a source uses one of these names."""
    return [
        f"{source.path}:{line} {name}"
        for line, name in identifiers(source)
        if name.lstrip("_") in names
    ]


def test_no_identifier_is_a_replaced_name() -> None:
    names = replaced()
    assert {"chance", "WhomToTell", "whom"} <= names
    product = [s for s in project_files() if s.is_python and s.inside(*PRODUCT)]
    assert len(product) > 200
    assert [use for source in product for use in found(source, names)] == []


@pytest.mark.parametrize("text", ["chance = 1\n", "self._chance.random()\n", "f(whom=1)\n"])
def test_a_replaced_name_is_found(text: str) -> None:
    assert found(Source("lakebed/x.py", text), replaced())


def test_words_in_strings_and_comments_are_free() -> None:
    assert not found(Source("lakebed/x.py", '"""By chance."""  # whom\n'), replaced())
