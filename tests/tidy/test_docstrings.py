"""Docstrings open with what a thing is or does, and explain each field and argument on a line of
its own."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.tidy.source import Source, product
from tests.tidy.test_style import texts_of

PACKED = (
    "lakebed/kernels",
    "lakebed/errors",
    "lakebed/feed_errors",
    "lakebed/query/datasets",
    "lakebed/query/run_query",
    "lakebed/sorted_files/parquet_files",
    "lakebed/statestore/head",
)
"""Where docstrings of functions still explain several arguments in one paragraph."""
PREPOSITIONS = re.compile(
    r"(About|After|At|Before|Behind|Beside|Between|Beyond|By|For|From|In|Into|Of|On|Over|To|Under"
    r"|With|Without)\b"
)
QUESTIONS = re.compile(r"(How|What|When|Where|Whether|Which|Who)\b")
NOT_VERBS = re.compile(rf"{QUESTIONS.pattern}|(A|All|An|Each|The)\b")
NOT_NOUNS = re.compile(
    rf"{PREPOSITIONS.pattern}|{QUESTIONS.pattern}"
    r"|(Also|Among|Below|So|That|They|Those|Unless|Until|Whose|Why)\b"
)
"""Openings of a constant's docstring that leave out what the constant is."""


def fields_in_a_paragraph(source: Source) -> Iterator[str]:
    """Yield where a class's docstring begins to explain a field in the middle of a line."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            members = (m.target for m in node.body if isinstance(m, ast.AnnAssign))
            names = [target.id for target in members if isinstance(target, ast.Name)]
            name = f"(?:{'|'.join(names)})"
            found = re.search(
                rf"""[.;)\]"`] ((?:{name}, )*{name}):(?: |$)""",
                ast.get_docstring(node) or "" if names else "",
                re.MULTILINE,
            )
            if found:
                yield f"{source.path}: {node.name}, {found[1]}"


def arguments_in_a_paragraph(source: Source) -> Iterator[str]:
    """Yield where a docstring explains several arguments and begins one in the middle of a line."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            name = rf"(?:{'|'.join(names)})"
            explained = rf"((?:{name}, )*{name}):(?: |$)"
            if len(re.findall(rf"(?:^|[.;)\]\"`] ){explained}", text, re.MULTILINE)) > 1:
                for argument in re.findall(rf"[.;)\]\"`] {explained}", text, re.MULTILINE):
                    yield f"{source.path}: {node.name}, {argument}"


def opening_with_prepositions(source: Source) -> Iterator[str]:
    """Yield where a docstring opens with a preposition, and so leaves out what the thing is."""
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            if PREPOSITIONS.match(text):
                yield f"{source.path}: {text[:60]}"


def opening_without_verbs(source: Source) -> Iterator[str]:
    """Yield where a docstring opens with another word than what the function or module does.

    That of a module or of a class may name a thing.
    """
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            if (NOT_VERBS if isinstance(node, ast.FunctionDef) else QUESTIONS).match(text):
                yield f"{source.path}: {text[:60]}"


def opening_without_nouns(source: Source) -> Iterator[str]:
    """Yield where the docstring of a constant, a type alias or a field opens with another word than
    what the thing is."""
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef):
            for named, text in pairwise(node.body):
                if isinstance(named, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr):
                    said = texts_of(text.value)
                    if NOT_NOUNS.match(said):
                        yield f"{source.path}:{text.lineno}: {said[:60]}"


def test_docstrings_open_with_what_a_thing_is_or_does() -> None:
    assert [found for source in product() for found in opening_with_prepositions(source)] == []


def test_a_docstring_that_opens_with_a_preposition_is_found() -> None:
    text = 'def load():\n    """Of a table, the rows."""\n'
    assert list(opening_with_prepositions(Source("lakebed/x.py", text)))


def test_modules_classes_and_functions_open_with_what_they_are_or_do() -> None:
    assert [found for source in product() for found in opening_without_verbs(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        '"""How many rows."""\n',
        'def keys():\n    """The keys of a table."""\n',
        'class Kept:\n    """What a reader keeps of a file."""\n',
        'class _Kept:\n    """Which files are kept."""\n',
    ],
)
def test_a_docstring_that_does_not_open_with_what_is_done_is_found(text: str) -> None:
    assert list(opening_without_verbs(Source("lakebed/x.py", text)))


def test_constants_open_with_what_they_are() -> None:
    assert [found for source in product() for found in opening_without_nouns(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        'LEASE_SECONDS = 5\n"""Of a worker."""\n',
        'LEASE_SECONDS: Final = 5\n"""How long a worker has a lease."""\n',
        'Seconds = float\n"""Until a lease ends."""\n',
        'class Lease:\n    seconds: float\n    """After which it ends."""\n',
    ],
)
def test_a_constant_that_does_not_open_with_what_it_is_is_found(text: str) -> None:
    assert list(opening_without_nouns(Source("lakebed/x.py", text)))


def test_a_constant_that_opens_with_what_it_is_is_allowed() -> None:
    text = 'LEASE_SECONDS = 5\n"""Seconds that a worker has a lease."""\n'
    assert not list(opening_without_nouns(Source("lakebed/x.py", text)))


def test_a_class_that_opens_with_a_noun_is_allowed() -> None:
    text = 'class Kept:\n    """The part of a file that a reader keeps in memory."""\n'
    assert not list(opening_without_verbs(Source("lakebed/x.py", text)))


def test_each_field_of_a_class_is_explained_on_a_line_of_its_own() -> None:
    assert [found for source in product() for found in fields_in_a_paragraph(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "A file. size: bytes.",
        "A file.\n\n    size: bytes. rows, keys: how many.",
        "A file.\n\n    rows: how many; size: bytes.",
        "A file. size:\n    bytes.",
    ],
)
def test_fields_that_share_a_line_are_found(text: str) -> None:
    members = "    rows: int\n    keys: int\n    size: int\n"
    of = f'class File:\n    """{text}"""\n\n{members}'
    assert list(fields_in_a_paragraph(Source("lakebed/x.py", of)))


def test_fields_on_lines_of_their_own_are_allowed() -> None:
    text = "A file. Its size: unknown.\n\n    rows, keys: how many.\n    size: bytes."
    of = f'class File:\n    """{text}\n    """\n\n    rows: int\n    keys: int\n    size: int\n'
    assert not list(fields_in_a_paragraph(Source("lakebed/x.py", of)))


def test_each_argument_of_a_function_is_explained_on_a_line_of_its_own() -> None:
    held = [source for source in product() if not source.inside(*PACKED)]
    assert [found for source in held for found in arguments_in_a_paragraph(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Take rows.\n\n    rows: a path. job: a name.",
        "Take rows. rows: a path.\n    job: a name.",
        "Take rows.\n\n    job: a name; rows: a path.",
    ],
)
def test_arguments_that_share_a_line_are_found(text: str) -> None:
    of = f'def ingest(rows, *, job):\n    """{text}"""\n'
    assert list(arguments_in_a_paragraph(Source("lakebed/x.py", of)))


@pytest.mark.parametrize(
    "text", ["Take rows. job: a name.", "Take rows.\n\n    rows: a path.\n    job: a name."]
)
def test_arguments_on_lines_of_their_own_and_a_single_one_are_allowed(text: str) -> None:
    of = f'def ingest(rows, *, job):\n    """{text}"""\n'
    assert not list(arguments_in_a_paragraph(Source("lakebed/x.py", of)))
