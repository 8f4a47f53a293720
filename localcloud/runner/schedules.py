"""Computes when a schedule of EventBridge fires: `rate(5 minutes)`, `cron(0 3 * * ? *)`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from lakebed.errors import InvalidError

UNITS = {"minute": 60, "hour": 3_600, "day": 86_400}
_RATE = re.compile(r"rate\(([1-9]\d*) (minute|hour|day)(s?)\)")
_CRON = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
DAYS_AHEAD_MAX = 366 * 4

Next = Callable[[float], float]
"""A function from a time in seconds since 1970 to the next one at which something fires."""


def next_after(expression: str) -> Next:
    """Return a function that says when a schedule fires next. A rate counts from the moment it is
    asked at.

    Raises:
        InvalidError: neither a rate nor a cron expression that is known here.
    """
    if found := _RATE.fullmatch(expression):
        if (found[1] == "1") == bool(found[3]):
            raise _refused(expression)
        seconds = int(found[1]) * UNITS[found[2]]
        return lambda at: at + seconds
    if found := _CRON.fullmatch(expression):
        return _cron(expression, found.groups())
    raise _refused(expression)


def _cron(expression: str, fields: tuple[str, ...]) -> Next:
    minutes, hours, days, months, weekdays, years = (
        _allowed(expression, text, low, high, names)
        for text, low, high, names in zip(
            fields,
            (0, 0, 1, 1, 1, 1970),
            (59, 23, 31, 12, 7, 2199),
            ((), (), (), _MONTHS, _DAYS, ()),
            strict=True,
        )
    )

    def next_time(at: float) -> float:
        day = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(DAYS_AHEAD_MAX):
            weekday = day.isoweekday() % 7 + 1
            if (
                day.year in years
                and day.month in months
                and day.day in days
                and weekday in weekdays
            ):
                for hour in sorted(hours):
                    for minute in sorted(minutes):
                        time = day.replace(hour=hour, minute=minute).timestamp()
                        if time > at:
                            return time
            day += timedelta(days=1)
        raise _refused(expression)

    return next_time


def _allowed(
    expression: str, text: str, low: int, high: int, names: tuple[str, ...]
) -> frozenset[int]:
    """Return the numbers that one field of a cron expression allows."""
    allowed: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        try:
            if span in {"*", "?"}:
                start, end = low, high
            else:
                start = _number(first, names, low)
                end = _number(last, names, low) if last else (high if step else start)
            if not low <= start <= end <= high:
                raise _refused(expression)
            allowed.update(range(start, end + 1, int(step or 1)))
        except ValueError:
            raise _refused(expression) from None
    return frozenset(allowed)


def _number(text: str, names: tuple[str, ...], low: int) -> int:
    return names.index(text) + low if text in names else int(text)


def _refused(expression: str) -> InvalidError:
    hint = "write rate(5 minutes), or cron(minutes hours day month weekday year) without L, W, #"
    return InvalidError("not a schedule that is known here", schedule=expression, hint=hint)
