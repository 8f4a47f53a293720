from datetime import UTC, datetime

import pytest

from lakebed.errors import InvalidError
from localcloud.runner.schedules import next_after


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("expression", "now", "then"),
    [
        ("rate(1 minute)", "2026-11-21 10:00:30", "2026-11-21 10:01:30"),
        ("rate(2 hours)", "2026-11-21 10:00:30", "2026-11-21 12:00:30"),
        ("cron(0/15 * * * ? *)", "2026-11-21 10:00:00", "2026-11-21 10:15:00"),
        ("cron(30 3 * * ? *)", "2026-11-21 10:00:00", "2026-11-22 03:30:00"),
        ("cron(0 0 1 JAN ? *)", "2026-11-21 10:00:00", "2027-01-01 00:00:00"),
        ("cron(0 8 ? * MON-FRI *)", "2026-11-21 10:00:00", "2026-11-23 08:00:00"),
        ("cron(5,10 8-9 * * ? 2027)", "2026-11-21 10:00:00", "2027-01-01 08:05:00"),
        ("cron(0 0 29 2 ? *)", "2026-11-21 10:00:00", "2028-02-29 00:00:00"),
    ],
)
def test_a_schedule_says_when_it_fires_next(expression: str, now: str, then: str) -> None:
    assert next_after(expression)(at(now)) == at(then)


@pytest.mark.parametrize(
    "expression",
    ["rate(1 minutes)", "rate(5 minute)", "rate(0 hours)", "cron(* * *)", "cron(61 * * * ? *)",
     "cron(0 0 L * ? *)", "at(2026-11-21T10:00:00)", ""],
)  # fmt: skip
def test_an_expression_that_is_not_known_is_refused(expression: str) -> None:
    with pytest.raises(InvalidError, match="not a schedule"):
        next_after(expression)
