"""Times as text: ISO 8601, and patterns of strptime's letters, whole columns at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.decoding.masks import Mask, bools, cast_or_null

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_FULL: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DAYS: Final = "(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_OFFSET: Final = "(?P<{}>Z|z|UTC|GMT|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)"
_LETTERS: Final = {
    "Y": "(?P<year>[0-9]{4})",
    "y": "(?P<short_year>[0-9]{2})",
    "m": "(?P<month>[0-9]{1,2})",
    "b": f"(?P<month_name>(?i:{'|'.join(_MONTHS)}))",
    "B": f"(?P<month_name>(?i:{'|'.join(_FULL)}))",
    "d": "(?P<day> ?[0-9]{1,2})",
    "j": "(?P<day_of_year>[0-9]{1,3})",
    "H": "(?P<hour> ?[0-9]{1,2})",
    "I": "(?P<hour12> ?[0-9]{1,2})",
    "M": "(?P<minute>[0-9]{1,2})",
    "S": "(?P<second>[0-9]{1,2})",
    "f": "(?P<fraction>[0-9]{1,9})",
    "p": "(?P<half>(?i:[ap]m))",
    "z": _OFFSET.format("offset"),
    "Z": _OFFSET.format("offset"),
    "a": f"(?i:{_DAYS})",
    "A": f"(?i:{_DAYS})",
    "F": "(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
    "T": "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})",
    "%": "%",
}
_ISO: Final = (
    "(?P<year>[0-9]{4})-?(?:(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})|(?P<day_of_year>[0-9]{3}))"
    "(?:[Tt ](?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})"
    "(?::?(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9})[0-9]*)?)?)?"
    " ?(?P<offset>Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_IN_UTC: Final = pa.timestamp("us", tz="UTC")
_NO_ZONE: Final = pa.timestamp("us")
_DAYS_BEFORE: Final = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_MONTH_DAYS: Final = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern by which texts of times are taken apart.

    expression: RE2's, with a name for each part that counts.
    """

    expression: str

    @classmethod
    def of(cls, way: str) -> Pattern:
        """Return the pattern of `iso`, or of strptime's letters. Each part may come once."""
        if way == "iso":
            return cls(f"^{_ISO}$")
        parts: list[str] = []
        seen: set[str] = set()
        for literal, letter in re.findall(r"([^%]+)|%(.)", way, re.DOTALL):
            text = _quoted(literal) if literal else _LETTERS[letter]
            for name in re.findall(r"\(\?P<(\w+)>", text):
                if name in seen:  # what comes again, as in `%d %j %d`, says nothing more
                    text = text.replace(f"(?P<{name}>", "(?:")
                seen.add(name)
            parts.append(text)
        return cls(f"^{''.join(parts)}$")


def _quoted(literal: str) -> str:
    return "".join(c if c.isalnum() or c == " " else f"\\x{{{ord(c):x}}}" for c in literal)


def micros_of_texts(texts: pa.Array, pattern: Pattern, zone: str) -> pa.Array:
    """Return times in UTC; null where a text is none. zone: of texts without an offset; empty: such
    a text is no time."""
    found = pc.extract_regex(texts, pattern.expression)
    parts = _Parts(found)
    micros, good = parts.micros()
    offsets, has_offset, offsets_good = parts.offsets()
    good &= offsets_good
    local = pa.array(micros - offsets, pa.int64(), mask=~good)
    if zone in ("UTC", "Z"):
        return local.cast(_IN_UTC)
    in_utc = pc.if_else(pa.array(has_offset), local, None).cast(_IN_UTC)
    if not zone or bool((has_offset | ~good).all()):
        return in_utc
    without = pc.if_else(pa.array(has_offset), None, local).cast(_NO_ZONE)
    placed, _ = cast_or_null(
        without, lambda part: pc.assume_timezone(part, zone).cast(_IN_UTC), _IN_UTC
    )
    return pc.coalesce(in_utc, placed)


