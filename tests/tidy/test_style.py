"""One thing, one name: names that were replaced do not come back (`docs/style.md` lists them), and
no two classes share one. Texts name who acts: no error, hint, help or docstring leaves the reader
to guess. Folders stay small."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from tests.tidy.source import ROOT, Source, product, project_files

_ROW = re.compile(r"^\| (`[^|]*) \| (`[^|]*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")
_WORDS = re.compile(r"^\| (`lakebed[^|]*) \| (`[^|]*) \| `[^|]* \|$", re.MULTILINE)
_ROOM = re.compile(r"`([\w/]+)(?:\.py)?`")
MODULES_MAX = 25
"""In one folder."""
VAGUE = re.compile(r"\b(nobody|somebody|someone|anybody|anyone|whoever|elsewhere)\b", re.IGNORECASE)
"""Subjects and places that the reader has to guess."""
VAGUE_TO_USERS = re.compile(rf"{VAGUE.pattern}|\bothers\b", re.IGNORECASE)
SAID_TO_USERS = {"hint", "help", "description", "meaning", "without_alarm"}
"""Keyword arguments and variables whose texts users read."""
NOBODY_MAX = 20
"""In code and pages that are written by hand, the rules of style and the decisions included."""
NAMES_OF_EVENTS = {"LOG_TIME_TOLD"}
"""Constants that spell an event: users search logs for it."""


def replaced() -> set[str]:
    """Return the names of the page's first column."""
    page = (ROOT / "docs/style.md").read_text("utf-8")
    return {name for row in _ROW.finditer(page) for name in _NAME.findall(row[1])}


