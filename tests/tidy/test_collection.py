"""Tests have the same names in every process: runs in parallel compare them, and stop if not.

So `make test` stops where they have not; this test tries two orders on purpose.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _names(hash_seed: int) -> list[str]:
    """Every test's name, where sets of strings are in the order that this seed gives."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in collected.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_tests_have_the_same_names_in_every_process() -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(_names, (1, 2))
    assert len(first) > 1000, "the list of names is not what pytest prints"
    assert first == second
