"""Says what a query had to read, and what it was spared, for people and for programs."""

from __future__ import annotations

import msgspec

from lakebed.model.names import TransactionNumber

KIB = 1024
_PHASES = (
    ("state", "log and state"),
    ("tails", "tails"),
    ("choosing", "page index"),
    ("reading", "waiting for rows"),
    ("decoding", "decoding"),
)
"""Phases that are timed, in the order in which they begin, and what people call them."""


class QueryExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a query, whose rows were thrown away.

    leaves, files: of the table.
    leaves_reached: that may hold the keys.
    files_reached: in them.
    files_matching: of those, whose key bounds meet the keys.
    row_groups: of the matching files.
    row_groups_met: by their first keys.
    row_groups_read: by statistics, too.
    pages: of the row groups read; a page is one column's.
    rounds: how often it waited for the store before it could go on.
    milliseconds: by phase; `total` is all of it.
    """

    table: str
    number: TransactionNumber
    rows: int
    leaves: int
    leaves_reached: int
    files: int
    files_reached: int
    files_matching: int
    row_groups: int
    row_groups_met: int
    row_groups_read: int
    pages: int
    pages_read: int
    pages_cached: int
    tails: int
    tails_cached: int
    rounds: int
    requests: int
    bytes: int
    milliseconds: dict[str, float]

    def __str__(self) -> str:
        """Lines for people."""
        left_out = self.files_reached - self.files_matching
        files = f"{self.files_matching:,} of {self.files:,}: {self.files_reached:,} in those leaves"
        rounds = f"{self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        lines = [
            ("rows", f"{self.rows:,}"),
            ("leaves", f"{self.leaves_reached:,} of {self.leaves:,} may hold the keys"),
            ("files", f"{files}, {left_out:,} of them left out by the bounds of their keys"),
            ("row groups", self._row_groups()),
            ("pages", self._pages()),
            ("tails", f"{self.tails_cached:,} of {self.tails:,} were in the cache"),
            ("requests", f"{self.requests:,}, {self.bytes / KIB:,.1f} KiB, in {rounds}"),
            ("time", self._time()),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)

    def _row_groups(self) -> str:
        left_out = self.row_groups_met - self.row_groups_read
        statistics = f"; {left_out:,} left out by statistics" if left_out else ""
        return f"{self.row_groups_met:,} of {self.row_groups:,}, by their first keys{statistics}"

    def _pages(self) -> str:
        if not self.pages:
            return "whole row groups were read"
        cached = f"; {self.pages_cached:,} were in the cache" if self.pages_cached else ""
        return f"{self.pages_read:,} of {self.pages:,}, by the page index{cached}"

    def _time(self) -> str:
        spent = self.milliseconds
        known = [f"{text} {spent[name]:,.1f}" for name, text in _PHASES if name in spent]
        return f"{spent.get('total', 0.0):,.1f} ms: {', '.join(known)}"
