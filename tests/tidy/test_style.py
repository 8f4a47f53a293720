"""One thing, one name: names that were replaced do not come back (`docs/style.md` lists them), and
no two classes share one. Docstrings open with what a thing is or does. Folders stay small."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from tests.tidy.source import ROOT, Source, project_files

PRODUCT = ("app", "containers", "lakebed", "lambdas", "localcloud", "spark_jobs", "stacks")
_ROW = re.compile(r"^\| (`[^|]*) \| (`[^|]*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")
MODULES_MAX = 25
"""In one folder."""
PREPOSITIONS = re.compile(
    r"(About|After|At|Before|Behind|Beside|Between|Beyond|By|For|From|In|Into|Of|On|Over|To|Under"
    r"|With|Without)\b"
)


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


def product() -> list[Source]:
    """Return the modules that are the product, without what tests, measures or explains it."""
    modules = [s for s in project_files() if s.path.endswith(".py") and s.inside(*PRODUCT)]
    assert len(modules) > 200
    return modules


def shared_names(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Return the classes that several modules define, by name: where. Private ones are free."""
    places: dict[str, list[str]] = {}
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(source.path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def opening_with_prepositions(source: Source) -> Iterator[str]:
    """Yield where a docstring opens with a preposition, and so leaves out what the thing is."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            if PREPOSITIONS.match(text):
                yield f"{source.path}: {text[:60]}"


def test_no_identifier_is_a_replaced_name() -> None:
    names = replaced()
    assert {"chance", "WhomToTell", "whom"} <= names
    assert [use for source in product() for use in found(source, names)] == []


def test_no_two_classes_share_a_name() -> None:
    assert shared_names(product()) == {}


def test_a_shared_name_is_found() -> None:
    one, other = (Source(f"lakebed/{name}.py", "class Job:\n    pass\n") for name in "ab")
    assert shared_names([one, other]) == {"Job": [one.path, other.path]}


def test_docstrings_open_with_what_a_thing_is_or_does() -> None:
    assert [found for source in product() for found in opening_with_prepositions(source)] == []


def test_a_docstring_that_opens_with_a_preposition_is_found() -> None:
    text = 'def load():\n    """Of a table, the rows."""\n'
    assert list(opening_with_prepositions(Source("lakebed/x.py", text)))


def test_folders_are_small_enough_to_be_read() -> None:
    folders = Counter(s.path.rpartition("/")[0] for s in project_files() if s.path.endswith(".py"))
    assert {name: count for name, count in folders.items() if count > MODULES_MAX} == {}


@pytest.mark.parametrize("text", ["chance = 1\n", "self._chance.random()\n", "f(whom=1)\n"])
def test_a_replaced_name_is_found(text: str) -> None:
    assert found(Source("lakebed/x.py", text), replaced())


def test_words_in_strings_and_comments_are_free() -> None:
    assert not found(Source("lakebed/x.py", '"""By chance."""  # whom\n'), replaced())
