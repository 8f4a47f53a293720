"""The instance that has everything has all that settings can ask for, and pages name it."""

import json
import re
from pathlib import Path

import aws_cdk

import stacks.instance
from tests.stacks.conftest import ROOT

PAGE = (ROOT / "docs/operate/deploy.md").read_text("utf-8")


def stack_names(assembly: Path) -> set[str]:
    """What stacks are called, without the instance's name."""
    manifest = json.loads((assembly / "manifest.json").read_text("utf-8"))
    return {
        artifact["properties"]["stackName"].removeprefix("lakebed-dev-")
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }


def rows_of(page: str, head: str) -> dict[str, str]:
    """Return the rows of a table of stacks, by each stack that its first cell names. head: how the
    table's first row begins."""
    table = page.partition(f"\n{head}")[2].partition("\n\n")[0]
    rows = {}
    for line in table.splitlines()[2:]:
        _, first, rest = line.split("|", 2)
        for name in re.findall(r"`(?:lakebed-dev)?-([a-z-]+)`", first):
            rows[name] = rest
    return rows


def test_each_class_of_stacks_is_in_the_assembly(everything_folder: Path) -> None:
    classes = {
        class_.__name__
        for class_ in aws_cdk.Stack.__subclasses__()
        if class_.__module__.startswith(f"{stacks.__name__}.")
    }
    assert len(stack_names(everything_folder)) == len(classes), classes


def test_the_page_names_each_stack_and_what_becomes_of_it(everything_folder: Path) -> None:
    assert set(rows_of(PAGE, "| Stack | Holds | When it goes |")) == stack_names(everything_folder)


def test_the_page_says_what_failed_updates_leave_of_stacks_that_hold_tables(
    everything_folder: Path,
) -> None:
    rows = rows_of(PAGE, "| Stack | A failed creation leaves | A failed update leaves |")
    assert {"state", "data", "tables", "history"} <= set(rows) <= stack_names(everything_folder)
    assert "declare.md#while-deploying" in rows["tables"]
    assert "| all others |" in PAGE