class _Parts:
    """The parts of texts, as columns. Those that a pattern does not have are their defaults."""

    def __init__(self, found: pa.StructArray) -> None:
        self._found = found
        self._names = {field.name for field in found.type}
        self._is_match = bools(found.is_valid())

    def micros(self) -> tuple[Numbers, Mask]:
        """Return microseconds since 1970 of the date and time as they are written."""
        year = self._year()
        good = self._is_match & (year >= 1)
        leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        days, days_good = self._day_of_year(leap)
        hour, minute, second = self._hour(), self._number("minute", 0), self._number("second", 0)
        good &= days_good & (hour >= 0) & (hour < 24) & (minute < 60) & (second < 60)
        before = year - 1
        days += before * 365 + before // 4 - before // 100 + before // 400 - 719_162
        seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
        return seconds * 1_000_000 + self._fraction(), good

    def offsets(self) -> tuple[Numbers, Mask, Mask]:
        """Return microseconds east of UTC, whether there is an offset, and whether it is one."""
        rows = len(self._found)
        if "offset" not in self._names:
            nothing = np.zeros(rows, np.bool_)
            return np.zeros(rows, np.int64), nothing, ~nothing
        texts = self._text("offset")
        has_offset = bools(pc.greater(pc.utf8_length(texts), 0))
        signed = pc.replace_substring(texts, ":", "")
        is_east = bools(pc.match_substring_regex(signed, "^[+-]"))
        digits = pc.if_else(pa.array(is_east), pc.utf8_slice_codeunits(signed, 1), "0000")
        digits = pc.utf8_rpad(digits, 4, "0")
        hours = pc.utf8_slice_codeunits(digits, 0, 2).cast(pa.int64()).to_numpy()
        minutes = pc.utf8_slice_codeunits(digits, 2, 4).cast(pa.int64()).to_numpy()
        sign = np.where(bools(pc.starts_with(signed, "-")), -1, 1)
        good: Mask = (hours < 24) & (minutes < 60)
        return sign * (hours * 3_600 + minutes * 60) * 1_000_000, has_offset, good

    def _year(self) -> Numbers:
        if "year" in self._names:
            return self._number("year", 0)
        short = self._number("short_year", -1)  # as POSIX says: 69 to 99 are of the last century
        return np.where(short < 0, 0, np.where(short < 69, 2000 + short, 1900 + short))

    def _day_of_year(self, leap: Mask) -> tuple[Numbers, Mask]:
        month, day = self._month(), self._number("day", 1)
        index = np.clip(month, 1, 12) - 1
        longest = _MONTH_DAYS[index] + (leap & (index == 1))
        good: Mask = (month >= 1) & (month <= 12) & (day >= 1) & (day <= longest)
        days: Numbers = _DAYS_BEFORE[index] + (leap & (index > 1)) + day - 1
        if "day_of_year" not in self._names:
            return days, good
        of_year = self._number("day_of_year", -1)
        is_given = of_year >= 0
        of_year_good = (of_year >= 1) & (of_year <= 365 + leap)
        return np.where(is_given, of_year - 1, days), np.where(is_given, of_year_good, good)

    def _month(self) -> Numbers:
        if "month_name" not in self._names:
            return self._number("month", 1)
        first = pc.utf8_lower(pc.utf8_slice_codeunits(self._text("month_name"), 0, 3))
        found = pc.index_in(first, pa.array(_MONTHS)).fill_null(-1)
        months: Numbers = found.cast(pa.int64()).to_numpy() + 1
        return months

    def _hour(self) -> Numbers:
        if "hour12" not in self._names:
            return self._number("hour", 0)
        hour = self._number("hour12", 0)
        good = (hour >= 1) & (hour <= 12)
        afternoon = bools(pc.starts_with(pc.utf8_lower(self._text("half")), "p"))
        return np.where(good, hour % 12 + np.where(afternoon, 12, 0), -1)

    def _fraction(self) -> Numbers:
        if "fraction" not in self._names:
            return np.zeros(len(self._found), np.int64)
        padded = pc.utf8_rpad(self._text("fraction"), 9, "0")
        billionths: Numbers = padded.cast(pa.int64()).to_numpy() // 1_000
        return billionths

    def _text(self, name: str) -> pa.Array:
        if name not in self._names:
            return pa.array([""] * len(self._found), pa.string())
        return pc.struct_field(self._found, name).fill_null("")

    def _number(self, name: str, default: int) -> Numbers:
        if name not in self._names:
            return np.full(len(self._found), default, np.int64)
        digits = pc.utf8_ltrim(self._text(name), " ")
        is_there = pc.greater(pc.utf8_length(digits), 0)
        numbers: Numbers = pc.if_else(is_there, digits, str(default)).cast(pa.int64()).to_numpy()
        return numbers
