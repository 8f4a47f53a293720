"""The contracts can see a lost update: servers that are known to lose them fail."""

import os
import re
import subprocess
import sys

import pytest

from tests.servers.fixtures import KNOWN_BAD
from tests.tidy.source import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def failures(file: str, server: str, tests: str) -> tuple[list[str], int]:
    """Return the errors of some of a file's tests on a server, and how many passed."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", f"tests/contracts/{file}"),
            *("-k", f"{server} and ({tests})", "--tb=line", "-q", "-p", "no:cacheprovider"),
        ],
        cwd=ROOT,
        env={**os.environ, KNOWN_BAD: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed, run.stdout + run.stderr
    return re.findall(r"(?m)^E +(.*)$", run.stdout), int(passed[1])


def test_a_store_without_conditions_is_seen_to_overwrite_objects() -> None:
    errors, passed = failures(
        "test_object_store.py", "rclone", "never_overwritten or first_to_finish or given_up"
    )
    assert errors == ["Failed: DID NOT RAISE ObjectExistsError"] * 2
    assert passed == 1


def test_a_server_that_puts_old_tables_back_is_seen_to_lose_changes_of_names() -> None:
    errors, passed = failures("test_table_registry.py", "moto", "refused_ones or claimed_name")
    lost = [error for error in errors if error.startswith("AssertionError: assert ['name")]
    assert len(lost) == 1, errors  # beside it stands what moto's threads do to each other
    assert passed == 1
