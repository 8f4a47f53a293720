"""One round of the random tester; more by `make adversary MINUTES=60`."""

import os
import secrets

import pytest

from tests.adversary.rounds import run_round, table
from tests.e2e.worker import say

SEED = "LAKEBED_ADVERSARY_SEED"
SECONDS = 60.0


@pytest.mark.timeout(600)
def test_a_round_loses_nothing_doubles_nothing_and_lies_about_nothing() -> None:
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    say(f"{SEED}={seed}")
    counts = run_round(seed, SECONDS)
    say(table(counts))
    assert counts["jobs"] > 0
    assert counts["read"] > 0
