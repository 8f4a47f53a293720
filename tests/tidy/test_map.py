"""docs/map.md tells of every feature where it is, and what it names is there."""

import re
from collections.abc import Iterator

import pytest

from lakebed.cli.main import program
from lakebed.config.instance import InstanceSettings
from lakebed.config.settings import TableSettings
from tests.tidy.source import ROOT

FEATURES = 182
MATURITIES = {"works", "works in part", "tried in simulation", "not yet", "not offered"}
TEXT = (ROOT / "docs/map.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", TEXT, re.MULTILINE)
FEED_ROWS = re.findall(r"^\| F(\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", TEXT, re.MULTILINE)
FOLDERS = "containers|lakebed|lambdas|localcloud|stacks|tests|docs|demo|benchmarks"


def code() -> Iterator[str]:
    yield from re.findall(r"`([^`]+)`", TEXT)


def test_every_feature_has_one_row_in_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, FEATURES + 1))


def test_features_of_feeds_have_a_row_each_in_order() -> None:
    numbers = [int(number) for number, *_ in FEED_ROWS]
    assert len(numbers) >= 60
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("row", [*ROWS, *FEED_ROWS], ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_feature_that_works_says_where(row: tuple[str, str, str, str]) -> None:
    _, _, maturity, where = row
    assert maturity in MATURITIES
    if maturity in {"works", "tried in simulation"}:
        assert "`" in where, "name a command, a class, a setting or a test"


@pytest.mark.parametrize("path", sorted({c for c in code() if re.match(rf"({FOLDERS})/", c)}))
def test_a_file_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("command", sorted({c for c in code() if c.startswith("lakebed ")}))
def test_a_command_that_is_named_is_there(command: str) -> None:
    found = program
    for word in command.split()[1:]:
        if word in getattr(found, "commands", {}):
            found = found.commands[word]  # type: ignore[assignment]  # a group, until the last word
    options = {option for param in found.params for option in param.opts}
    assert found is not program
    assert {word for word in command.split() if word.startswith("--")} <= options


def test_a_setting_that_is_named_is_there() -> None:
    named = re.findall(r"settings? `(\w+)", TEXT)
    known = {*TableSettings.__struct_fields__, *InstanceSettings.__struct_fields__}
    assert set(named) <= known
