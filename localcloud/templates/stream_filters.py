"""Filters of event sources, as far as they are known here: exact texts, beginnings and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.errors import InvalidError

KNOWN = {"prefix", "suffix"}


def check_filter(pattern: Mapping[str, Any]) -> None:
    """Raise InvalidError for a filter with conditions that are not known here."""
    for value in pattern.values():
        if isinstance(value, Mapping):
            check_filter(value)
            continue
        for one in value:
            if not isinstance(one, str) and set(one) - KNOWN:
                hint = f"known are texts, and {', '.join(sorted(KNOWN))}"
                raise InvalidError("a filter of events that is not known", filter=one, hint=hint)


def matches(pattern: Mapping[str, Any], record: object) -> bool:
    """Return whether a record has what a filter asks for: of each name one of the values."""
    if not isinstance(record, Mapping):
        return False
    return all(
        matches(wanted, record.get(name))
        if isinstance(wanted, Mapping)
        else any(_is_like(one, record.get(name)) for one in wanted)
        for name, wanted in pattern.items()
    )


def _is_like(wanted: str | Mapping[str, str], value: object) -> bool:
    if isinstance(wanted, str) or not isinstance(value, str):
        return value == wanted
    return value.startswith(wanted.get("prefix", "")) and value.endswith(wanted.get("suffix", ""))
