"""The page of checks says what the checks say, and its policy what they ask for."""

import json
import re
from pathlib import Path

from lakebed.doctor.check import SECTIONS
from lakebed.doctor.checks.all_checks import ALL_CHECKS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/operate/doctor.md").read_text("utf-8")
READS = re.compile(r'"((?:[a-z0-9-]+):(?:Get|List|Describe)[A-Za-z]+)"')
CHANGES = re.compile(r'asking\.change\(\s*"([a-z0-9-]+:[A-Za-z]+)"')


def lines_of(section: str) -> list[str]:
    return [
        f"| `{check.id}` | {check.of} | {check.found_when} | {check.cure} |"
        for check in ALL_CHECKS
        if check.section == section
    ]


def sources() -> str:
    files = sorted((ROOT / "lakebed/backends/aws/deployed").glob("*.py"))
    return "\n".join(file.read_text("utf-8") for file in files)


def test_each_check_has_a_line_in_the_table_of_its_section() -> None:
    parts = dict(re.findall(r"\n## ([^\n]+)\n(.*?)(?=\n## |\Z)", PAGE, re.DOTALL))
    for section in SECTIONS:
        text = parts[section[0].upper() + section[1:]]
        told = [line for line in text.splitlines() if line.startswith("| `")]
        assert told == lines_of(section), "paste `lines_of` into docs/operate/doctor.md"


def test_pages_that_cures_name_are_there() -> None:
    for check in ALL_CHECKS:
        for page in re.findall(r"`lakebed explain ([a-z-]+)`", check.cure):
            assert (ROOT / f"docs/operate/{page}.md").is_file(), (check.id, page)


def test_the_policy_has_what_is_asked_for_and_nothing_else() -> None:
    (policy,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    looks, fixes = (statement["Action"] for statement in json.loads(policy)["Statement"])
    account = (ROOT / "lakebed/backends/aws/account.py").read_text("utf-8")
    asked = {*READS.findall(sources()), *READS.findall(account), "ssm:GetParameter"}
    assert looks == sorted(asked)
    assert fixes == sorted(CHANGES.findall(sources()))