def identifiers(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and name of each identifier."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def replaced_in(source: Source, names: set[str]) -> list[str]:
    """Return where a source uses one of these names, and its path if that has one.

    A name in lower case is found as a part of another name, too: `_is_told`, `ToldNames`.
    """
    words = "|".join(sorted(name for name in names if name.islower()))
    pattern = re.compile(rf"(?<![^_/])({words})(?![^_/])")
    uses = [
        f"{source.path}:{line} {name}"
        for line, name in identifiers(source)
        if name.lstrip("_") in names or pattern.search(snake_case(name))
        if name not in NAMES_OF_EVENTS
    ]
    return uses + [source.path] * bool(pattern.search(source.path.removesuffix(".py")))


def snake_case(name: str) -> str:
    """Return a name in lower case with its words apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def kept_words() -> list[tuple[list[str], set[str]]]:
    """Return rooms, and words that mean something else there, from the page's second table."""
    page = (ROOT / "docs/style.md").read_text("utf-8")
    return [(_ROOM.findall(row[1]), set(_NAME.findall(row[2]))) for row in _WORDS.finditer(page)]


def words_at(path: str) -> set[str]:
    """Return the words that are no identifier in a module."""
    source = Source(path, "")
    return {word for rooms, words in kept_words() if source.inside(*rooms) for word in words}


def found(source: Source, names: set[str]) -> list[str]:
    """Return where a source uses one of these names."""
    return [
        f"{source.path}:{line} {name}"
        for line, name in identifiers(source)
        if name.lstrip("_") in names
    ]


def shared_names(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Return the classes that several modules define, by name: where. Private ones may be."""
    places: dict[str, list[str]] = {}
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(source.path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def texts_of(node: ast.expr) -> str:
    """Return the constant text of an expression, also inside of an f-string or a choice."""
    found = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
    return " ".join(part.value for part in found if isinstance(part.value, str))


def said_to_users(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each error's message, of hints, help and meanings."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name.endswith("Error") and node.args:
                yield node.lineno, texts_of(node.args[0])
            for keyword in node.keywords:
                if keyword.arg in SAID_TO_USERS:
                    yield node.lineno, texts_of(keyword.value)
        elif isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & SAID_TO_USERS:
                yield node.lineno, texts_of(node.value)


def explained(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, of classes' members and of constants, too."""
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, texts_of(node.value)


def without_hint(source: Source) -> Iterator[str]:
    """Yield where a request is refused for ever, and nothing says what to do instead."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "InvalidError":
            said = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if said.get("hint", "None") == "None":
                yield f"{source.path}:{node.lineno} {texts_of(node)[:60]}"


def vague(source: Source) -> Iterator[str]:
    """Yield where a text leaves the reader to guess who acts, or where."""
    for pattern, texts in ((VAGUE_TO_USERS, said_to_users(source)), (VAGUE, explained(source))):
        for line, text in texts:
            if word := pattern.search(text):
                yield f"{source.path}:{line} {word[0]}: {text[:60]}"


def test_no_identifier_is_a_replaced_name() -> None:
    names = replaced()
    assert {"chance", "WhomToTell", "whom"} <= names
    assert [use for source in product() for use in replaced_in(source, names)] == []


def test_a_word_that_means_one_thing_means_nothing_else() -> None:
    assert [use for source in product() for use in found(source, words_at(source.path))] == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("lakebed/parquet_bytes/x.py", "leaf"),
        ("lakebed/sorted_files/reading/x.py", "group"),
        ("lakebed/sorted_files/sorting/x.py", "_runs"),
        ("lakebed/user_files/x.py", "groups"),
        ("lakebed/ports/job_queue.py", "group"),
        ("lakebed/tasks/x.py", "_tell"),
        ("stacks/x.py", "tell_of_jobs"),
        ("lakebed/backends/aws/x.py", "groups"),
        ("lakebed/compaction/x.py", "group"),
        ("lakebed/kernels/sorting.py", "group"),
        ("lakebed/kernels/merging.py", "run"),
        ("lakebed/doctor/checks/x.py", "Group"),
        ("lakebed/sorted_files/merging/x.py", "_task"),
        ("lakebed/sorted_files/reading/x.py", "tasks"),
        ("lakebed/deletes/x.py", "regions"),
        ("lakebed/statestore/table_state/x.py", "REGIONS_MAX"),
        ("lakebed/decoding/x.py", "first_pass"),
    ],
)
def test_a_second_meaning_is_found(path: str, name: str) -> None:
    assert found(Source(path, f"{name} = 1\n"), words_at(path))
    assert not found(
        Source("lakebed/garbage/x.py", f"{name} = 1\n"), words_at("lakebed/garbage/x.py")
    )


def test_no_two_classes_share_a_name() -> None:
    """But twins, which are called as what they are made from."""
    assert shared_names([s for s in product() if "Made by `make docs` from" not in s.text]) == {}


def test_a_shared_name_is_found() -> None:
    one, other = (Source(f"lakebed/{name}.py", "class Job:\n    pass\n") for name in "ab")
    assert shared_names([one, other]) == {"Job": [one.path, other.path]}


def test_texts_name_who_acts_and_where() -> None:
    assert [found for source in product() for found in vague(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        'raise ConflictError("somebody was first")',
        'raise ConflictError(f"table {name} is read by others")',
        'hint = "look elsewhere"',
        'click.option("--x", help="For others.")',
        'raise InvalidError("no such file", hint="ask someone" if a else None)',
        '"""Nobody calls it."""',
        'SECONDS = 1\n"""Whoever waits, waits so long."""',
    ],
)
def test_a_vague_text_is_found(text: str) -> None:
    assert list(vague(Source("lakebed/x.py", text)))


def test_what_is_refused_for_ever_says_what_to_do() -> None:
    assert [found for source in product() for found in without_hint(source)] == []


@pytest.mark.parametrize("facts", ["", ", file=name", ", hint=None", ", file=name, hint=None"])
def test_a_refusal_without_a_hint_is_found(facts: str) -> None:
    assert list(without_hint(Source("lakebed/x.py", f'InvalidError("no file"{facts})\n')))
    with_hint = Source("lakebed/x.py", 'InvalidError("no file", file=name, hint="name one")\n')
    assert not list(without_hint(with_hint))


def test_nobody_is_a_rare_word() -> None:
    by_hand = [
        s
        for s in project_files()
        if not s.inside("tests", "benchmarks", "docs/reference", "lakebed/pages")
    ]
    uses = Counter({s.path: len(re.findall(r"(?i)\bnobody\b", s.text)) for s in by_hand})
    assert uses.total() <= NOBODY_MAX, uses.most_common(9)


def test_folders_are_small_enough_to_be_read() -> None:
    folders = Counter(s.path.rpartition("/")[0] for s in project_files() if s.path.endswith(".py"))
    assert {name: count for name, count in folders.items() if count > MODULES_MAX} == {}


@pytest.mark.parametrize(
    "text",
    [
        "chance = 1\n",
        "self._chance.random()\n",
        "f(whom=1)\n",
        "told = 1\n",
        "_is_told = 1\n",
        "LENGTH_TOLD = 1\n",
        "class ToldNames: pass\n",
        "class Head: pass\n",
        "TellTime()\n",
        "scrap_rows_max = 1\n",
    ],
)
def test_a_replaced_name_is_found(text: str) -> None:
    assert replaced_in(Source("lakebed/x.py", text), replaced())


@pytest.mark.parametrize(
    "path",
    [
        "lakebed/cli/looking.py",
        "lakebed/sorted_files/handing_over.py",
        "lakebed/sorted_files/merging_together/x.py",
        "lakebed/statestore/stored_texts.py",
        "lakebed/bootstrap/object_places.py",
    ],
)
def test_a_module_of_a_replaced_name_is_found(path: str) -> None:
    assert replaced_in(Source(path, ""), replaced())


def test_words_in_strings_and_comments_and_in_longer_words_are_free() -> None:
    text = '"""By chance."""  # whom\nheadroom, toldness, overlooking = 1, 2, 3\n'
    assert not replaced_in(Source("lakebed/x.py", text), replaced())
