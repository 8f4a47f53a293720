"""docs/protocol.md tells of every rule that is cited, and what it says of each is so."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.mutations.breaks import Break, breaks
from tests.simulation.feeds.fed_twins import FED_TWINS
from tests.simulation.feeds.landed_twins import LANDED_TWINS
from tests.simulation.feeds.leased_world import LEASED_TWINS
from tests.simulation.feeds.once_world import ONCE_TWINS
from tests.simulation.feeds.pushed_twins import PUSHED_TWINS
from tests.simulation.feeds.routed_twins import ROUTED_TWINS
from tests.simulation.feeds.timed_world import TIMED_TWINS
from tests.simulation.twins import TWINS
from tests.simulation.versions.version_twins import VERSION_TWINS
from tests.tidy.source import ROOT, Source, project_files

PAGE = "docs/protocol.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
CITED = re.compile(r"\b([HR])(\d+)(?: to \1(\d+))?\b")
RULE = re.compile(r"^### ([HR]\d+): (.+)$", re.MULTILINE)
PARTS = ("Kept in", "Tested by", "Broken twin")
NO_CITATION = ("docs/reference/", "tests/tidy/", "tests/golden/")
"""Made from sources; examples of citations; stored bytes."""


def rules() -> dict[str, str]:
    """Return the text of each rule of the page."""
    starts = list(RULE.finditer(TEXT))
    ends = [start.start() for start in starts[1:]] + [len(TEXT)]
    return {s[1]: TEXT[s.start() : end] for s, end in zip(starts, ends, strict=True)}


RULES = rules()
FEEDS_TWINS = {*FED_TWINS, *PUSHED_TWINS, *ROUTED_TWINS, *ONCE_TWINS, *LANDED_TWINS}
ALL_TWINS = {*TWINS, *FEEDS_TWINS, *LEASED_TWINS, *TIMED_TWINS, *VERSION_TWINS}
SEEN_BY_MANY = {"H13", "H30"}
"""No small break fits: one is seen by a log of 2,000 entries, which takes minutes; the other says
what nothing relies on."""


def cited(text: str) -> Iterator[str]:
    """Yield the rules that a text cites; `H2 to H4` are three."""
    for found in CITED.finditer(text):
        for number in range(int(found[2]), int(found[3] or found[2]) + 1):
            yield f"{found[1]}{number}"


@cache
def citations() -> dict[str, set[str]]:
    """Return which files cite each rule."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for source in project_files():
        if source.path.endswith((".py", ".md")) and not source.path.startswith(NO_CITATION):
            for rule in cited(source.text):
                files[rule].add(source.path)
    return files


def part(rule: str, name: str) -> str:
    """Return one of the lists below a rule, in one line."""
    found = re.search(rf"^- {name}: (.+?)(?=^- |^\s*$|\Z)", RULES[rule], re.DOTALL | re.MULTILINE)
    assert found, f"{rule} has no line `- {name}: ...`"
    return " ".join(found[1].split())


def named(rule: str, name: str) -> dict[str, list[str]]:
    """Return the files that a list names, each with what it names in them."""
    files: dict[str, list[str]] = {}
    for code in re.findall(r"`([^`]+)`", part(rule, name)):
        if "/" in code:
            files[code] = []
        else:
            files[list(files)[-1]].append(code)
    return files


@cache
def defined(path: str) -> set[str]:
    """Return the names of what a module defines: `Class`, `Class.method`, `function`."""
    names = set()
    for node in Source(path, (ROOT / path).read_text(encoding="utf-8")).tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}.{each.name}" for each in inner}
    return names


def test_every_rule_that_is_cited_is_on_the_page() -> None:
    unknown = {rule: sorted(files) for rule, files in citations().items() if rule not in RULES}
    assert not unknown, f"write them down in {PAGE}"


def test_a_rule_stands_on_the_page_once() -> None:
    names = [found[1] for found in RULE.finditer(TEXT)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_told_with_its_story(rule: str) -> None:
    assert "*Without it:*" in RULES[rule], "say what breaks without it"
    for name in PARTS:
        part(rule, name)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("name", "folder"), [("Kept in", "lakebed/"), ("Tested by", "tests/")])
def test_a_rule_is_cited_where_the_page_says(rule: str, name: str, folder: str) -> None:
    files = named(rule, name)
    assert all(path.startswith(folder) for path in files)
    says = f"cite {rule} in the docstring of one of these: {sorted(files)}"
    assert files.keys() & citations()[rule], says


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", PARTS)
def test_what_a_rule_names_is_there(rule: str, name: str) -> None:
    for path, names in named(rule, name).items():
        assert Path(ROOT / path).is_file()
        assert set(names) <= defined(path), path


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_held_by_a_test_that_is_named(rule: str) -> None:
    for path, names in named(rule, "Tested by").items():
        assert names or path.startswith("tests/golden/"), f"name a test in {path}"
        assert all(name.startswith("test_") for name in names)


@pytest.mark.parametrize("rule", RULES)
def test_twins_of_a_rule_are_those_of_the_simulation(rule: str) -> None:
    line = part(rule, "Broken twin")
    twins = re.findall(r'"([^"]+)"', line)
    assert set(twins) <= ALL_TWINS
    assert twins or line.startswith("none") or named(rule, "Broken twin")


@pytest.mark.parametrize("one", [b for b in breaks() if b.rules], ids=lambda one: one.says)
def test_a_break_of_a_rule_is_seen_by_tests_that_the_page_names(one: Break) -> None:
    for rule in one.rules:
        tests = {name for names in named(rule, "Tested by").values() for name in names}
        seen_by = {name for names in one.tests.values() for name in names}
        assert seen_by & tests, f"{rule} names none of {sorted(seen_by)}"


def test_every_rule_was_taken_out_and_a_test_has_seen_it() -> None:
    broken = {rule for one in breaks() for rule in one.rules}
    twinned = {rule for rule in RULES if not part(rule, "Broken twin").startswith("none")}
    assert broken | twinned >= set(RULES) - SEEN_BY_MANY


def test_every_twin_belongs_to_a_rule_or_is_told_of() -> None:
    told = re.findall(r'"([^"]+)"', " ".join(TEXT.split()))
    assert set(told) >= ALL_TWINS, f"say in {PAGE} which rule the twin breaks"
