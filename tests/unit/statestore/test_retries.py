"""How long a commit waits before it tries once more."""

import random

import pytest

from lakebed.errors import LakebedError, LogConflictError, LogRolledBackError, UnavailableError
from lakebed.model.names import TransactionNumber
from lakebed.statestore.answers import Retry

NUMBER = TransactionNumber(7)


@pytest.mark.parametrize(
    ("failure", "seconds_max"),
    [
        (LogConflictError(NUMBER), 0.005),
        (UnavailableError("busy"), 0.2),
        (LogRolledBackError(NUMBER, log_ends=NUMBER), 2.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_hardly_after_a_conflict_and_long_where_a_log_lacks_entries(
    failure: LakebedError, seconds_max: float
) -> None:
    rng = random.Random(1)
    waits = [Retry().wait_seconds(failure, rng) for _ in range(200)]
    assert seconds_max / 2 < max(waits) <= seconds_max
